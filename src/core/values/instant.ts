/** An instant as users write it: a Date, or ISO-8601 text with a zone. Inside the code instants are ms since 1970, named `…At`. */

/** Requires a zone: text without one would mean another moment on each machine. */
const isoInstant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})$/

/** The year 2286: a later instant is a number of microseconds mistaken for milliseconds. */
const latestAt = 9_999_999_999_999

export const instantForm = "a valid Date or ISO-8601 text with a zone, such as '2026-12-24T18:00:00Z'"

/** The instant in ms; undefined if the value is not an instant, or is before 1970. */
export function parseInstant(value: unknown): number | undefined {
  const at =
    value instanceof Date
      ? value.getTime()
      : typeof value === 'string' && isoInstant.test(value)
        ? Date.parse(value)
        : Number.NaN
  return at >= 0 && at <= latestAt ? Math.trunc(at) : undefined
}
