/** The tasks of the proof of long work, as `millrace work` loads them. */

import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { type Duration, defineTask, millrace } from 'millrace'

const log = process.env['LONG_LOG'] ?? ''

/** One line for each thing that a handler does; each is written at once, whatever becomes of its process. */
function say(what: string, id: string): void {
  appendFileSync(log, `${what} ${id} ${process.pid} ${Date.now()} ${Math.round(performance.timeOrigin)}\n`)
}

const isolated = { queue: 'long', isolate: 'process', env: ['LONG_LOG', 'LONG_LEASE'] } as const

/** Works for so many ms, and says each second how far it is. */
export const steady = defineTask({
  name: 'steady',
  ...isolated,
  timeLimit: 'none',
  run: async (input, ctx) => {
    const ms = Number(input)
    say('begun', ctx.job.id)
    for (let done = 0; done < ms; done += 1_000) {
      await delay(Math.min(1_000, ms - done))
      ctx.progress(done / ms, `${done} ms`)
      await ctx.checkpoint({ done })
    }
    say('ended', ctx.job.id)
    return ms
  },
})
/** Ends with its worker, and works for so many ms where it is run again. */
export const bound = defineTask({
  name: 'bound',
  ...isolated,
  onSupervisorLoss: 'exit',
  run: async (input, ctx) => {
    say('begun', ctx.job.id)
    await delay(Number(input))
    say('ended', ctx.job.id)
  },
})
/** Heeds nothing, and neither do the processes that it starts. */
export const deaf = defineTask({
  name: 'deaf',
  ...isolated,
  timeLimit: 'none',
  run: async (blocks, ctx) => {
    process.on('SIGTERM', () => {})
    ctx.signal.addEventListener('abort', () => say('told', ctx.job.id))
    spawn('/bin/sh', ['-c', "trap '' TERM; sleep 600 & sleep 600"], { stdio: 'ignore' })
    await delay(200)
    say('begun', ctx.job.id)
    while (blocks === true) {}
    for (;;) await delay(1_000)
  },
})
/** Dies, each time in the way that it is told. */
export const dying = defineTask({
  name: 'dying',
  ...isolated,
  maxHeap: '48MB',
  retry: { max: 1, backoff: () => 0 },
  run: async (how) => {
    console.error(`dies by ${String(how)}`)
    if (how === 'exit') process.exit(0)
    if (how === 'timer')
      setTimeout(() => {
        throw new Error('in a timer')
      }, 10)
    if (how === 'SIGKILL' || how === 'SIGSEGV') setTimeout(() => process.kill(process.pid, how), 100)
    const hoard: unknown[] = []
    while (how === 'oom') hoard.push(new Array(10_000).fill({}))
    await delay(60_000)
  },
})
/** Nothing to do: what a process costs. */
export const blank = defineTask({ name: 'blank', ...isolated, run: async () => null })

export default millrace({
  store: process.env['MILLRACE_STORE'] ?? 'sqlite:jobs.db',
  queues: { long: { lease: (process.env['LONG_LEASE'] ?? '3s') as Duration } },
  tasks: [steady, bound, deaf, dying, blank],
})
