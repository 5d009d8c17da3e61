/** The limits of a queue that hold over all processes, apart from its throttle. The store has them; changes go there. */

import * as v from 'valibot'
import { defined } from '../values/defined.js'
import type { Duration } from '../values/duration.js'
import { duration, exactly, whole } from '../values/option-check.js'

/** The most jobs that run at once: of the whole queue, of each of its groups, or both. */
export type MaxRunning = number | { readonly perGroup: number; readonly total?: number }

/** A retention: for how long, and how many; an absent number sets no limit. */
export interface Kept {
  readonly ageMs?: number
  readonly count?: number
}

/** An absent limit has not been said: it stays as it is stored. `'none'`: there shall be no limit. */
export interface QueueLimits {
  readonly maxRunning?: MaxRunning | 'none'
  /** The most waiting jobs; in an ordered queue the most waiting payloads. */
  readonly maxPending?: number | 'none'
  readonly maxCrashes?: number
  /** How many results are kept; each settle brings the age to which its result is kept. */
  readonly resultsCount?: number | 'none'
  /** How long dead jobs are kept, and how many. `{}`: until they are deleted. */
  readonly dead?: Kept
}

/** A retention of dead jobs; an absent number sets no limit. */
interface KeptDead<Age> {
  readonly age?: Age
  readonly count?: number
}

interface LimitsIn<Age> {
  /** The most jobs that run at once. */
  readonly maxRunning: MaxRunning | 'none'
  /** The most waiting jobs, in an ordered queue the most waiting payloads. */
  readonly maxPending: number | 'none'
  /** The number of crashes after which a job is buried. */
  readonly maxCrashes: number
  readonly retention: {
    /** How many results are kept. The age is that of the worker that ends the job. */
    readonly results: { readonly count: number } | 'untilDeleted'
    readonly dead: KeptDead<Age> | 'untilDeleted'
  }
}

/** The limits that hold. */
export type StandingLimits = LimitsIn<number>

/** The limits to change; those that are left out stay. */
export type LimitChange = Partial<Omit<LimitsIn<Duration>, 'retention'>> & {
  readonly retention?: Partial<LimitsIn<Duration>['retention']>
}

/** @internal */
export const maxRunningSchema = v.union([whole(1), exactly({ perGroup: whole(1), total: v.exactOptional(whole(1)) })])

const none = v.literal('none')
const untilDeleted = v.literal('untilDeleted')

/** @internal */
export const limitChangeSchema = exactly({
  maxRunning: v.optional(v.union([maxRunningSchema, none])),
  maxPending: v.optional(v.union([whole(1), none])),
  maxCrashes: v.optional(whole(1)),
  retention: v.optional(
    exactly({
      results: v.optional(v.union([untilDeleted, exactly({ count: whole(0) })])),
      dead: v.optional(v.union([untilDeleted, exactly({ age: v.optional(duration(1)), count: v.optional(whole(0)) })])),
    }),
  ),
})

/** @internal */
export function limitsOfChange({ retention, ...limits }: v.InferOutput<typeof limitChangeSchema>): QueueLimits {
  const { results, dead } = retention ?? {}
  const { maxRunning, maxPending, maxCrashes } = limits
  return {
    ...defined({ maxRunning, maxPending, maxCrashes }),
    ...(results === undefined ? {} : { resultsCount: results === 'untilDeleted' ? 'none' : results.count }),
    ...(dead === undefined ? {} : { dead: keptOf(dead) }),
  }
}

/**
 * The retention that options describe.
 * @internal
 */
export function keptOf(
  keep: { readonly age?: number | undefined; readonly count?: number | undefined } | 'untilDeleted',
): Kept {
  if (keep === 'untilDeleted') return {}
  return defined({ ageMs: keep.age, count: keep.count })
}
