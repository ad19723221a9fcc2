// Builds the addon with cargo, in the build directory of the workspace, and puts it beside `native.js`.
//   npm run build              optimised
//   npm run build -- --debug   quickly
// `npm run generate` writes `native.js` and `native.d.ts` again, after a change of the native part.
import { execFileSync } from 'node:child_process'
import { copyFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const isDebug = process.argv.includes('--debug')
const profile = isDebug ? [] : ['--release']
const cargo = process.env.CARGO ?? 'cargo'
try {
  execFileSync(cargo, ['build', '--locked', '--package', 'proem-node', ...profile], { cwd: here, stdio: 'inherit' })
} catch (error) {
  console.error(error.code === 'ENOENT' ? `error: ${cargo} is not installed\nhint: see https://rustup.rs` : 'error: cargo failed')
  process.exit(1)
}
const read = (key) => JSON.parse(execFileSync(cargo, ['metadata', '--no-deps', '--format-version', '1'], { cwd: here, maxBuffer: 1 << 28 }))[key]
const library = process.platform === 'darwin' ? 'libproem_node.dylib' : 'libproem_node.so'
const platform = `${process.platform}-${process.arch}${process.platform === 'linux' ? '-gnu' : ''}`
const addon = join(here, `proem.${platform}.node`)
// A process that has the old file open keeps it.
rmSync(addon, { force: true })
copyFileSync(join(read('target_directory'), isDebug ? 'debug' : 'release', library), addon)
console.log(addon)
