import type { LanguageModelMiddleware } from 'ai'
import type { Conversation, RequestFields } from '../index.js'

/**
 * Makes a middleware for `wrapLanguageModel`. The fields of `call` go with each turn; `providerOptions` go with the system
 * message, such as the mark of Anthropic's cache.
 */
export function proemMiddleware(
  conversation: Conversation,
  call?: RequestFields & { providerOptions?: { [provider: string]: { [key: string]: any } } },
): LanguageModelMiddleware
