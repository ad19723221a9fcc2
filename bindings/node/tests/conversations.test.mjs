// Conversations, hooks, threads, and processes that end.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import * as proem from '../index.mjs'
import { inWorkspace } from './workspace.mjs'

inWorkspace()
const BASE = { profile: 'template', system: 'Be brief.', model: 'claude-opus-5' }
const index = fileURLToPath(new URL('../index.mjs', import.meta.url))
let stores = 0

/** Runs a test on a store in memory and one in a file. */
function onStores(name, work) {
  for (const kind of ['memory', 'sqlite']) {
    test(`${name} (${kind})`, async () => {
      const store = await proem.open(kind === 'memory' ? 'memory:' : `sqlite:agent-${++stores}.db`)
      try {
        await work(store)
      } finally {
        await store.close()
      }
    })
  }
}

/** Returns the warnings while work is done. */
async function warned(work) {
  const said = []
  const listen = (warning) => said.push(warning)
  process.on('warning', listen)
  const done = await work()
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', listen)
  return [done, said]
}

const rejected = (code) => (error) => error instanceof proem.ProemError && error.code === code

onStores('a conversation keeps its prompt', async (store) => {
  const conversation = store.conversation('c-17', BASE)
  const first = await conversation.turn('Hello', { provider: 'anthropic' })
  assert.deepEqual([first.epoch, first.reason, first.reused, first.conversation], [1, 'startup', false, 'c-17'])
  const messages = [...first.history, { role: 'assistant', content: 'Hi.' }]
  const next = await conversation.turn('And now?', { messages, provider: 'anthropic' })
  assert.deepEqual([next.reused, next.digest, next.systemPrompt], [true, first.digest, 'Be brief.'])
  assert.equal(next.payload.messages[0].role, 'user')
  assert.equal((await conversation.history()).epochs[0].reason, 'startup')
  assert.equal((await store.conversations()).conversations[0].conversation, 'c-17')
  assert.equal(await conversation.remove(), true)
  assert.equal(await store.remove('c-17'), false)
})

onStores('changes open epochs', async (store) => {
  // The profile has a clock.
  const host = { now: '2026-03-07T14:55:05Z', timezone: 'UTC' }
  const tools = [{ name: 'read' }, { name: 'bash' }]
  const conversation = store.conversation('c', { profile: 'layers', project: false, tools, host })
  await conversation.turn('Hello')
  assert.equal((await conversation.setActiveTools(['read'])).opened, true)
  assert.equal((await conversation.setToolRegistry([{ name: 'read' }, { name: 'edit' }])).epoch, 3)
  assert.equal((await conversation.planTools([])).plan.tools_changed, true)
  assert.ok((await conversation.diff(1, 2)).carriers.length > 0)
  assert.ok((await conversation.epoch(2, { provider: 'anthropic' })).payload)
  assert.equal((await conversation.drift()).plan.changed, false)
  assert.equal((await conversation.reload()).epoch, 3)
  const begun = await conversation.beginCompaction({ provider: 'anthropic' })
  await conversation.abortCompaction(begun.token)
  const { token } = await conversation.beginCompaction()
  assert.equal((await conversation.commitCompaction(token)).reason, 'compaction')
  assert.ok((await conversation.switchProfile('template')).epoch >= 4)
  assert.ok((await conversation.addResources({ skillPaths: ['skills'] })).epoch >= 4)
  assert.ok((await conversation.reloadSkills()).epoch >= 4)
  assert.ok(Array.isArray(await conversation.pending()))
  await assert.rejects(conversation.diff(1, 99), rejected('not_found'))
})

onStores('hooks change one turn', async (store) => {
  const conversation = store.conversation('c', BASE)
  const seen = []
  conversation.beforeAgentStart(function addTicket(event) {
    seen.push(event)
    return { message: 'Ticket: 17', system_prompt: `${event.system_prompt}\nToday only.` }
  })
  conversation.context(async (event) => {
    await new Promise((resolve) => setTimeout(resolve, 5))
    return event.messages.slice(-1)
  })
  const turn = await conversation.turn('Hello')
  assert.deepEqual([seen[0].prompt, seen[0].system_prompt], ['Hello', 'Be brief.'])
  assert.deepEqual([turn.systemPrompt, turn.prefix], ['Be brief.\nToday only.', 'Be brief.'])
  assert.equal(turn.changes[0].hook, 'addTicket')
  assert.deepEqual(turn.messages, [{ content: 'Ticket: 17', role: 'user' }])
  assert.equal(turn.history.length, 2)
})

const wrong = {
  throws() { throw new Error('no ticket') },
  async rejects() { throw new Error('no ticket') },
  nonsense: () => () => {},
  wrongShape: () => ({ no: 'such key' }),
  surrogate: () => ({ message: '\ud800' }),
}
for (const [name, hook] of Object.entries(wrong)) {
  onStores(`a hook that fails is reported by name and skipped: ${name}`, async (store) => {
    const conversation = store.conversation('c', BASE)
    conversation.beforeAgentStart(hook)
    const [turn, said] = await warned(() => conversation.turn('Hello'))
    assert.equal(turn.systemPrompt, 'Be brief.')
    assert.equal(turn.notes.filter((note) => note.message.includes(name)).length, 1)
    assert.ok(said.some((warning) => warning.name === 'ProemHookWarning' && warning.message.includes(`\`${name}\``)))
  })
}

