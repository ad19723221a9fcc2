// The package as a module of ECMAScript.
import proem from './index.js'

export const {
  ProemError, RequestError, BuildError, NotFoundError, ConflictError, StoreError,
  Prompt, Turn, Store, Conversation, build, buildSync, open, diff, check, compat, report, version,
} = proem
export default proem
