// The Vercel AI SDK: a middleware for models whose prompt comes from a conversation of proem.
'use strict'

const { Session } = require('./session.js')

/**
 * Makes a middleware for `wrapLanguageModel`. The fields of `call` go with each turn; `providerOptions` go with the system
 * message, such as the mark of Anthropic's cache.
 */
function proemMiddleware(conversation, { providerOptions, ...call } = {}) {
  const session = new Session(conversation, call)
  return {
    specificationVersion: 'v3',
    async transformParams({ params }) {
      const users = params.prompt.filter((message) => message.role === 'user')
      const { system, texts } = await session.call(users.map(text))
      const messages = params.prompt.filter((message) => message.role !== 'system')
      const prompt = messages.map((message) => (message.role === 'user' ? withText(message, texts.shift()) : message))
      const head = { role: 'system', content: system, ...(providerOptions && { providerOptions }) }
      return { ...params, prompt: [head, ...prompt] }
    },
  }
}

const isText = (part) => part.type === 'text'

/** Returns the first text of a message. */
function text(message) {
  return message.content.find(isText)?.text ?? ''
}

/** Returns a message with another first text. */
function withText(message, other) {
  const at = message.content.findIndex(isText)
  const content = [...message.content]
  if (at >= 0) content[at] = { ...content[at], text: other }
  else if (other) content.push({ type: 'text', text: other })
  return { ...message, content }
}

module.exports = { proemMiddleware }
