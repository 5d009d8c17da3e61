/** The rule of a schedule: the instants that it names. Pure; the caller passes the time in. */

import { isHourly, wallTimes } from './cron-text.js'
import { WallClock } from './wall-clock.js'

/** A rule in its stored form. It has either `cron` or `everyMs`. */
export interface ScheduleRule {
  readonly cron?: string
  /** Ticks are its multiples since `fromAt`, by default since 1970. */
  readonly everyMs?: number
  /** The time zone in which `cron` is read. */
  readonly timeZone: string
  /** No tick before this instant. */
  readonly fromAt?: number
  /** No tick after this instant. */
  readonly untilAt?: number
}

/** The ticks of a rule. */
export interface Ticks {
  /** The first tick after this instant; undefined if there is none. */
  next(afterAt: number): number | undefined
  /** The last tick up to this instant; undefined if there is none after `sinceAt`. */
  latest(at: number, sinceAt: number): number | undefined
}

/**
 * The ticks of a checked rule. A local time that does not exist ticks at the next time that does. One that exists twice
 * ticks once. But a cron text that ticks in every hour goes on as time passes.
 */
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
  if (isHourly(cron)) return steadyTicks(clock, nextWall)
  return (afterAt) => {
    // While an hour is repeated, the clocks show times whose first instant is past.
    for (let wall = nextWall(clock.wallAt(afterAt)); wall !== undefined; wall = nextWall(wall)) {
      const at = clock.instantOf(wall)
      if (at > afterAt) return at
    }
    return undefined
  }
}

/** Further from now than clocks are ever moved. */
const nearMs = 36 * 3_600_000

/** The instants at which the clocks show one of the local times, however often they do. */
function steadyTicks(
  clock: WallClock,
  nextWall: (wall: number) => number | undefined,
): (afterAt: number) => number | undefined {
  return (afterAt) => {
    // From an instant on, with the local time after which to look.
    let [from, shown] = [afterAt, clock.wallAt(afterAt)]
    for (let wall = nextWall(shown); wall !== undefined; wall = nextWall(shown)) {
      const aheadMs = wall - clock.wallAt(from)
      const changedAt = clock.changeIn(from, from + Math.min(aheadMs, nearMs))
      const at = changedAt ?? (aheadMs <= nearMs ? from + aheadMs : clock.instantOf(wall))
      if (changedAt === undefined && clock.wallAt(at) === wall)
        return at
        // The clocks were moved, or skip that time: look on from there.
      ;[from, shown] = [at, clock.wallAt(at) - 1]
    }
    return undefined
  }
}

/**
 * Looks back further and further until there is a tick, then halves: a rule may name thousands of instants, or one in
 * years.
 */
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