onStores('a hook that hangs is skipped, and one may call again', async (store) => {
  const conversation = store.conversation('c', BASE)
  await conversation.turn('Hello')
  conversation.beforeAgentStart(() => new Promise(() => {}))
  const [turn, said] = await warned(() => conversation.turn('Hello'))
  assert.equal(turn.systemPrompt, 'Be brief.')
  assert.ok(said.some((warning) => warning.message.includes('longer than')))
  const other = store.conversation('again', BASE)
  let inner
  other.beforeAgentStart(async () => {
    inner = await store.conversation('inner', BASE).turn('Hello')
  })
  assert.equal((await other.turn('Hello')).digest, inner.digest)
})

onStores('bad calls get errors', async (store) => {
  assert.throws(() => store.conversation('a b'), rejected('bad_id'))
  const conversation = store.conversation('c', BASE)
  await assert.rejects(conversation.reload(), rejected('no_conversation'))
  for (const call of [{ prompt: 'a' }, { conversation: 'other' }, { messages: 3 }, { tools: 'read' }]) {
    await assert.rejects(conversation.turn('Hello', call), rejected('bad_request'))
  }
  await assert.rejects(conversation.turn(3), rejected('bad_request'))
  await assert.rejects(conversation.setActiveTools([1]), rejected('bad_request'))
  await assert.rejects(conversation.diff(-1, 2), rejected('bad_request'))
  assert.throws(() => conversation.context(3), rejected('bad_request'))
  assert.equal((await conversation.turn('Hello')).epoch, 1)
  await assert.rejects(conversation.commitCompaction('token'), rejected('no_compaction'))
})

onStores('a closed store says so', async (store) => {
  const conversation = store.conversation('c', BASE)
  await store.close()
  await assert.rejects(conversation.turn('Hello'), rejected('store_closed'))
})

for (const name of ['mysql://me:secret@db/x', '', 'postgres://me@127.0.0.1:1/x']) {
  test(`a store that cannot be opened says so: ${name}`, async () => {
    await assert.rejects(proem.open(name), (error) => error.code === 'store_unavailable' && !error.message.includes('secret'))
  })
}

test('turns do not block the loop', async () => {
  const store = await proem.open('sqlite:loop.db')
  const conversation = store.conversation('c', BASE)
  conversation.beforeAgentStart(() => new Promise((resolve) => setTimeout(resolve, 200)))
  let ticks = 0
  const timer = setInterval(() => ticks++, 5)
  await conversation.turn('Hello')
  clearInterval(timer)
  assert.ok(ticks > 3, `${ticks} ticks`)
  const turns = await Promise.all(Array.from({ length: 20 }, (_, number) => store.conversation(`c-${number}`, BASE).turn('Hello')))
  assert.equal(new Set(turns.map((turn) => turn.digest)).size, 1)
  await store.close()
})

test('a second descriptor is refused', async () => {
  const store = await proem.open('sqlite:twice.db')
  const conversation = store.conversation('c', BASE)
  await conversation.turn('Hello')
  const descriptor = openSync('twice.db', 'r')
  await assert.rejects(conversation.turn('Hello'), rejected('store_opened_twice'))
  closeSync(descriptor)
  assert.equal((await conversation.turn('Hello')).reused, true)
  await store.close()
})

test('worker threads share a store, and may be ended in the middle of a call', async () => {
  const text = `
    const { parentPort, workerData } = require('node:worker_threads')
    import(workerData.index).then(async (proem) => {
      const store = await proem.open('sqlite:workers.db')
      const conversation = store.conversation('c', workerData.base)
      conversation.beforeAgentStart(() => {})
      parentPort.postMessage((await conversation.turn('Hello')).digest)
      conversation.beforeAgentStart(() => new Promise(() => {}))
      for (;;) await conversation.turn('Hello')
    })`
  const workers = Array.from({ length: 4 }, () => new Worker(text, { eval: true, workerData: { index, base: BASE } }))
  const digests = await Promise.all(workers.map((worker) => new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))))
  assert.equal(new Set(digests).size, 1)
  await Promise.all(workers.map((worker) => worker.terminate()))
})

for (const [name, end] of Object.entries({ 'by itself': '', 'by process.exit': 'setTimeout(() => process.exit(0), 50)' })) {
  test(`a process ends in the middle of a call, ${name}`, () => {
    const text = `
      import { open } from ${JSON.stringify(index)}
      const store = await open('sqlite:ends.db')
      const conversation = store.conversation('c', ${JSON.stringify(BASE)})
      conversation.beforeAgentStart(() => {})
      await conversation.turn('Hello')
      ${end === '' ? '' : 'for (let i = 0; i < 1000; i++) conversation.turn("Hello")'}
      ${end}`
    const done = spawnSync(process.execPath, ['--input-type=module', '-e', text], { encoding: 'utf8', timeout: 60_000 })
    assert.equal(done.status, 0, done.stderr)
  })
}
