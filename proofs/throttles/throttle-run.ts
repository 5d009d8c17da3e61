/** A run under a throttle: eight processes carry out a plan, and the starts are judged by the plan's own rules. */

import type { ThrottleRule } from '#src/core/queue/throttle.js'
import {
  counterAfter,
  counterAt,
  counterAtRest,
  decide,
  firstCounter,
} from '#src/stores/rules/throttle/throttle-counter.js'
import type { RunPlan } from './throttle-plan.js'

/** A contestant that carries out a plan: a store with its processes, or a rival that only claims to keep the rules. */
export interface Contestant {
  /** Prepares for a plan on a queue that was never used. */
  begin(plan: RunPlan): Promise<void>
  /** Moves the clock, and enqueues jobs of these groups. */
  advance(afterMs: number, arrivals: readonly string[]): Promise<void>
  /** One process asks for at most this number of jobs. Resolves to the groups of those that it got and completed. */
  claim(process: number, limit: number): Promise<readonly string[]>
}

interface Start {
  readonly at: number
  readonly group: string
}

export interface RunVerdict {
  readonly started: number
  /** Closed windows with more starts than their limit. */
  readonly violations: number
  /**
   * Ticks with another number of starts than the rules allow. Counted only if that number does not depend on the order
   * of the claims: neither with a count for each group, nor if the first of several claims may let the next catch up.
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

/** The number of closed windows that begin with a start and hold too many starts. */
function violationsOf({ limit, windowMs }: ThrottleRule, starts: readonly Start[]): number {
  // The list is in order: the start `limit` places later must be outside the window.
  return starts.filter(({ at }, i) => (starts[i + limit]?.at ?? Number.POSITIVE_INFINITY) - at <= windowMs).length
}
