// The adapters with the real frameworks, against a provider on the loopback interface that records what it gets.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import * as proem from '../index.mjs'
import { inWorkspace } from './workspace.mjs'

const folder = inWorkspace()
const FIELDS = { profile: 'template', system: 'Be brief.', model: 'claude-opus-5' }

/** Starts a provider, and gives a conversation whose hook adds a text to each prompt of the user. */
async function withStub(work) {
  const bodies = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk) => (text += chunk))
    request.on('end', () => {
      const body = text ? JSON.parse(text) : {}
      if (request.method === 'POST') bodies.push(body)
      const [kind, reply] = answer(request.url, body)
      response.writeHead(200, { 'content-type': kind }).end(reply)
    })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const store = await proem.open('memory:')
  const conversation = store.conversation('c-17', FIELDS)
  conversation.beforeAgentStart((event) => ({ message: `Ticket of ${event.prompt}` }))
  try {
    await work(`http://127.0.0.1:${server.address().port}`, conversation, bodies)
  } finally {
    await store.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

function answer(url, body) {
  const usage = { input_tokens: 1, output_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }
  const events = (parts) => ['text/event-stream', parts.map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`).join('')]
  const json = (value) => ['application/json', JSON.stringify(value)]
  if (url.includes('count_tokens')) return json({ input_tokens: 1 })
  if (url.includes('/messages')) {
    const head = { id: 'msg_1', type: 'message', role: 'assistant', model: body.model, content: [], stop_reason: null, stop_sequence: null, usage }
    if (!body.stream) return json({ ...head, content: [{ type: 'text', text: 'Done.' }], stop_reason: 'end_turn' })
    return events([
      { type: 'message_start', message: head },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Done.' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage },
      { type: 'message_stop' },
    ])
  }
  if (url.includes('/responses')) {
    const content = [{ type: 'output_text', text: 'Done.', annotations: [] }]
    const output = [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }]
    return json({ id: 'resp_1', object: 'response', created_at: 1, model: body.model, status: 'completed', output, usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } })
  }
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Done.' }, finish_reason: 'stop' }]
  return json({ id: 'c-1', object: 'chat.completion', created: 1, model: body.model, choices, usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } })
}

/** Checks that a list begins with another one: its messages keep their bytes. */
function keeps(first, second) {
  assert.ok(JSON.stringify(second).startsWith(JSON.stringify(first).slice(0, -1)), `${JSON.stringify(first)} ${JSON.stringify(second)}`)
}

test('the SDK of Anthropic', () => withStub(async (url, conversation, bodies) => {
  const { default: Anthropic } = await import('@anthropic-ai/sdk')
  const client = new Anthropic({ apiKey: 'none', baseURL: url })
  let turn = await conversation.turn('Hello', { provider: 'anthropic' })
  const { content } = await client.messages.create({ max_tokens: 100, ...turn.payload })
  turn = await conversation.turn('And now?', { messages: [...turn.history, { role: 'assistant', content }], provider: 'anthropic' })
  await client.messages.create({ max_tokens: 100, ...turn.payload })
  const [first, second] = bodies
  assert.deepEqual(first.system, second.system)
  assert.equal(first.system[0].text, 'Be brief.')
  assert.equal(first.system[0].cache_control.type, 'ephemeral')
  assert.deepEqual(second.messages.map((message) => message.role), ['user', 'user', 'assistant', 'user', 'user'])
  assert.deepEqual(JSON.parse(turn.payloadJson).messages, second.messages)
}))

test('the SDK of OpenAI', () => withStub(async (url, conversation, bodies) => {
  const { default: OpenAI } = await import('openai')
  const client = new OpenAI({ apiKey: 'none', baseURL: `${url}/v1` })
  for (const [provider, create, key] of [
    ['openai-responses', (body) => client.responses.create(body), 'input'],
    ['openai-chat', (body) => client.chat.completions.create(body), 'messages'],
  ]) {
    bodies.length = 0
    let turn = await conversation.turn('Hello', { provider, model: 'gpt-5.6-sol' })
    await create(turn.payload)
    turn = await conversation.turn('And now?', { messages: [...turn.history, { role: 'assistant', content: 'Done.' }], provider })
    await create(turn.payload)
    keeps(bodies[0][key], bodies[1][key])
    assert.deepEqual(JSON.parse(turn.payloadJson), bodies[1])
  }
}))

test('the Vercel AI SDK', () => withStub(async (url, conversation, bodies) => {
  const { generateText, wrapLanguageModel } = await import('ai')
  const { createAnthropic } = await import('@ai-sdk/anthropic')
  const { proemMiddleware } = await import('../adapters/ai-sdk.js')
  const providerOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } }
  const middleware = proemMiddleware(conversation, { providerOptions })
  const model = wrapLanguageModel({ model: createAnthropic({ apiKey: 'none', baseURL: `${url}/v1` })('claude-opus-5'), middleware })
  const messages = [{ role: 'user', content: 'Hello' }]
  await generateText({ model, messages })
  await generateText({ model, messages: [...messages, { role: 'assistant', content: 'Done.' }, { role: 'user', content: 'And now?' }] })
  const [first, second] = bodies
  assert.deepEqual(first.system, [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }])
  assert.deepEqual(second.system, first.system)
  assert.equal(first.messages[0].content[0].text, 'Hello\n\nTicket of Hello')
  assert.equal(second.messages[2].content[0].text, 'And now?\n\nTicket of And now?')
  keeps(first.messages, second.messages)
}))

test('the Claude Agent SDK', () => withStub(async (url, conversation, bodies) => {
  const { query } = await import('@anthropic-ai/claude-agent-sdk')
  const { options } = await import('../adapters/claude-agent-sdk.js')
  const env = {
    ...process.env, ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'none', CLAUDE_CONFIG_DIR: join(folder, 'claude'),
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  }
  for await (const _ of query({ prompt: 'Hello', options: await options(conversation, { env, maxTurns: 1, cwd: folder }) }));
  const asked = bodies.filter((body) => JSON.stringify(body.messages ?? '').includes('Hello'))
  assert.ok(asked.length > 0 && JSON.stringify(asked[0].system).includes('Be brief.'))
}))
