// The package: classes over the native part, which takes requests and gives answers as JSON text.
'use strict'

const { isMainThread } = require('node:worker_threads')
const native = require('./native.js')

// Node waits for work that was begun; what waits itself for a hook would wait in vain.
if (isMainThread) process.on('exit', () => native.end())

/** An error of proem: `code` is a stable word, `hint` tells how to fix it, `place` where the problem is. */
class ProemError extends Error {
  constructor(message, { code = 'internal', hint, place, kind } = {}) {
    super(message)
    this.name = new.target.name
    this.code = code
    this.hint = hint ?? null
    this.place = place ?? null
    this.kind = kind ?? null
  }
}
class RequestError extends ProemError {}
class BuildError extends ProemError {}
class NotFoundError extends ProemError {}
class ConflictError extends ProemError {}
class StoreError extends ProemError {}

const CLASSES = {
  bad_request: RequestError, bad_id: RequestError, too_large: RequestError, build_failed: BuildError,
  not_found: NotFoundError, no_conversation: NotFoundError, no_compaction: NotFoundError, no_workspace: NotFoundError,
  other_view: ConflictError, rebuild_not_allowed: ConflictError, conflict: ConflictError,
  conversation_exists: ConflictError, too_many_children: ConflictError,
  store_unavailable: StoreError, store_damaged: StoreError, store_closed: StoreError, store_opened_twice: StoreError,
}

/** Makes a `ProemError` of what the native part threw. */
function errorOf(thrown) {
  let fields
  try {
    fields = JSON.parse(thrown.message)
  } catch {
    return thrown
  }
  const { code, message, hint, kind, ...place } = fields
  const known = Object.keys(place).length > 0 ? place : null
  return new (CLASSES[code] ?? ProemError)(message, { code, hint, kind, place: known })
}

function refused(message, hint, field) {
  return new RequestError(message, { code: 'bad_request', hint, place: field === undefined ? null : { field } })
}

// ---- requests as JSON

/** Lone surrogates have no UTF-8, and would be replaced without a sign. */
const LONE = /\p{Surrogate}/u

function check(what, value) {
  if (typeof value === 'string' && LONE.test(value)) {
    throw refused(`\`${what}\` has a lone surrogate, which no UTF-8 text has`, 'call `toWellFormed()`, or remove it', what)
  }
  return value
}

function text(what, value) {
  if (typeof value !== 'string') throw refused(`\`${what}\` is not a text`, 'give a string', what)
  return check(what, value)
}

function optionalText(what, value) {
  return value === undefined || value === null ? undefined : text(what, value)
}

function number(what, value) {
  if (!Number.isInteger(value) || value < 0 || value > 0xffff_ffff) {
    throw refused(`\`${what}\` is not a whole number`, 'give a number from 0', what)
  }
  return value
}

function json(what, value) {
  let written
  try {
    written = JSON.stringify(value, function (key, member) {
      if (typeof member === 'string') check(key || what, member)
      if (typeof member === 'number' && !Number.isFinite(member)) throw refused(`\`${key || what}\` is not a finite number`, 'leave it out')
      if (typeof member === 'bigint') throw refused(`\`${key || what}\` is a bigint, which JSON does not have`, 'give a number or a text')
      if (typeof member === 'function' || typeof member === 'symbol') {
        throw refused(`\`${key || what}\` is a ${typeof member}, which JSON does not have`, 'give texts, numbers, lists and objects')
      }
      return member
    })
  } catch (error) {
    if (error instanceof ProemError) throw error
    throw refused(`\`${what}\` cannot be written as JSON: ${error.message}`, 'check that it does not contain itself', what)
  }
  if (written === undefined) throw refused(`\`${what}\` is missing`, 'give a value', what)
  return written
}

/** Writes messages: a list, or JSON text whose spelling is kept. */
function messages(value) {
  if (typeof value === 'string') return check('messages', value)
  if (!Array.isArray(value)) return json('messages', value)
  const items = value.map((item, index) => (typeof item === 'string' ? check('messages', item) : json(`messages.${index}`, item)))
  return `[${items.join(',')}]`
}

function member(name, value) {
  if (value === null) return 'null'
  if (name === 'messages') return messages(value)
  if (name === 'per_prompt' && typeof value === 'object' && !Array.isArray(value)) return fields(value)
  return json(name, value)
}

/** Writes the fields of a request. Their names may be written in camel case. */
function fields(given) {
  if (given === undefined || given === null) return '{}'
  if (typeof given !== 'object' || Array.isArray(given)) {
    throw refused('the request is not an object', 'give the fields of a request')
  }
  const members = []
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined) continue
    const name = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    members.push(`${json('name', name)}:${member(name, value)}`)
  }
  return `{${members.join(',')}}`
}

function withPrompt(prompt, call) {
  if (typeof prompt === 'object' && prompt !== null && call === undefined) return fields(prompt)
  if (prompt === undefined || prompt === null) return fields(call)
  if (call?.prompt !== undefined) throw refused('`prompt` is given twice', 'give it first, or by its name')
  return fields({ ...call, prompt: text('prompt', prompt) })
}

