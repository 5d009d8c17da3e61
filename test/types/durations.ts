/** Durations, as the compiler reads them; and what ends with its block. Checked by `npm run types`; never run. */

import {
  type Duration,
  defineTask,
  exponential,
  type Mill,
  millrace,
  snooze,
  type ThrottledQueue,
  type Worker,
} from 'millrace'
import { expectTypeOf } from 'vitest'

export const taken: Duration[] = [
  0,
  1_500,
  '500ms',
  '30s',
  '5m',
  '1h30m',
  '1d12h30m',
  '1w2d3h4m5s6ms',
  '1.5h',
  '2w',
  '7d',
]
const minutes = 5
export const made: Duration = `${minutes}m`
// @ts-expect-error 1: a unit there is not
export const misspelt: Duration = '5 minuets'
// @ts-expect-error 2: units are short
export const long: Duration = '5minutes'
// @ts-expect-error 3: no unit
export const bare: Duration = '500'
// @ts-expect-error 4: no number
export const wordy: Duration = 'soon'
// @ts-expect-error 5: no months
export const month: Duration = '1mo'
declare const grace: string
// @ts-expect-error 6: text that may be anything
export const unread: Duration = grace
export const asserted: Duration = grace as Duration
const task = defineTask({ name: 'task', timeLimit: '5m', slowAfter: 500 })
const mill = millrace({ store: 'memory:', tasks: [task], queues: { a: { lease: '30s' } } })
// @ts-expect-error 7: a delay
await mill.enqueue(task, 1, { delay: '5 minuets' })
// @ts-expect-error 8: a time limit
defineTask({ name: 'task', timeLimit: '1 hour' })
// @ts-expect-error 9: a lease
millrace({ store: 'memory:', queues: { a: { lease: '30 s.' } } })
// @ts-expect-error 10: the window of a throttle
millrace({ store: 'memory:', queues: { a: { throttle: { limit: 1, window: 'minute' } } } })
// @ts-expect-error 11: a grace
mill.worker({ grace: 'never' })
mill.worker({ grace: 'none' })
// @ts-expect-error 12: a snooze
snooze('later')
// @ts-expect-error 13: a backoff
exponential({ base: 'slow' })
// @ts-expect-error 14: a timeout
await mill.job('x').result({ timeout: '1min' })
// @ts-expect-error 15: smaller units first
export const turned: Duration = '30m1h'

// What `await using` ends
export async function scoped() {
  await using one = millrace({ store: 'memory:', tasks: [task] })
  expectTypeOf(one).toExtend<Mill & AsyncDisposable>()
  await using worker = one.worker()
  expectTypeOf(worker).toExtend<Worker & AsyncDisposable>()
  await using listener = one.listener('default')
  expectTypeOf(listener).toExtend<AsyncDisposable>()
  await using pages = one.throttledQueue<string>('pages', { limit: 1, window: '1s' })
  expectTypeOf(pages).toExtend<ThrottledQueue<string> & AsyncDisposable>()
}
