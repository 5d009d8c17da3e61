/** A trial of a throttle: jobs arrive and claimers ask for them, again and again, while the clock goes on. */

import fc from 'fast-check'
import type { ThrottleRule } from '#src/core/queue/throttle.js'
import type { Starts } from '#src/stores/rules/throttle/start-log.js'

/** What decides in a trial how many of the jobs that are ready may start. */
export type Pace = (now: number, want: number, ready: number) => number

export interface TrialStep {
  readonly afterMs: number
  readonly arriving: number
  /** 0: nobody asks. */
  readonly want: number
}

const startAt = 1_704_067_200_000

/** All starts, with the clock as it truly was. */
export function startsIn(pace: Pace, steps: readonly TrialStep[]): Starts[] {
  let now = startAt
  let ready = 0
  const starts: Starts[] = []
  for (const { afterMs, arriving, want } of steps) {
    now += afterMs
    ready += arriving
    if (want === 0) continue
    const count = pace(now, want, ready)
    ready -= count
    if (count > 0) starts.push({ at: now, count })
  }
  return starts
}

/** The most starts in any closed window: it is enough to look at those that begin with a start. */
export function mostIn(windowMs: number, starts: readonly Starts[]): number {
  const counts = starts.map(({ at: from }) =>
    starts.filter(({ at }) => at >= from && at <= from + windowMs).reduce((sum, { count }) => sum + count, 0),
  )
  return Math.max(0, ...counts)
}

const window = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 20, max: 3_000 }))

/** A rule of every kind; `elastic` only where it is asked for by being moderate. */
export const anyRule: fc.Arbitrary<ThrottleRule> = fc
  .record({ limit: fc.integer({ min: 1, max: 6 }), windowMs: window, moderate: fc.boolean(), elastic: fc.nat(6) })
  .map(({ elastic, ...rule }) => (rule.moderate && elastic < rule.limit ? { ...rule, elasticBuffer: elastic } : rule))

export const anyRules = fc.uniqueArray(anyRule, { minLength: 1, maxLength: 3, selector: ({ windowMs }) => windowMs })

/** Steps that fall near the edges of these rules' windows and slots as often as anywhere. */
export function stepsFor(rules: readonly ThrottleRule[], maxLength = 60): fc.Arbitrary<TrialStep[]> {
  const edges = rules.flatMap(({ windowMs, limit }) => [windowMs, Math.ceil(windowMs / limit)])
  const near = fc
    .tuple(fc.constantFrom(...edges), fc.constantFrom(-1, 0, 1))
    .map(([edge, off]) => Math.max(0, edge + off))
  const afterMs = fc.oneof(near, fc.constantFrom(0, 1), fc.integer({ min: 0, max: Math.max(...edges) * 2 }))
  const step = fc.record({
    afterMs,
    arriving: fc.constantFrom(0, 0, 1, 2, 9),
    want: fc.constantFrom(0, 1, 1, 2, 5, 20),
  })
  return fc.array(step, { minLength: 1, maxLength })
}

/** Rules with steps that fit them. */
export function trials(rules: fc.Arbitrary<ThrottleRule[]> = anyRules) {
  return rules.chain((some) => fc.tuple(fc.constant(some), stepsFor(some)))
}
