/** The options of a throttle, their check, and the throttle that they describe. */

import * as v from 'valibot'
import { defined } from '../values/defined.js'
import type { Duration } from '../values/duration.js'
import { isQueueName, queueNameForm } from '../values/ids.js'
import { duration, exactly, whole } from '../values/option-check.js'
import { startSpreadMs, type Throttle, type ThrottleRule } from './throttle.js'

/** A limit on the jobs that start in any window of time. */
export interface ThrottleOptions {
  /** The most jobs that start in any window of that length, wherever it begins; 1 … 1,000,000. */
  readonly limit: number
  /** The length of the window, 1 ms … 366 days. */
  readonly window: Duration
  /** Spaces starts evenly, one in each `window / limit`. Default false; with a limit of 1 it has no effect. */
  readonly moderate?: boolean | undefined
  /**
   * With `moderate`: if starts fell behind although there were jobs, they may catch up as long as more than `buffer`
   * starts of the window are unused. Default: they may not.
   */
  readonly elastic?: { readonly buffer: number } | undefined
  /**
   * Whether the limit holds for the whole queue, or for each group of its jobs separately. A list may have both: then
   * both hold. Default `'queue'`.
   */
  readonly by?: 'queue' | 'group' | undefined
  /** The scope of the limit: queues that name the same scope share it. Default: the name of the queue. */
  readonly scope?: string | undefined
}

/** Instants on the grid are whole µs. A double holds them without loss for windows far longer than this. */
const longestWindowMs = 366 * 86_400_000

const one = v.pipe(
  exactly({
    limit: whole(1, 1_000_000),
    window: duration(1, longestWindowMs),
    moderate: v.optional(v.boolean()),
    elastic: v.optional(exactly({ buffer: whole(0) })),
    by: v.optional(v.picklist(['queue', 'group'])),
    scope: v.optional(v.custom<string>(isQueueName, `must be ${queueNameForm}`)),
  }),
  v.check(
    ({ moderate, elastic }) => elastic === undefined || moderate === true,
    '`elastic` needs `moderate: true`: only an even tempo can fall behind',
  ),
  v.check(
    ({ limit, elastic }) => elastic === undefined || elastic.buffer < limit,
    '`elastic.buffer` must be less than `limit`, or there is nothing to catch up with',
  ),
)

const several = v.pipe(
  v.array(one),
  v.minLength(1, 'must name at least one window, or be left out'),
  v.check(
    (rules) => new Set(rules.map(({ window, by = 'queue' }) => `${by} ${window}`)).size === rules.length,
    'must have different windows: of two with the same one only the lower limit would count',
  ),
  v.check((rules) => new Set(rules.map(({ scope = '' }) => scope)).size <= 1, 'must have one `scope` for all windows'),
)

// Not a union: an array of throttles passes for an object of them, and each mistake would be reported twice.
/** @internal */
export const throttleSchema = v.lazy((given) => (Array.isArray(given) ? several : one))

type Checked = v.InferOutput<typeof one>

/**
 * The throttle of a queue that checked options describe.
 * @internal
 */
export function throttleOf(queue: string, options: Checked | readonly Checked[]): Throttle {
  const all: readonly Checked[] = Array.isArray(options) ? options : [options as Checked]
  const { scope = queue } = all[0]!
  const ofQueue = all.filter(({ by = 'queue' }) => by === 'queue')
  const ofGroups = all.filter(({ by }) => by === 'group')
  if (ofQueue.length === 0) return { scope, by: 'group', rules: rulesOf(ofGroups) }
  return {
    ...{ scope, by: 'queue', rules: rulesOf(ofQueue) },
    ...(ofGroups.length === 0 ? {} : { eachGroup: rulesOf(ofGroups) }),
  }
}

/** Sorted by window, so the order in which a process lists them does not matter. */
function rulesOf(windows: readonly Checked[]): ThrottleRule[] {
  return windows
    .map(({ limit, window, moderate = false, elastic }) => ({
      limit,
      windowMs: window,
      spreadMs: startSpreadMs(window),
      moderate,
      ...defined({ elasticBuffer: elastic?.buffer }),
    }))
    .sort((a, b) => a.windowMs - b.windowMs)
}
