/** The name of a time zone: its check, and suggestions for a misspelt one. */

import { lettersOff } from '../values/spelling.js'

/** Undefined for a time zone that this system knows; otherwise the expected form, with similar names. */
export function timeZoneMistake(value: unknown): string | undefined {
  if (isTimeZone(value)) return undefined
  const near = typeof value === 'string' ? namesNear(value) : []
  const meant = near.length === 0 ? '' : `; did you mean ${near.map((name) => `'${name}'`).join(' or ')}?`
  return `must be the name of a time zone, such as 'UTC' or 'Europe/Zurich'${meant}`
}

/** Names only, because an offset such as '+01:00' has no daylight saving time. */
function isTimeZone(value: unknown): boolean {
  if (typeof value !== 'string' || !/^[A-Za-z]/.test(value)) return false
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: value })
    return true
  } catch {
    return false
  }
}

/** At most three names: zones of the same place first, then names that differ by a few letters. */
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
