/** An instant as users write it: a Date, or ISO-8601 text with a zone. Inside the code instants are ms since 1970, named `…At`. */

/** Requires a zone: text without one would mean another moment on each machine. */
const isoInstant = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})$/

/** A later instant is a number of microseconds mistaken for milliseconds. */
const latestAt = 9_999_999_999_999

const instantForm = "a valid Date or ISO-8601 text with a zone, such as '2026-12-24T18:00:00Z'"

/** The instant in ms; undefined if the value is not an instant, is before 1970, or is later than 2286. */
export function parseInstant(value: unknown): number | undefined {
  const at = timeOf(value)
  return at >= 0 && at <= latestAt ? Math.trunc(at) : undefined
}

/** What is wrong with a value that is not an instant, as the end of a sentence about it. */
export function instantMistake(value: unknown): string {
  const at = timeOf(value)
  if (at > latestAt) return 'must be before the year 2287'
  if (at < 0) return 'must not be before 1970'
  const [, year, month, day] = (typeof value === 'string' && isoInstant.exec(value)) || []
  if (day !== undefined && !isDay(Number(year), Number(month), Number(day))) return 'must be a day that exists'
  return `must be ${instantForm}`
}

/** NaN for a value that is no instant. `Date.parse` would take 30 February for 2 March. */
function timeOf(value: unknown): number {
  if (value instanceof Date) return value.getTime()
  const [text, year, month, day] = (typeof value === 'string' && isoInstant.exec(value)) || []
  const isReal = text !== undefined && isDay(Number(year), Number(month), Number(day))
  return isReal ? Date.parse(text) : Number.NaN
}

function isDay(year: number, month: number, day: number): boolean {
  return month >= 1 && month <= 12 && day >= 1 && day <= new Date(Date.UTC(year, month, 0)).getUTCDate()
}
