#!/usr/bin/env node
// Runs the command `proem` of the platform's package.
'use strict'

const { spawn } = require('node:child_process')
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
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' })
// A terminal sends SIGINT to both processes; the others are passed on. This process ends when the command does.
process.on('SIGINT', () => {})
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('error', (error) => {
  console.error(`error: cannot run ${program}: ${error.message}`)
  process.exit(1)
})
child.on('exit', (status, signal) => process.exit(signal ? 128 + constants.signals[signal] : status))
