// Uses of the package that must have types: `npm run types` compiles this file.
import proem, { build, open, ProemError, type Answer, type Turn } from 'proem'

const prompt = await build({ cwd: '.', model: 'claude-opus-5', tools: [{ name: 'read' }], perPrompt: { messages: [] } })
const system: string | null = prompt.system
const store = await open('memory:')
const conversation = store.conversation('c-1', { mcp_servers: ['a'], variables: { 'user:name': null } })
conversation.beforeAgentStart((event) => ({ message: `${event.prompt} ${event.model ?? ''}` }))
conversation.context(async ({ messages }) => messages.slice(-1))
conversation.resourcesDiscover(() => ({ skillPaths: ['skills'] }))
const turn: Turn = await conversation.turn('Hello', { provider: 'anthropic', ttl: '1h', messages: '[]' })
const plan: Answer = await conversation.plan()
const said = new ProemError('a').code + system + turn.digest + plan.json + proem.version
// @ts-expect-error a number is not a text
await build({ system: 1 })
// @ts-expect-error there is no such field
await build({ no_such_field: 1 })
// @ts-expect-error hooks answer with an object
conversation.beforeAgentStart(() => 3)
export default said