function names(what, value) {
  const list = typeof value === 'string' ? [value] : value
  if (!Array.isArray(list) || !list.every((name) => typeof name === 'string')) {
    throw refused(`\`${what}\` is not a list of texts`, 'give names', what)
  }
  return list.map((name) => check(what, name))
}

// ---- answers

function now(work) {
  try {
    return work()
  } catch (error) {
    throw errorOf(error)
  }
}

async function later(work) {
  try {
    return await work()
  } catch (error) {
    throw errorOf(error)
  }
}

/** Reads an answer: an object that also has its JSON text, in which numbers keep their spelling. */
function answer(text) {
  const read = JSON.parse(text)
  return read === null || typeof read !== 'object' ? read : Object.defineProperty(read, 'json', { value: text })
}

// ---- prompts

/** A prompt that was built for a request. */
class Prompt {
  #native
  #shape
  constructor(made) {
    this.#native = made
  }
  static of(prompt) {
    return prompt.#native
  }
  static is(value) {
    return typeof value === 'object' && value !== null && #native in value
  }
  get system() { return this.#native.system ?? null }
  get prefix() { return this.#native.prefix }
  get boundary() { return this.#native.boundary }
  get suffix() { return this.#native.suffix }
  get digest() { return this.#native.digest }
  get profile() { return this.#native.profile }
  get carriers() { return this.toJSON().carriers }
  get notes() { return this.toJSON().notes }
  get json() { return now(() => this.#native.json()) }
  toJSON() { return (this.#shape ??= JSON.parse(this.json)) }
  explain() { return answer(now(() => this.#native.explain())) }
  why(wanted) { return answer(now(() => this.#native.why(text('text', wanted)))) }
  payload(provider, call) { return JSON.parse(this.payloadJson(provider, call)) }
  payloadJson(provider, call) { return now(() => this.#native.payload(text('provider', provider), fields(call))) }
  history(provider, call) { return JSON.parse(this.historyJson(provider, call)) }
  historyJson(provider, call) { return now(() => this.#native.history(text('provider', provider), fields(call))) }
}

async function build(request) {
  const given = fields(request)
  return new Prompt(await later(() => native.build(given)))
}

function buildSync(request) {
  return new Prompt(now(() => native.buildSync(fields(request))))
}

async function diff(a, b, { model, provider } = {}) {
  const options = [optionalText('model', model), optionalText('provider', provider)]
  if (Prompt.is(a) && Prompt.is(b)) return answer(now(() => Prompt.of(a).diff(Prompt.of(b), ...options)))
  const side = (what, value) => (Prompt.is(value) ? value.json : text(what, value))
  const sides = [side('a', a), side('b', b)]
  return answer(await later(() => native.diff(...sides, ...options)))
}

async function checkPrompt({ strict, determinism, agents, all, ...request } = {}) {
  const given = fields(request)
  const options = { strict, determinism, all, agents: agents === undefined ? undefined : names('agents', agents) }
  return answer(await later(() => native.check(given, options)))
}

async function compat({ agents = [], ...request } = {}) {
  const given = [fields(request), names('agents', agents)]
  return answer(await later(() => native.compat(...given)))
}

async function report(path, { source, since, conversation, provider } = {}) {
  const all = { path, source, since, conversation, provider }
  const options = Object.fromEntries(Object.entries(all).map(([name, value]) => [name, optionalText(name, value)]))
  return answer(await later(() => native.report(options)))
}

// ---- conversations

/** Everything that the model sees in one turn. */
class Turn {
  #native
  #shape
  constructor(made) {
    this.#native = made
  }
  get json() { return now(() => this.#native.json()) }
  toJSON() { return (this.#shape ??= JSON.parse(this.json)) }
  get version() { return this.toJSON().version }
  get conversation() { return this.toJSON().conversation }
  get profile() { return this.toJSON().profile }
  get epoch() { return this.#native.epoch }
  get reason() { return this.toJSON().reason }
  get reused() { return this.#native.reused }
  get carriers() { return this.toJSON().carriers }
  get prefix() { return this.toJSON().prefix }
  get boundary() { return this.toJSON().boundary }
  get suffix() { return this.toJSON().suffix }
  get turn() { return this.toJSON().turn }
  get digest() { return this.#native.digest }
  get fingerprint() { return this.toJSON().fingerprint }
  get signature() { return this.toJSON().signature }
  get systemPrompt() { return this.#native.systemPrompt || null }
  get messages() { return JSON.parse(this.messagesJson) }
  get messagesJson() { return this.#native.messagesJson() }
  get tools() { return this.toJSON().tools }
  get history() { return JSON.parse(this.historyJson) }
  get historyJson() { return this.#native.historyJson() }
  get payload() { return JSON.parse(this.payloadJson ?? 'null') }
  get payloadJson() { return this.#native.payloadJson() ?? null }
  get pending() { return this.toJSON().pending }
  get changes() { return this.toJSON().changes }
  get expectedMiss() { return this.toJSON().expected_miss }
  get notes() { return this.toJSON().notes }
}

const WARNINGS = { fork: 'ProemForkWarning', hook: 'ProemHookWarning' }

/** A store of conversations. */
class Store {
  #native
  constructor(made) {
    this.#native = made
  }
  get name() { return this.#native.name }
  conversation(id, request) {
    const given = [text('id', id), fields(request)]
    return new Conversation(now(() => this.#native.conversation(...given)), (work) => this.#worked(work))
  }
  async conversations({ search, after, limit } = {}) {
    const most = limit === undefined ? undefined : number('limit', limit)
    const options = [optionalText('search', search), optionalText('after', after), most]
    return answer(await this.#worked(() => this.#native.conversations(...options)))
  }
  async template() { return answer(await this.#worked(() => this.#native.template())) }
  async putTemplate(template, { author, expectedVersion } = {}) {
    const version = expectedVersion === undefined ? undefined : number('expectedVersion', expectedVersion)
    const given = [text('template', template), optionalText('author', author), version]
    return answer(await this.#worked(() => this.#native.putTemplate(...given)))
  }
  async remove(id) {
    const given = text('id', id)
    return this.#worked(() => this.#native.remove(given))
  }
  async close() { await later(() => this.#native.close()) }
  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() { await this.close() }
  /** Does work with the store, then tells what the caller should learn of. */
  async #worked(work) {
    try {
      return await later(work)
    } finally {
      for (const [kind, message] of this.#native.takeWarnings()) process.emitWarning(message, WARNINGS[kind])
    }
  }
}

async function open(name) {
  const given = text('name', name)
  return new Store(await later(() => native.open(given)))
}

/** A conversation of a store. It exists from its first turn on. */
class Conversation {
  #native
  #worked
  constructor(made, worked) {
    this.#native = made
    this.#worked = worked
  }
  get id() { return this.#native.id }
  beforeAgentStart(callable) { return this.#hook('before_agent_start', callable) }
  context(callable) { return this.#hook('context', callable) }
  resourcesDiscover(callable) { return this.#hook('resources_discover', callable) }
  #hook(event, callable) {
    if (typeof callable !== 'function') throw refused(`the hook for \`${event}\` is not a function`, 'register a function')
    const start = async (call, sent) => {
      try {
        native.answer(call, json('answer', (await callable(JSON.parse(sent))) ?? null))
      } catch (error) {
        native.answer(call, undefined, error instanceof Error ? `${error.name}: ${error.message}` : String(error))
      }
    }
    now(() => this.#native.addHook(event, callable.name || 'anonymous', start))
    return callable
  }
  async turn(prompt, call) {
    const given = withPrompt(prompt, call)
    return new Turn(await this.#worked(() => this.#native.turn(given)))
  }
  async turnJson(request) {
    const given = text('request', request)
    return new Turn(await this.#worked(() => this.#native.turn(given)))
  }
  async #perform(operation, argument = '') {
    return answer(await this.#worked(() => this.#native.perform(operation, argument)))
  }
  async reload(call) { return this.#perform('reload', fields(call)) }
  async reloadSkills() { return this.#perform('reloadSkills') }
  async setToolRegistry(tools) { return this.#perform('setToolRegistry', json('tools', tools)) }
  async setActiveTools(active) { return this.#perform('setActiveTools', json('names', names('names', active))) }
  async addResources(paths) { return this.#perform('addResources', fields(paths)) }
  async switchProfile(profile) { return this.#perform('switchProfile', text('profile', profile)) }
  async beginCompaction(call) { return this.#perform('beginCompaction', fields(call)) }
  async commitCompaction(token) { return this.#perform('commitCompaction', text('token', token)) }
  async abortCompaction(token) { await this.#perform('abortCompaction', text('token', token)) }
  async plan(call) { return this.#perform('plan', fields(call)) }
  async planTools(tools) { return this.#perform('planTools', json('tools', tools)) }
  async drift() { return this.#perform('plan', '{}') }
  async diff(before, after) {
    const numbers = [number('before', before), number('after', after)]
    return answer(await this.#worked(() => this.#native.diff(...numbers)))
  }
  async history() { return this.#perform('history') }
  async epoch(which, { provider } = {}) {
    const given = [number('number', which), optionalText('provider', provider)]
    return answer(await this.#worked(() => this.#native.epoch(...given)))
  }
  async fork(id, { role } = {}) {
    const given = [text('id', id), optionalText('role', role)]
    return answer(await this.#worked(() => this.#native.fork(...given)))
  }
  async spawn(id, request) {
    const given = [text('id', id), fields(request)]
    return answer(await this.#worked(() => this.#native.spawn(...given)))
  }
  async pending() { return this.#perform('pending') }
  async remove() { return this.#perform('remove') }
}

module.exports = {
  ProemError, RequestError, BuildError, NotFoundError, ConflictError, StoreError,
  Prompt, Turn, Store, Conversation, build, buildSync, open, diff, check: checkPrompt, compat, report,
  version: native.VERSION,
}
