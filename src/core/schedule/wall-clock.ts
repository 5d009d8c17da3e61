/** A wall clock: the local time of a time zone at an instant, and the instant of a local time. */

const dayMs = 86_400_000
/** The sampling distance for offsets. No zone is or was further from UTC than 14 hours ahead and 12 behind. */
const aheadMs = 15 * 3_600_000
const behindMs = 13 * 3_600_000

/**
 * Local times are numbers like instants: ms since 1970 as if the zone were UTC. So only `wallAt` and `instantOf` know
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
