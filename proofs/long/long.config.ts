/** The tasks of the proof of long work, in the form that `millrace work` loads. */

import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { type Duration, defineTask, millrace } from 'millrace'

const log = process.env['LONG_LOG'] ?? ''

/** Writes a line to the log at once, so that it survives the process. */
function say(what: string, id: string): void {
  appendFileSync(log, `${what} ${id} ${process.pid} ${Date.now()} ${Math.round(performance.timeOrigin)}\n`)
}

const isolated = { queue: 'long', isolate: 'process', env: ['LONG_LOG', 'LONG_LEASE'] } as const

/** Works for the given ms, and reports its progress each second. */
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
/** Ends with its worker. In a later run it works for the given ms. */
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
/** Ignores everything, and so do the processes that it starts. */
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
/** Dies each time, in the way that its input names. */
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
/** Does nothing, to show the cost of a process. */
export const blank = defineTask({ name: 'blank', ...isolated, run: async () => null })

export default millrace({
  store: process.env['MILLRACE_STORE'] ?? 'sqlite:jobs.db',
  queues: { long: { lease: (process.env['LONG_LEASE'] ?? '3s') as Duration } },
  tasks: [steady, bound, deaf, dying, blank],
})
