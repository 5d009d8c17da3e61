/** A wall clock: what the clocks of a time zone show at an instant, and at which instant they show a given time. */

const dayMs = 86_400_000
/** No zone is, or was, further from UTC: 14 hours ahead, 12 behind. Samples of an offset are taken beyond both. */
const aheadMs = 15 * 3_600_000
const behindMs = 13 * 3_600_000

/**
 * Local times here are numbers like instants: ms since 1970 as if the zone were UTC. So `wallAt` and `instantOf` are all that
 * knows of zones, and calendars are reckoned in UTC.
 */
export class WallClock {
  readonly #offset: (at: number) => number

  /** Throws `RangeError` for a zone that is none. */
  constructor(timeZone: string) {
    this.#offset = timeZone === 'UTC' ? () => 0 : offsetsOf(timeZone)
  }

  /** What the clocks show at this instant. */
  wallAt(at: number): number {
    return at + this.#offset(at)
  }

  /**
   * When the clocks show this. A time that they show twice is its first instant; one that they jump over is the instant of the
   * jump: the next time that there is.
   */
  instantOf(wall: number): number {
    const [before, after] = [this.#offset(wall - aheadMs), this.#offset(wall + behindMs)]
    const first = wall - Math.max(before, after)
    if (this.wallAt(first) === wall) return first
    const second = wall - Math.min(before, after)
    if (this.wallAt(second) === wall) return second
    return this.#jump(first, second)
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
  // Most questions are about the same day: one that begins and ends alike has one offset.
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
