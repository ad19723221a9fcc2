// Prompts that are not kept.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import * as proem from '../index.mjs'
import { inWorkspace } from './workspace.mjs'

inWorkspace()

test('both kinds of modules have the same package', () => {
  assert.deepEqual(Object.keys(createRequire(import.meta.url)('../index.js')).sort(), Object.keys(proem).filter((name) => name !== 'default').sort())
})

test('a prompt has its parts', async () => {
  const prompt = await proem.build({ profile: 'template', system: 'Be brief.' })
  assert.deepEqual([prompt.system, prompt.prefix, prompt.profile], ['Be brief.', 'Be brief.', 'template'])
  assert.equal(JSON.parse(JSON.stringify(prompt)).digest, prompt.digest)
  assert.deepEqual(prompt.carriers, { system: 'Be brief.' })
  assert.equal(prompt.explain().sections[0].id, 'base')
  assert.deepEqual(prompt.why('brief').places[0].spans[0].source, { kind: 'request', field: 'system' })
  assert.deepEqual(prompt.why('long'), { places: [], elsewhere: [] })
  assert.equal(proem.buildSync({ profile: 'template', system: 'Be brief.' }).digest, prompt.digest)
})

test('a payload keeps the spelling of messages', async () => {
  const prompt = await proem.build({ profile: 'template', system: 'Be brief.', model: 'claude-opus-5' })
  const raw = '[{"role":"user","content":[{"type":"text","text":"caf\\u00e9","n":1.50}]},{"role":"assistant","content":"a"}]'
  const text = prompt.payloadJson('anthropic', { messages: raw, prompt: 'Go on.' })
  assert.ok(text.includes('"text":"caf\\u00e9","n":1.50'))
  assert.deepEqual(prompt.payload('anthropic', { messages: raw, prompt: 'Go on.' }), JSON.parse(text))
  assert.ok(prompt.historyJson('anthropic', { messages: raw }).includes('1.50'))
})

test('prompts are compared', async () => {
  const [a, b] = await Promise.all(['Be brief.', 'Be long.'].map((system) => proem.build({ profile: 'template', system })))
  const found = await proem.diff(a, b)
  assert.equal(found.first_difference.byte, 3)
  assert.deepEqual(await proem.diff(a.json, b.json), found)
})

test('files are checked', async () => {
  writeFileSync('AGENTS.md', 'A\u200bB\n')
  assert.ok((await proem.check({ profile: 'default' })).findings.length > 0)
  assert.ok((await proem.compat({ agents: ['codex'] })).agents.some((agent) => agent.profile === 'codex'))
  writeFileSync('calls.jsonl', '')
  assert.equal((await proem.report('calls.jsonl')).totals.calls, 0)
})

const circular = []
circular.push(circular)
for (const [name, given, code] of [
  ['a number as text', { system: 1 }, 'bad_request'],
  ['a lone surrogate', { system: '\ud800' }, 'bad_request'],
  ['a lone surrogate inside', { variables: { a: '\udfff' } }, 'bad_request'],
  ['a number that is not one', { images: [NaN] }, 'bad_request'],
  ['a list that contains itself', { images: circular }, 'bad_request'],
  ['a function', { system: () => {} }, 'bad_request'],
  ['a bigint', { images: [1n] }, 'bad_request'],
  ['messages that are not JSON', { messages: '[{' }, 'bad_request'],
  ['messages that are not objects', { messages: [1] }, 'bad_request'],
  ['a field that does not exist', { noSuchField: 1 }, 'bad_request'],
  ['a huge text', { system: 'x'.repeat(70_000_000) }, 'bad_request'],
  ['a list as request', [], 'bad_request'],
  ['a template that cannot be rendered', { profile: 'assets', template: '{{ ghost }}' }, 'build_failed'],
]) {
  test(`bad input gets an error with a code: ${name}`, async () => {
    const isRight = (error) => error instanceof proem.ProemError && error.code === code && error.message.length > 0
    await assert.rejects(proem.build(given), isRight)
    assert.throws(() => proem.buildSync(given), isRight)
  })
}

test('memory does not grow', async () => {
  const count = Number(process.env.PROEM_BUILDS ?? 500)
  const build = async (times) => {
    for (let round = 0; round < times; round++) {
      const prompt = await proem.build({ profile: 'template', system: 'x'.repeat(10_000) })
      assert.ok(prompt.payload('anthropic', { prompt: 'Hello' }))
      await assert.rejects(proem.build({ system: 1 }))
    }
    globalThis.gc()
    return process.memoryUsage.rss()
  }
  const before = await build(count / 2)
  // Without a leak a few pages more or less; with one, at least the text of each prompt.
  assert.ok((await build(count)) - before < Math.max(count * 5_000, 16 << 20))
})
