/** The moment words: an instant as seen from now, and in full. */

import { durationWords } from './duration-words.js'

const full = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' })
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const second = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })

/** `just now`, `in 5 min`, `3 h ago`. Both in ms since 1970. */
export function momentWords(at: number, now: number): string {
  const away = Math.abs(at - now)
  if (away < 1_000) return 'just now'
  const [largest] = durationWords(Math.floor(away / 1_000) * 1_000).match(/^\S+ \S+/) ?? ['']
  return at > now ? `in ${largest}` : `${largest} ago`
}

/** Date, time and zone. */
export function fullMoment(at: number): string {
  return full.format(at)
}

/** `14:05` */
export function clockWords(at: number): string {
  return clock.format(at)
}

/** `14:05:09` */
export function secondWords(at: number): string {
  return second.format(at)
}

/** `12 Mar` */
export function dayWords(at: number): string {
  return day.format(at)
}
