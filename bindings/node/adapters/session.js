// A conversation inside a framework that keeps the messages itself.
'use strict'

/**
 * Answers the calls of a framework with turns of a conversation. A framework gives all messages with each call, and proem adds
 * text to those of the user: facts of the turn, and what hooks inject. A message gets its text once, so that the next request
 * begins with the bytes of this one.
 */
class Session {
  #conversation
  #call
  #given = []
  #texts = []
  #history = '[]'
  #last = Promise.resolve()
  constructor(conversation, call = {}) {
    this.#conversation = conversation
    this.#call = call
  }

  /** Returns the system prompt for a call, and the text that each message of the user gets. One call after another. */
  call(users) {
    const next = this.#last.then(() => this.#answer(users))
    this.#last = next.catch(() => {})
    return next
  }

  async #answer(users) {
    if (this.#given.some((text, index) => users[index] !== text)) {
      // Another conversation, or one whose beginning was cut: nothing is known about its messages.
      this.#given = []
      this.#texts = []
      this.#history = '[]'
    }
    let system
    for (const prompt of users.slice(this.#given.length)) system = await this.#turn(prompt)
    return { system: system ?? (await this.#turn()), texts: [...this.#texts] }
  }

  async #turn(prompt) {
    const turn = await this.#conversation.turn(prompt, { ...this.#call, messages: this.#history })
    if (prompt !== undefined) {
      const known = JSON.parse(this.#history).length
      this.#texts.push(turn.messages.slice(known).map(text).join('\n\n'))
      this.#given.push(prompt)
      this.#history = turn.historyJson
    }
    return [turn.systemPrompt, turn.carriers.developer].filter(Boolean).join('\n\n')
  }
}

function text({ content }) {
  if (typeof content === 'string') return content
  return content.filter((part) => 'text' in part).map((part) => part.text).join('\n\n')
}

module.exports = { Session }
