/** A run under a throttle: a plan is carried out by eight processes, and what started is judged by the plan's own rules. */

import type { ThrottleRule } from '#src/core/queue/throttle.js'
import {
  counterAfter,
  counterAt,
  counterAtRest,
  decide,
  firstCounter,
} from '#src/stores/rules/throttle/throttle-counter.js'
import type { RunPlan } from './throttle-plan.js'

/** What carries a plan out: a store with its processes, or something that only says it keeps the rules. */
export interface Contestant {
  /** Prepares for a plan whose queue nobody has used before. */
  begin(plan: RunPlan): Promise<void>
  /** The clock moves on, and jobs of these groups come in. */
  advance(afterMs: number, arrivals: readonly string[]): Promise<void>
  /** One process asks for so many; the groups of the jobs that it was given, and completed. */
  claim(process: number, limit: number): Promise<readonly string[]>
}

interface Start {
  readonly at: number
  readonly group: string
}

export interface RunVerdict {
  readonly started: number
  /** Closed windows that held more than their limit. */
  readonly violations: number
  /**
   * Ticks at which another number started than the rules permit, where that does not depend on who comes first: not where
   * groups are counted by themselves, nor where the first of several claims may let the next catch up.
   */
  readonly deviations: number
}

export async function carriedOut(plan: RunPlan, contestant: Contestant): Promise<RunVerdict> {
  const { by, rules } = plan.throttle
  await contestant.begin(plan)
  const starts: Start[] = []
  let at = 0
  let ready = 0
  let deviations = 0
  let state = firstCounter(rules)
  const isElastic = rules.some(({ elasticBuffer }) => elasticBuffer !== undefined)
  for (const { afterMs, arrivals, claims } of plan.ticks) {
    at += afterMs
    ready += arrivals.length
    await contestant.advance(afterMs, arrivals)
    const given = (await Promise.all(claims.map(({ process, limit }) => contestant.claim(process, limit)))).flat()
    starts.push(...given.map((group) => ({ at, group })))
    if (by === 'queue') {
      const want = claims.reduce((sum, { limit }) => sum + limit, 0)
      const isForeseen = claims.length === 1 || !isElastic
      if (isForeseen && decide(state, rules, at, want, ready).granted !== given.length) deviations += 1
      const begun = counterAt(state, rules, at)
      const after = given.length > 0 ? counterAfter(begun, rules, at, given.length) : begun
      state = ready > given.length ? after : counterAtRest(after, rules)
    }
    ready -= given.length
  }
  const groups = [...new Set(starts.map(({ group }) => group))]
  const counted = by === 'queue' ? [starts] : groups.map((one) => starts.filter(({ group }) => group === one))
  const violations = counted.flatMap((together) => rules.map((rule) => violationsOf(rule, together)))
  return { started: starts.length, violations: violations.reduce((sum, count) => sum + count, 0), deviations }
}

/** How many closed windows that begin with a start hold too many. */
function violationsOf({ limit, windowMs }: ThrottleRule, starts: readonly Start[]): number {
  // In order: the start that is `limit` places behind must lie outside.
  return starts.filter(({ at }, i) => (starts[i + limit]?.at ?? Number.POSITIVE_INFINITY) - at <= windowMs).length
}
