/**
 * The tasks of the worker proofs: jobs that behave, and jobs that do what handlers must not. The store and the lease
 * come from the environment.
 */

import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { type Duration, defineTask, millrace, type StoreDescriptor } from 'millrace'

/** Writes a line for each run. The audit of the store cannot know how often a handler was called. */
function note(what: string, id: string): void {
  const file = process.env['HAZARD_LOG']
  if (file !== undefined) appendFileSync(file, `${what} ${id} ${process.pid}\n`)
}

export const innocent = defineTask({
  name: 'innocent',
  async run(ms, ctx) {
    note('run', ctx.job.id)
    await delay(ms as number)
  },
})

export type Poison = 'abort' | 'segfault' | 'memory' | 'exit'

export const poison = defineTask({
  name: 'poison',
  timeLimit: '10m',
  async run(kind, ctx) {
    note('poison', ctx.job.id)
    await delay(20)
    if (kind === 'abort') process.abort()
    if (kind === 'segfault') process.kill(process.pid, 'SIGSEGV')
    if (kind === 'exit') process.exit(0)
    const hoard: unknown[] = []
    for (;;) hoard.push(Array.from({ length: 1_000_000 }, (_, i) => ({ i })))
  },
})

export const spin = defineTask({
  name: 'spin',
  timeLimit: '10m',
  run(ms, ctx) {
    note('spin', ctx.job.id)
    for (const until = performance.now() + (ms as number); performance.now() < until; );
  },
})

/** Spins in its first run, and ends at once in every later run. */
export const spinOnce = defineTask({
  name: 'spin-once',
  timeLimit: '10m',
  run(ms, ctx) {
    const file = process.env['HAZARD_LOG']!
    const isRepeated = existsSync(file) && readFileSync(file, 'utf8').includes(`spin ${ctx.job.id} `)
    note('spin', ctx.job.id)
    for (const until = performance.now() + (ms as number); !isRepeated && performance.now() < until; );
  },
})

export const deaf = defineTask({
  name: 'deaf',
  timeLimit: 500,
  retry: { max: 0 },
  run(_, ctx) {
    note('deaf', ctx.job.id)
    return new Promise(() => {})
  },
})

export const patient = defineTask({
  name: 'patient',
  timeLimit: '10m',
  async run(ms, ctx) {
    note('begin', ctx.job.id)
    try {
      await delay(ms as number, undefined, { signal: ctx.signal })
    } catch {
      note('abort', ctx.job.id)
      throw ctx.signal.reason
    }
    note('end', ctx.job.id)
  },
})

/** Never ends, despite its signal, within a time limit that no proof waits for. */
export const stubborn = defineTask({
  name: 'stubborn',
  timeLimit: '10m',
  run(_, ctx) {
    note('begin', ctx.job.id)
    return new Promise(() => {})
  },
})

/** Like `patient`, on a queue whose claims take ten jobs for one slot. */
export const batched = defineTask({
  name: 'batched',
  queue: 'batches',
  async run(ms, ctx) {
    note('begin', ctx.job.id)
    await delay(ms as number)
  },
})

/** The options that both sides of a proof share. */
export const hazards = (lease: Duration) => ({
  queues: { default: { lease }, batches: { renewLease: false } },
  tasks: [innocent, poison, spin, spinOnce, deaf, patient, stubborn, batched],
})

export default millrace({
  store: JSON.parse(process.env['HAZARD_STORE'] ?? '"memory:"') as StoreDescriptor,
  ...hazards((process.env['HAZARD_LEASE'] ?? '3s') as Duration),
})
