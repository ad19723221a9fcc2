// The surroundings of tests: a workspace of their own, and no configuration of the user.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'

export function inWorkspace() {
  const folder = mkdtempSync(join(tmpdir(), 'proem-node-'))
  for (const name of ['work', 'home', 'config']) mkdirSync(join(folder, name))
  writeFileSync(join(folder, 'work', 'AGENTS.md'), 'Run the tests.\n')
  process.chdir(join(folder, 'work'))
  process.env.HOME = join(folder, 'home')
  process.env.PROEM_CONFIG_DIR = join(folder, 'config')
  for (const name of ['PROEM_PROFILE', 'PROEM_STORE', 'PROEM_TEMPLATE']) delete process.env[name]
  after(() => {
    process.chdir('/')
    rmSync(folder, { recursive: true })
  })
  return folder
}
