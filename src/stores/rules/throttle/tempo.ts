/** The tempo of what a throttle counts together: its starts and its strides, and the decision how many jobs may start now. Pure. */

import { longestCountedMs, type ThrottleRule } from '../../../core/queue/throttle.js'
import { logAfter, type StartLog, sightOf } from './start-log.js'
import { firstStride, permitsOf, type Stride, strideAfter, strideAtRest } from './stride.js'

export interface Tempo {
  readonly log: StartLog
  /** One for each rule. */
  readonly strides: readonly Stride[]
}

interface Decision {
  /** How many of those wanted may start. */
  readonly granted: number
  /** After how long one may, where none may now; else 0. */
  readonly forMs: number
  /** The tempo once they have started. */
  readonly state: Tempo
}

export function firstTempo(rules: readonly ThrottleRule[]): Tempo {
  return { log: [], strides: rules.map(() => firstStride) }
}

/** The tempo as it stands now: one in which nothing has started for the longest window is as good as none. */
export function tempoAt(tempo: Tempo, rules: readonly ThrottleRule[], now: number): Tempo {
  const last = tempo.log.at(-1)
  return last === undefined || last.at < now - longestCountedMs(rules) ? firstTempo(rules) : tempo
}

/** How many jobs may start now, as far as every rule permits, and, where none may, after how long one may. */
export function permitted({ log, strides }: Tempo, rules: readonly ThrottleRule[], now: number) {
  const permits = rules.map((rule, i) => permitsOf(rule, strides[i]!, sightOf(rule, log, now), now))
  return {
    permits: Math.min(...permits.map((one) => one.permits)),
    forMs: Math.max(...permits.map((one) => one.forMs)),
  }
}

/** The tempo once `count` jobs have started, of which there is at least one. */
export function tempoAfter({ log, strides }: Tempo, rules: readonly ThrottleRule[], now: number, count: number): Tempo {
  return {
    log: logAfter(log, count, longestCountedMs(rules), now),
    strides: rules.map((rule, i) => strideAfter(rule, strides[i]!, sightOf(rule, log, now), count, now)),
  }
}

/** The tempo once nothing is left that could start; so it is too where the rules become others. */
export function tempoAtRest({ log }: Pick<Tempo, 'log'>, rules: readonly ThrottleRule[]): Tempo {
  return { log, strides: rules.map((rule) => strideAtRest(rule, log.at(-1)?.at)) }
}

/**
 * How many of `want` jobs may start at `now`, of the `ready` ones that there are; and the tempo afterwards. `now` never lies
 * before the last start of the tempo.
 */
export function decide(
  before: Tempo,
  rules: readonly ThrottleRule[],
  now: number,
  want: number,
  ready: number,
): Decision {
  const state = tempoAt(before, rules, now)
  const { permits, forMs } = permitted(state, rules, now)
  const granted = Math.max(0, Math.min(want, ready, permits))
  const after = granted > 0 ? tempoAfter(state, rules, now, granted) : state
  return { granted, forMs: permits > 0 ? 0 : forMs, state: ready - granted > 0 ? after : tempoAtRest(after, rules) }
}
