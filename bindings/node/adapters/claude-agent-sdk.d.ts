import type { Options } from '@anthropic-ai/claude-agent-sdk'
import type { Conversation } from '../index.js'

/**
 * Returns options with the frozen prompt. The agent takes it once, for all calls of its session. `settingSources` is empty
 * unless it is given, so that the agent does not read the instruction files that are in the prompt already.
 */
export function options(conversation: Conversation, settings?: Options): Promise<Options>
