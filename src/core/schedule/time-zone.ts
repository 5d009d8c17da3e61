/** The name of a time zone: what is one, and which ones were perhaps meant. */

import { lettersOff } from '../values/spelling.js'

/** Undefined where it is one that this system knows; else what it must be, with the names that are near. */
export function timeZoneMistake(value: unknown): string | undefined {
  if (isTimeZone(value)) return undefined
  const near = typeof value === 'string' ? namesNear(value) : []
  const meant = near.length === 0 ? '' : `; did you mean ${near.map((name) => `'${name}'`).join(' or ')}?`
  return `must be the name of a time zone, such as 'UTC' or 'Europe/Zurich'${meant}`
}

/** Names only: an offset such as '+01:00' knows no summer. */
function isTimeZone(value: unknown): boolean {
  if (typeof value !== 'string' || !/^[A-Za-z]/.test(value)) return false
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: value })
    return true
  } catch {
    return false
  }
}

/** At most three: those of the same place, then those that a few slips of the pen make of it. */
function namesNear(value: string): string[] {
  const given = plain(value)
  const scored = Intl.supportedValuesOf('timeZone').map((name) => {
    const place = plain(name.slice(name.lastIndexOf('/') + 1))
    const slips = Math.min(
      lettersOff(given, plain(name)),
      lettersOff(plain(value.slice(value.lastIndexOf('/') + 1)), place),
    )
    return { name, slips }
  })
  const near = scored.filter(({ slips }) => slips <= 2 && slips < given.length / 2)
  return near
    .sort((a, b) => a.slips - b.slips)
    .slice(0, 3)
    .map(({ name }) => name)
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z/]/g, '')
}
