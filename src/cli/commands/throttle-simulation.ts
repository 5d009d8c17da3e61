/**
 * A simulated throttle: when jobs would start under given rules, on a clock of its own, by the same decisions as in
 * every store. Pure.
 */

import type { Random } from '../../core/platform/clock.js'
import type { ThrottleRule } from '../../core/queue/throttle.js'
import { defined } from '../../core/values/defined.js'
import { decide, firstCounter } from '../../stores/rules/throttle/throttle-counter.js'

/** The jobs that arrive. Without both fields a job is always waiting. */
export interface Arrivals {
  /** Jobs that arrive at the beginning. */
  readonly burst?: number
  /** Jobs that arrive from then on, at random moments: `jobs` in `ms` on average. */
  readonly rate?: { readonly jobs: number; readonly ms: number }
}

export interface SimulatedLoad {
  readonly rules: readonly ThrottleRule[]
  readonly forMs: number
  readonly arrivals: Arrivals
  /**
   * For a worker that polls: after a denial it asks again after a random number of spacings (the widest window / limit)
   * between these. Default: it asks when the denial says, as Millrace's workers do.
   */
  readonly polls?: { readonly least: number; readonly most: number }
  readonly random: Random
}

interface WorstWindow {
  readonly limit: number
  readonly windowMs: number
  /** The most starts in any closed window of that length. */
  readonly most: number
}

/** The result of a simulation. Instants are whole ms from the beginning, ascending. */
export interface Simulation {
  readonly starts: readonly number[]
  /** Absent if a job was always waiting. */
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
      // A waiting worker is rung at once when a job arrives.
      now = arrived?.[come] ?? Number.POSITIVE_INFINITY
      continue
    }
    const { granted, forMs: waitMs, state } = decide(counter, rules, now, ready, ready)
    counter = state
    for (let i = 0; i < granted; i += 1) starts.push(now)
    // After a grant the next question is how long until one more may start.
    if (granted === 0) now += polls === undefined ? Math.max(1, waitMs) : pollMs(polls)
  }
  return {
    starts,
    ...defined({ arrived }),
    worst: rules.map(({ limit, windowMs }) => ({ limit, windowMs, most: mostWithin(starts, windowMs) })),
  }
}

/** The approximate size of a simulation, to refuse endless ones. `looks` are those of a worker that polls. */
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

/** SplitMix32. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x9e3779b9) >>> 0
    let bits = state
    bits = Math.imul(bits ^ (bits >>> 16), 0x21f0aaad)
    bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97)
    return ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 32
  }
}
