/**
 * The moment words: an instant relative to now, and in full. Written by hand: the first use of `Intl` delays a page by
 * 50 ms.
 */

import { durationWords } from './duration-words.js'

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** `just now`, `in 5 min`, `3 h ago`. Both in ms since 1970. */
export function momentWords(at: number, now: number): string {
  const away = Math.abs(at - now)
  if (away < 1_000) return 'just now'
  const [largest] = durationWords(Math.floor(away / 1_000) * 1_000).match(/^\S+ \S+/) ?? ['']
  return at > now ? `in ${largest}` : `${largest} ago`
}

/** Local date and time, and the zone: `25 Nov 2026, 14:05:09 UTC+1`. */
export function fullMoment(at: number): string {
  const date = new Date(at)
  return `${dayWords(at)} ${date.getFullYear()}, ${secondWords(at)} ${zoneWords(-date.getTimezoneOffset())}`
}

/** `14:05` */
export function clockWords(at: number): string {
  const date = new Date(at)
  return `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}`
}

/** `14:05:09` */
export function secondWords(at: number): string {
  return `${clockWords(at)}:${twoDigits(new Date(at).getSeconds())}`
}

/** `12 Mar` */
export function dayWords(at: number): string {
  const date = new Date(at)
  return `${date.getDate()} ${months[date.getMonth()]}`
}

/** `minutes`: east of Greenwich. */
function zoneWords(minutes: number): string {
  if (minutes === 0) return 'UTC'
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60]
  return `UTC${minutes < 0 ? '−' : '+'}${hours}${rest === 0 ? '' : `:${twoDigits(rest)}`}`
}

function twoDigits(n: number): string {
  return String(n).padStart(2, '0')
}
