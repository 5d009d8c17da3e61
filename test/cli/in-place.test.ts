/** Commands that ask a SQLite store once and end: they start no thread for it. */

import { expect, it } from 'vitest'
import { CommandProcess } from './command-process.js'
import { project } from './project.js'

/** Ends the process if it starts a thread. */
const noThreads = `data:text/javascript,${encodeURIComponent(`
import { syncBuiltinESMExports } from 'node:module'
import threads from 'node:worker_threads'
threads.Worker = class { constructor() { throw new Error('a thread was started') } }
syncBuiltinESMExports()
`)}`

const files = {
  'package.json': '{"type":"module"}',
  'millrace.config.js': `
import { defineTask } from 'millrace'
export default { store: 'sqlite:jobs.db', tasks: [defineTask({ name: 'mail' })] }
`,
}

it('a command that makes one call to the store starts no thread', async () => {
  const cwd = project(files)
  const env = { NODE_OPTIONS: `--import ${noThreads}` }
  for (const args of [
    ['enqueue', 'mail', '{}'],
    ['stats'],
    ['jobs', 'list', 'default'],
    ['queues', 'pause', 'default'],
    ['doctor'],
  ])
    expect(await new CommandProcess(args, { cwd, env }).ended).toMatchObject({ code: 0, stderr: '' })
})

it('a command that sends line after line starts one thread, and keeps reading while the store works', async () => {
  const cwd = project(files)
  const env = { NODE_OPTIONS: `--import ${noThreads}` }
  const { code, stderr } = await new CommandProcess('enqueue mail -', { cwd, env, input: '{}\n' }).ended
  expect(code).not.toBe(0)
  expect(stderr).toContain('a thread was started')
})
