/**
 * The tasks of the chains: parents that die between the calls that enqueue their children, in a worker and in processes
 * of their own. Each process of the drill loads this file.
 */

import { appendFileSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, type JobContext, millrace } from 'millrace'
import { type Chain, logOf } from './chain-log.js'

const { MILLRACE_STORE: store = 'memory:', CHAIN_FOLDER: folder = '.' } = process.env

const note = (what: string, line: string) => appendFileSync(logOf(folder, what), `${line}\n`)

export const child = defineTask({
  name: 'child',
  queue: 'children',
  run: async (input, ctx) => note('children', `${ctx.job.id} ${JSON.stringify(input)}`),
})

export const parent = defineTask({ name: 'parent', queue: 'parents', timeLimit: '5m', run: enqueueAll })
export const apart = defineTask({
  name: 'apart',
  queue: 'apart',
  isolate: 'process',
  module: import.meta.url,
  env: ['CHAIN_FOLDER', 'MILLRACE_STORE'],
  // The job fails when its process dies.
  retry: { max: 1_000, backoff: () => 0 },
  run: enqueueAll,
})

/** Each run dies one call later than the run before: after the call or during it. */
async function enqueueAll(input: unknown, ctx: JobContext): Promise<number> {
  const { children, kills } = input as Chain
  const { task, id } = ctx.job
  note(task, id)
  const run = readFileSync(logOf(folder, task), 'utf8').split('\n').length - 1
  for (let n = 0; n < children; n += 1) {
    const call =
      n % 5 === 4
        ? ctx.enqueueMany(child, parts(id, n), (_, part) => ({ key: `${n} ${part}` }))
        : ctx.enqueue(child, { of: id, n })
    if (n !== run - 1 || run > kills) await call
    else if (run % 2 === 0) await call.then(die)
    else await delay((run * 7) % 5).then(die)
  }
  return run
}

const parts = (of: string, n: number) => [0, 1, 2].map((part) => ({ of, n, part }))

function die(): Promise<never> {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
}

export default millrace({
  store,
  queues: {
    parents: { maxCrashes: 1_000, lease: '3s', longPoll: '200ms' },
    apart: { lease: '3s', longPoll: '200ms' },
    children: {},
  },
  tasks: [child, parent, apart],
})
