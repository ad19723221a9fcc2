// The package as a door of the suite of conversations: performs the actions of standard input, one JSON object a line.
import { createInterface } from 'node:readline'
import * as proem from '../index.mjs'

process.removeAllListeners('warning')
const store = await proem.open(process.argv[2])

/** Returns the members of an object, each as it is written. */
function members(text) {
  const found = {}
  let at = text.indexOf('{') + 1
  const end = (from) => {
    // The end of the value that begins here.
    let depth = 0
    for (let here = from; here < text.length; here++) {
      if (text[here] === '"') {
        for (here++; text[here] !== '"'; here++) if (text[here] === '\\') here++
        if (depth === 0) return here + 1
      } else if ('{['.includes(text[here])) depth++
      else if ('}]'.includes(text[here])) {
        if (depth === 0) return here
        if (--depth === 0) return here + 1
      } else if (depth === 0 && text[here] === ',') return here
    }
    return text.length
  }
  for (;;) {
    while (/[\s,]/.test(text[at])) at++
    if (text[at] === '}') return found
    const keyEnd = end(at)
    const key = JSON.parse(text.slice(at, keyEnd))
    at = text.indexOf(':', keyEnd) + 1
    while (/\s/.test(text[at])) at++
    const valueEnd = end(at)
    found[key] = text.slice(at, valueEnd).trimEnd()
    at = valueEnd
  }
}

/** Returns a body as the fields of a request. Messages keep their spelling. */
function fields(body) {
  const raw = members(body || '{}')
  const given = Object.fromEntries(Object.entries(raw).map(([name, text]) => [name, JSON.parse(text)]))
  if (given.messages) given.messages = raw.messages
  if (given.per_prompt?.messages) given.per_prompt.messages = members(raw.per_prompt).messages
  return given
}

/** Tells whether an object can hold what a text says: an object, with each key once. */
function isPlain(text) {
  let keys = 0
  try {
    const read = JSON.parse(text, (_, value) => {
      if (value !== null && typeof value === 'object' && !Array.isArray(value)) keys += Object.keys(value).length
      return value
    })
    // Each key of the text is followed by a colon outside of texts.
    const written = text.replace(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1
    return read !== null && typeof read === 'object' && !Array.isArray(read) && written === keys
  } catch {
    return false
  }
}

const actions = {
  turn: async (talk, body) => (isPlain(body) ? talk.turn(fields(body)) : talk.turnJson(body)),
  reload: (talk, body) => talk.reload(fields(body)),
  reload_skills: (talk) => talk.reloadSkills(),
  plan: (talk, body) => talk.plan(fields(body)),
  tools: (talk, body) => talk.setToolRegistry(JSON.parse(body)),
  active: (talk, body) => talk.setActiveTools(JSON.parse(body)),
  profile: (talk, body) => talk.switchProfile(body),
  resources: (talk, body) => talk.addResources(fields(body)),
  begin: (talk, body) => talk.beginCompaction(fields(body)),
  commit: (talk, body) => talk.commitCompaction(body),
  abort: (talk, body) => talk.abortCompaction(body),
  template: (_, body) => store.putTemplate(body).then(() => undefined),
  fork: (talk, body) => talk.fork(JSON.parse(body).id, JSON.parse(body)),
  spawn: (talk, body) => {
    const { id, ...rest } = fields(body)
    return talk.spawn(id, rest)
  },
  show: (talk) => talk.history(),
  forget: (talk) => talk.remove().then(() => undefined),
  build: (_, body) => proem.build(fields(body)),
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, action, body } = JSON.parse(line)
  let done
  try {
    const answer = await actions[action](store.conversation(id), body)
    done = { ok: answer?.json ?? '' }
  } catch (error) {
    if (!(error instanceof proem.ProemError)) throw error
    const { code, message, hint, kind, place } = error
    const known = Object.entries({ code, message, hint, kind, ...place }).filter(([, value]) => value !== null && value !== undefined)
    done = { error: Object.fromEntries(known) }
  }
  console.log(JSON.stringify(done))
}
await store.close()
