/** A throttle simulated: when jobs would start under given rules, on a clock of its own, decided as every store decides. Pure. */

import type { Random } from '../../core/platform/clock.js'
import type { ThrottleRule } from '../../core/queue/throttle.js'
import { decide, firstCounter } from '../../stores/rules/throttle/throttle-counter.js'

/** Jobs that come. Without both there is always one that waits. */
export interface Arrivals {
  /** At the beginning. */
  readonly burst?: number
  /** From then on, at random moments: so many in so many ms on average. */
  readonly rate?: { readonly jobs: number; readonly ms: number }
}

export interface SimulatedLoad {
  readonly rules: readonly ThrottleRule[]
  readonly forMs: number
  readonly arrivals: Arrivals
  /**
   * Who is denied asks again after so many spacings (the widest window / limit), at random between these, as one that polls.
   * Default: when the denial says, as workers do.
   */
  readonly polls?: { readonly least: number; readonly most: number }
  readonly random: Random
}

interface WorstWindow {
  readonly limit: number
  readonly windowMs: number
  /** Most starts that any closed window of that length has held. */
  readonly most: number
}

/** Instants are whole ms from the beginning, ascending. */
export interface Simulation {
  readonly starts: readonly number[]
  /** Absent where there was always a job. */
  readonly arrived?: readonly number[]
  /** One for each rule. */
  readonly worst: readonly WorstWindow[]
}

export function simulated({ rules, forMs, arrivals, polls, random }: SimulatedLoad): Simulation {
  const arrived = arrivalsOf(arrivals, forMs, random)
  const spacingMs = spacingOf(rules)
  const pollMs = ({ least, most }: { readonly least: number; readonly most: number }) =>
    Math.max(1, Math.round((least + random() * (most - least)) * spacingMs))
  const starts: number[] = []
  let counter = firstCounter(rules)
  let now = 0
  let come = 0
  while (now <= forMs) {
    while (arrived !== undefined && come < arrived.length && arrived[come]! <= now) come += 1
    const ready = arrived === undefined ? Number.POSITIVE_INFINITY : come - starts.length
    if (ready === 0) {
      // Whoever waits for a job is rung at once.
      now = arrived?.[come] ?? Number.POSITIVE_INFINITY
      continue
    }
    const { granted, forMs: waitMs, state } = decide(counter, rules, now, ready, ready)
    counter = state
    for (let i = 0; i < granted; i += 1) starts.push(now)
    // What was permitted is taken: the next question is how long until one more may start.
    if (granted === 0) now += polls === undefined ? Math.max(1, waitMs) : pollMs(polls)
  }
  return {
    starts,
    ...(arrived === undefined ? {} : { arrived }),
    worst: rules.map(({ limit, windowMs }) => ({ limit, windowMs, most: mostWithin(starts, windowMs) })),
  }
}

/** How much a scene may become, about: so that nobody waits for one without end. `looks` are those of who polls. */
export function mostOf({ rules, forMs, arrivals: { burst, rate }, polls }: Omit<SimulatedLoad, 'random'>) {
  const permitted = Math.min(...rules.map(({ limit, windowMs }) => limit * (Math.floor(forMs / windowMs) + 1)))
  const isEndless = burst === undefined && rate === undefined
  // Chance may bring more than the average, but hardly twice as many.
  const jobs = isEndless ? 0 : (burst ?? 0) + (rate === undefined ? 0 : (2 * rate.jobs * forMs) / rate.ms)
  const looks = polls === undefined ? 0 : forMs / Math.max(1, ((polls.least + polls.most) / 2) * spacingOf(rules))
  return { starts: isEndless ? permitted : Math.min(permitted, jobs), jobs, looks }
}

/** The widest. */
function spacingOf(rules: readonly ThrottleRule[]): number {
  return Math.max(...rules.map(({ limit, windowMs }) => windowMs / limit))
}

/** The most instants in any closed window, wherever it begins. */
export function mostWithin(instants: readonly number[], windowMs: number): number {
  let from = 0
  let most = 0
  for (const [i, at] of instants.entries()) {
    while (instants[from]! < at - windowMs) from += 1
    most = Math.max(most, i - from + 1)
  }
  return most
}

function arrivalsOf({ burst, rate }: Arrivals, forMs: number, random: Random): number[] | undefined {
  if (burst === undefined && rate === undefined) return undefined
  const arrived = Array.from({ length: burst ?? 0 }, () => 0)
  if (rate === undefined) return arrived
  // The gaps between independent arrivals are exponentially distributed.
  const gap = () => (-Math.log(1 - random()) * rate.ms) / rate.jobs
  for (let at = gap(); at <= forMs; at += gap()) arrived.push(Math.round(at))
  return arrived
}
