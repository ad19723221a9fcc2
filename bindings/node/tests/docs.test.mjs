// The examples of the documentation run, against a provider on the loopback interface.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { inWorkspace } from './workspace.mjs'

const folder = inWorkspace()
const root = process.env.PROEM_ROOT ?? fileURLToPath(new URL('../../..', import.meta.url))

for (const [page, language] of [['docs/node.md', 'typescript'], ['bindings/node/README.md', 'js']]) {
  test(`the example of ${page} runs`, async () => {
    const [, text] = readFileSync(join(root, page), 'utf8').match(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's'))
    const code = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('//'))
    assert.ok(code.length <= 25, `${code.length} lines`)
    const server = createServer((request, response) => {
      request.resume().on('end', () => {
        const usage = { input_tokens: 1, output_tokens: 1 }
        const content = [{ type: 'text', text: 'Done.' }]
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ id: 'm', type: 'message', role: 'assistant', model: 'm', content, stop_reason: 'end_turn', stop_sequence: null, usage }))
      })
    })
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    // Beside the package, so that `proem` is found by its name.
    const examples = fileURLToPath(new URL('../examples', import.meta.url))
    mkdirSync(examples, { recursive: true })
    const path = join(examples, `${language}.mjs`)
    // Versions of Node before 22.18 do not strip types.
    const { module, target } = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 }
    writeFileSync(path, ts.transpileModule(text, { compilerOptions: { module, target } }).outputText)
    const env = { ...process.env, ANTHROPIC_BASE_URL: `http://127.0.0.1:${server.address().port}`, ANTHROPIC_API_KEY: 'none' }
    const child = spawn(process.execPath, [path], { cwd: join(folder, 'work'), env })
    let said = ''
    let wrong = ''
    child.stdout.on('data', (chunk) => (said += chunk))
    child.stderr.on('data', (chunk) => (wrong += chunk))
    const status = await new Promise((resolve) => child.on('close', resolve))
    server.close()
    assert.equal(status, 0, wrong)
    if (language === 'typescript') {
      const lines = said.trim().split('\n').map((line) => line.split(' '))
      assert.deepEqual(lines.map(([epoch]) => epoch), ['1', '1'])
      assert.equal(lines[0][1], lines[1][1])
    }
  })
}
