/** The tasks of the proof of long work, as `millrace work` loads them. */

import { appendFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace } from 'millrace'

const log = process.env['LONG_LOG'] ?? ''

/** One line for each thing that a handler does; each is written at once, whatever becomes of its process. */
function say(what: string, id: string): void {
  appendFileSync(log, `${what} ${id} ${process.pid} ${Date.now()}\n`)
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
/** Nothing to do: what a process costs. */
export const blank = defineTask({ name: 'blank', ...isolated, run: async () => null })

export default millrace({
  store: process.env['MILLRACE_STORE'] ?? 'sqlite:jobs.db',
  queues: { long: { lease: process.env['LONG_LEASE'] ?? '3s' } },
  tasks: [steady, blank],
})
