/** The rule of a schedule: the instants that it names. Pure; the caller passes the time in. */

import { isHourly, wallTimes } from './cron-text.js'

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

const dayMs = 86_400_000
/** The sampling distance for offsets. No zone is or was further from UTC than 14 hours ahead and 12 behind. */
const aheadMs = 15 * 3_600_000
const behindMs = 13 * 3_600_000

/**
 * The local time of a time zone at an instant, and the instant of a local time. Local times are numbers like instants: ms since 1970 as if the zone were UTC. So only `wallAt` and `instantOf` know
 * of zones, and calendars are calculated in UTC.
 */
export class WallClock {
  readonly #offset: (at: number) => number

  /** Throws `RangeError` for an unknown zone. */
  constructor(timeZone: string) {
    this.#offset = timeZone === 'UTC' ? () => 0 : offsetsOf(timeZone)
  }

  /** The local time at this instant. */
  wallAt(at: number): number {
    return at + this.#offset(at)
  }

  /**
   * The instant of a local time. If the clocks show the time twice, it is the first instant. If they skip the time, it
   * is the instant of the jump, so the next local time that exists.
   */
  instantOf(wall: number): number {
    const [before, after] = [this.#offset(wall - aheadMs), this.#offset(wall + behindMs)]
    const first = wall - Math.max(before, after)
    if (this.wallAt(first) === wall) return first
    const second = wall - Math.min(before, after)
    if (this.wallAt(second) === wall) return second
    return this.#jump(first, second)
  }

  /** When the clocks are moved in `(from, to]`, which are less than two days apart; undefined if they are not. */
  changeIn(from: number, to: number): number | undefined {
    return this.#offset(from) === this.#offset(to) ? undefined : this.#jump(from, to)
  }

  /** The instant in `(from, to]` at which the offset changes. */
  #jump(from: number, to: number): number {
    const offset = this.#offset(from)
    let [low, high] = [from, to]
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (this.#offset(middle) === offset) low = middle
      else high = middle
    }
    return high
  }
}

const offsetText = /GMT(?:([+-])(\d{1,2}):(\d{2})(?::(\d{2}))?)?$/

/** The offset of a zone from UTC at an instant, in ms. */
function offsetsOf(timeZone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' })
  const read = (at: number): number => {
    const [, sign, hours = 0, minutes = 0, seconds = 0] = offsetText.exec(format.format(at)) ?? []
    const ms = (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)) * 1_000
    return sign === '-' ? -ms : ms
  }
  // Most calls are about the same day. A day that begins and ends with the same offset has only that one.
  let [day, dayOffset] = [Number.NaN, 0]
  return (at) => {
    const start = Math.floor(at / dayMs) * dayMs
    if (start === day) return dayOffset
    const offset = read(start)
    if (read(start + dayMs) !== offset) return read(at)
    ;[day, dayOffset] = [start, offset]
    return offset
  }
}
