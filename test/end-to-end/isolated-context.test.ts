/** What the handler of an isolated task needs: opened and closed in each of its processes. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Mill, Task } from 'millrace'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../cli/project.js'

it('a process of an isolated job opens its context, again if that fails, and closes it before it ends', {
  timeout: 60_000,
}, async () => {
  const folder = mkdtempSync(join(root, 'test/end-to-end/context-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [module, ledger] = [join(folder, 'encode.mjs'), join(folder, 'ledger.txt')]
  writeFileSync(ledger, '')
  writeFileSync(
    module,
    `
import { appendFileSync } from 'node:fs'
import { defineTask, millrace } from 'millrace'
const tell = (line) => appendFileSync(${JSON.stringify(ledger)}, line + ' in ' + process.pid + '\\n')
export const encode = defineTask({
  name: 'encode',
  isolate: 'process',
  module: import.meta.url,
  env: [],
  async run(_, ctx) {
    tell('job with ' + ctx.context.db)
    return { attempt: ctx.job.attempt, pid: process.pid }
  },
})
let tries = 0
export const mill = millrace({
  store: ${JSON.stringify(`sqlite:${join(folder, 'jobs.db')}`)},
  tasks: [encode],
  async context() {
    tries += 1
    tell('try ' + tries)
    if (tries < 3) throw new Error('no database')
    return { db: 'shop', [Symbol.asyncDispose]: async () => tell('close') }
  },
})
`,
  )
  const { encode, mill } = (await import(pathToFileURL(module).href)) as {
    encode: Task<'encode', unknown, unknown, { attempt: number; pid: number }>
    mill: Mill
  }
  onTestFinished(() => mill.close())
  const job = await mill.enqueue(encode, {})
  await mill.worker().start()
  const { attempt, pid } = await job.result()
  await mill.close()

  expect(attempt).toBe(1)
  const lines = ['try 1', 'try 2', 'try 3', 'job with shop', 'close'].map((line) => `${line} in ${pid}\n`)
  expect(readFileSync(ledger, 'utf8')).toBe(lines.join(''))
})
