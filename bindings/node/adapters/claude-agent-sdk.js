// The Claude Agent SDK: options whose system prompt comes from a conversation of proem.
'use strict'

/**
 * Returns options with the frozen prompt. The agent takes it once, for all calls of its session. `settingSources` is empty
 * unless it is given, so that the agent does not read the instruction files that are in the prompt already.
 */
async function options(conversation, settings = {}) {
  const { carriers } = await conversation.turn()
  const systemPrompt = [carriers.system, carriers.developer].filter(Boolean).join('\n\n')
  return { systemPrompt, settingSources: [], ...settings }
}

module.exports = { options }
