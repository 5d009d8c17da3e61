/** A project: a user's folder with files of its own, in which `millrace` is installed. */

import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { killingAllIn } from '../process-group.js'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Tasks whose handlers say on stdout that they run, as a line of JSON; `hold` runs until the file it is given is there.
 * The others do what handlers should not: `spin` blocks the event loop for so many ms, half a minute or more in effect for
 * ever; `abort`, `quit` and `stray` end their process.
 */
export const tasksFile = `
import { existsSync } from 'node:fs'
import { defineTask } from 'millrace'

const say = (event, id) => process.stdout.write(JSON.stringify({ event, id, pid: process.pid }) + '\\n')

export const echo = defineTask({
  name: 'echo',
  run: async (input, ctx) => {
    say('test.running', ctx.job.id)
    return { input, meta: ctx.job.meta }
  },
})
export const greet = defineTask({
  name: 'greet',
  input: {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value) => (typeof value === 'string' ? { value } : { issues: [{ message: 'must be a name' }] }),
    },
  },
  run: async (name) => name,
})
export const fail = defineTask({
  name: 'fail',
  retry: { max: 0 },
  run: async (message, ctx) => {
    say('test.running', ctx.job.id)
    throw new Error(message)
  },
})
export const hold = defineTask({
  name: 'hold',
  queue: 'slow',
  run: async (file, ctx) => {
    say('test.running', ctx.job.id)
    while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 20))
    return 'held'
  },
})
export const spin = defineTask({
  name: 'spin',
  run: async ({ afterMs, forMs }, ctx) => {
    say('test.running', ctx.job.id)
    await new Promise((resolve) => setTimeout(resolve, afterMs))
    say('test.spinning', ctx.job.id)
    const end = performance.now() + forMs
    while (performance.now() < end);
  },
})
export const abort = defineTask({ name: 'abort', run: async () => process.abort() })
export const quit = defineTask({ name: 'quit', run: async () => process.exit(0) })
export const stray = defineTask({
  name: 'stray',
  run: async () => {
    for (const ms of [50, 100]) setTimeout(() => { throw new Error('stray after ' + ms + ' ms') }, ms)
  },
})
`

export const configFile = `
import { millrace } from 'millrace'
import { abort, echo, fail, greet, hold, quit, spin, stray } from './tasks.js'

export default millrace({
  store: process.env['MILLRACE_STORE'] ?? 'sqlite:jobs.db',
  queues: { default: { weight: 40 }, slow: { weight: 5 } },
  tasks: [echo, greet, fail, hold, spin, abort, quit, stray],
})
`

/** In JavaScript: a transpiler would be loaded by each command anew, for the files of each project are seen once. */
export const projectFiles: Readonly<Record<string, string>> = {
  'package.json': '{"type":"module"}',
  'tasks.js': tasksFile,
  'millrace.config.js': configFile,
}

/** A fresh folder with these files, removed at the end of the test. */
export function project(files = projectFiles): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  const killAll = killingAllIn(folder)
  onTestFinished(async () => {
    killAll()
    // A process that was killed at the end may still be writing. Each attempt looks anew what is there, as `rmSync` does not.
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  })
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules', 'millrace'))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}
