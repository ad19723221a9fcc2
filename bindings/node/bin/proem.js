#!/usr/bin/env node
// Runs the command `proem` of the platform's package.
'use strict'

const { spawnSync } = require('node:child_process')
const { constants } = require('node:os')

const name = `proem-${process.platform}-${process.arch}${process.platform === 'linux' ? '-gnu' : ''}`
let program = process.env.PROEM_BINARY
if (!program) {
  try {
    program = require.resolve(`${name}/proem`)
  } catch {
    console.error(`error: the package ${name}, which has the command, is not installed`)
    console.error('hint: install without `--omit=optional`; or build it from source with cargo')
    process.exit(1)
  }
}
// Signals of the terminal reach the command itself; this process ends when it does.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})
const { status, signal, error } = spawnSync(program, process.argv.slice(2), { stdio: 'inherit' })
if (error) {
  console.error(`error: cannot run ${program}: ${error.message}`)
  process.exit(1)
}
process.exit(signal ? 128 + constants.signals[signal] : status)
