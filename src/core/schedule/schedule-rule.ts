/** The rule of a schedule: which instants it names. Pure; clocks are handed in as instants. */

import { wallTimes } from './cron-text.js'
import { WallClock } from './wall-clock.js'

/** As it is stored. Of `cron` and `everyMs` there is one. */
export interface ScheduleRule {
  readonly cron?: string
  /** Its instants are the multiples since `fromAt`, or else since 1970. */
  readonly everyMs?: number
  /** By whose clocks `cron` is read. */
  readonly timeZone: string
  /** No tick before this instant. */
  readonly fromAt?: number
  /** None after it. */
  readonly untilAt?: number
}

/** The ticks of a rule. */
export interface Ticks {
  /** The first after this instant; undefined where none comes. */
  next(afterAt: number): number | undefined
  /** The last up to this instant; undefined where there is none after `sinceAt`. */
  latest(at: number, sinceAt: number): number | undefined
}

/** The ticks of a rule that was checked. A local time that does not exist ticks at the next that does, one that exists twice once. */
export function ticksOf(rule: ScheduleRule): Ticks {
  const { fromAt = Number.NEGATIVE_INFINITY, untilAt = Number.POSITIVE_INFINITY } = rule
  const nextOf = rule.everyMs === undefined ? cronTicks(rule) : everyTicks(rule.everyMs, rule.fromAt)
  const next = (afterAt: number) => {
    const at = nextOf(Math.max(afterAt, fromAt - 1))
    return at === undefined || at > untilAt ? undefined : at
  }
  return { next, latest: (at, sinceAt) => latestOf(next, at, sinceAt) }
}

function everyTicks(everyMs: number, fromAt = 0): (afterAt: number) => number {
  return (afterAt) => fromAt + (Math.floor((afterAt - fromAt) / everyMs) + 1) * everyMs
}

function cronTicks({ cron = '', timeZone }: ScheduleRule): (afterAt: number) => number | undefined {
  const clock = new WallClock(timeZone)
  const nextWall = wallTimes(cron)
  return (afterAt) => {
    // While an hour is repeated, the clocks show times whose instant, the first, is past.
    for (let wall = nextWall(clock.wallAt(afterAt)); wall !== undefined; wall = nextWall(wall)) {
      const at = clock.instantOf(wall)
      if (at > afterAt) return at
    }
    return undefined
  }
}

/** Looks back ever further until something is there, then halves: a rule may name thousands of instants, or one in years. */
function latestOf(next: Ticks['next'], at: number, sinceAt: number): number | undefined {
  const isBy = (tick: number | undefined) => tick !== undefined && tick <= at
  let low = at
  for (let backMs = 1_000; !isBy(next(low)); backMs *= 2) {
    if (low <= sinceAt) return undefined
    low = Math.max(sinceAt, at - backMs)
  }
  let high = at
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (isBy(next(middle))) low = middle
    else high = middle
  }
  return next(low)
}
