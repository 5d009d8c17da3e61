/** The scripted task: its input says what each attempt does. One task for all tests of the runtime. */

import { bury, cancel, type Duration, defineTask, snooze, UnrecoverableError } from 'millrace'

export type Step = 'ok' | 'result' | 'fail' | 'hang' | 'snooze' | 'bury' | 'cancel' | 'unrecoverable' | 'deaf'
/** The n-th attempt takes the n-th step, the last one for all that follow. */
export type Script = { readonly steps: readonly Step[]; readonly result?: unknown }

/** A scripted task of this name; `max` retries, each due after `backoffMs`. */
export function scriptedTask(
  options: { name?: string; queue?: string; max?: number; backoffMs?: number; timeLimit?: Duration } = {},
) {
  const { name = 'scripted', queue = 'default', max = 3, backoffMs = 0, timeLimit = '10s' } = options
  let snoozed = 0
  return defineTask({
    name,
    queue,
    timeLimit,
    retry: { max, backoff: () => backoffMs },
    async run(input, ctx) {
      const { steps, result } = input as Script
      const step = steps[Math.min(ctx.job.attempt - 1 + snoozed, steps.length - 1)]
      switch (step) {
        case 'ok':
          return undefined
        case 'result':
          return result
        case 'fail':
          throw new Error(`failed at attempt ${ctx.job.attempt}`)
        case 'unrecoverable':
          throw new UnrecoverableError('never again')
        case 'hang':
          return new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
        case 'deaf':
          return new Promise(() => {})
        case 'snooze':
          snoozed += 1
          return snooze(0)
        case 'bury':
          return bury('as told')
        case 'cancel':
          return cancel('as told')
        default:
          throw new Error(`no step ${String(step)}`)
      }
    },
  })
}
