/** A project with isolated tasks: its configuration, and the words by which tests follow its processes. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Duration, defineTask, millrace } from 'millrace'
import { onTestFinished } from 'vitest'
import { poll } from '#src/store-testing/servers/poll.js'
import { run } from '../../cli/command-in-process.js'
import { CommandProcess } from '../../cli/command-process.js'
import { project } from '../../cli/project.js'
import { livingIn } from '../../process-group.js'

const tasksFile = `
import { spawn } from 'node:child_process'
import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineTask } from 'millrace'

const once = async (file) => {
  while (!existsSync(file)) await sleep(20)
}
const begun = (id) => appendFileSync('begun.txt', id + ' ' + process.pid + '\\n')

/** Runs until the file is there, whatever becomes of its worker. */
export const wait = defineTask({
  name: 'wait',
  queue: 'long',
  isolate: 'process',
  timeLimit: '1h',
  run: async (file, ctx) => {
    begun(ctx.job.id)
    console.log('waits for', file)
    await ctx.checkpoint({ begun: true, before: ctx.lastCheckpoint ?? null })
    await ctx.fields.set({ child: process.pid, slot: ctx.slot, told: process.env.MILLRACE_SLOT })
    ctx.progress(0.1)
    ctx.progress(0.5, 'half way')
    await once(file)
    return { pid: process.pid }
  },
})
/** The same, and ends with its worker. */
export const brief = defineTask({
  name: 'brief',
  queue: 'long',
  isolate: 'process',
  run: async (file, ctx) => {
    begun(ctx.job.id)
    await once(file)
    return 'done'
  },
})
/** The same, and blocks its event loop for ever. */
export const busy = defineTask({
  name: 'busy',
  queue: 'long',
  isolate: 'process',
  run: (_, ctx) => {
    begun(ctx.job.id)
    for (;;);
  },
})
export const die = defineTask({
  name: 'die',
  queue: 'long',
  isolate: 'process',
  maxHeap: '48MB',
  retry: { max: 1, backoff: () => 0 },
  run: async (how) => {
    console.error('dies by ' + how)
    if (how === 'timer') setTimeout(() => { throw new Error('in a timer') }, 10)
    if (how === 'exit') process.exit(0)
    if (how === 'words') console.error('JavaScript heap out of memory')
    if (how === 'words') process.exit(3)
    // What is printed in the very moment of a kill is lost.
    if (how.startsWith('SIG')) setTimeout(() => process.kill(process.pid, how), 100)
    const hoard = []
    while (how === 'memory') hoard.push(new Array(10_000).fill({}))
    await sleep(60_000)
  },
})
/** Heeds nothing, and neither do the processes that it starts. */
export const deaf = defineTask({
  name: 'deaf',
  queue: 'long',
  isolate: 'process',
  timeLimit: '1h',
  run: async (blocks, ctx) => {
    process.on('SIGTERM', () => {})
    spawn('/bin/sh', ['-c', "trap '' TERM; sleep 600 & sleep 600"], { stdio: 'ignore' })
    await sleep(200)
    begun(ctx.job.id)
    while (blocks) {}
    for (;;) await sleep(1_000)
  },
})
`

const configFile = (lease: string) => `
import { millrace } from 'millrace'
import { brief, busy, deaf, die, wait } from './tasks.js'

export default millrace({
  store: process.env['MILLRACE_STORE'] ?? 'sqlite:jobs.db',
  queues: { long: { lease: '${lease}' } },
  tasks: [wait, brief, busy, die, deaf],
})
`

/** As their producers know them. */
export const wait = defineTask({ name: 'wait', queue: 'long' })
export const brief = defineTask({ name: 'brief', queue: 'long' })
export const busy = defineTask({ name: 'busy', queue: 'long' })
export const die = defineTask({ name: 'die', queue: 'long' })
export const deaf = defineTask({ name: 'deaf', queue: 'long' })

export type LongProject = Awaited<ReturnType<typeof longProject>>

/** A folder with the project, and a mill on its store that only enqueues and looks. */
export async function longProject(store?: string, lease: Duration = '3s') {
  const folder = project({
    'tasks.js': tasksFile,
    'millrace.config.js': configFile(String(lease)),
    'package.json': '{"type":"module"}',
  })
  const descriptor = store ?? `sqlite:${join(folder, 'jobs.db')}`
  const tasks = [wait, brief, busy, die, deaf]
  const mill = millrace({ store: descriptor, queues: { long: { lease } }, tasks })
  onTestFinished(() => mill.close())
  const env = { MILLRACE_STORE: descriptor }
  return {
    folder,
    env,
    mill,
    file: (name: string) => join(folder, name),
    worker: (...args: string[]) => new CommandProcess(['work', '--json', ...args], { cwd: folder, env }),
    /** On a host of that name, as far as anybody is told. */
    workerOn: (host: string, ...args: string[]) =>
      new CommandProcess(['work', '--json', ...args], { cwd: folder, env: { ...env, MILLRACE_HOST: host } }),
    run: (args: string[]) => run(args, { cwd: folder, env }),
    /** `id pid` of each handler that has begun. */
    begun: () => begunIn(folder),
  }
}

function begunIn(folder: string): { id: string; pid: number }[] {
  if (!readdirSync(folder).includes('begun.txt')) return []
  const lines = readFileSync(join(folder, 'begun.txt'), 'utf8').split('\n')
  // It is there before its first line is, and each line ends with a break.
  return lines
    .slice(0, -1)
    .map((line) => line.split(' '))
    .map(([id, pid]) => ({ id: id!, pid: Number(pid) }))
}

/** As soon as so many handlers have begun. */
export function begins(of: LongProject, count = 1): Promise<{ id: string; pid: number }[]> {
  return poll(async () => (of.begun().length >= count ? of.begun() : undefined), {
    what: `${count} handlers have begun`,
    withinMs: 20_000,
  })
}

/** Ms until the group is dead. */
export async function deadAfter(group: number, withinMs: number): Promise<number> {
  const startedAt = performance.now()
  await poll(async () => (livingIn(group).length === 0 ? true : undefined), {
    what: `group ${group} is dead`,
    withinMs,
  })
  return performance.now() - startedAt
}
