// Measures a build and a later turn: `overhead.mjs ROUNDS REQUEST STORE` prints the least nanoseconds of each as JSON.
import * as proem from '../index.mjs'

/** Returns the least time of a call. */
async function least(rounds, work) {
  let found = Infinity
  for (let round = 0; round < rounds; round++) {
    const start = process.hrtime.bigint()
    await work()
    found = Math.min(found, Number(process.hrtime.bigint() - start))
  }
  return found
}

const rounds = Number(process.argv[2])
const request = JSON.parse(process.argv[3])
const build = await least(rounds / 10, () => proem.build(request))
const store = await proem.open(process.argv[4])
const conversation = store.conversation('c-1', request)
await conversation.turn('Hello', { provider: 'anthropic' })
const turn = await least(rounds, () => conversation.turn('And now?', { provider: 'anthropic' }))
await store.close()
console.log(JSON.stringify({ build, turn }))
