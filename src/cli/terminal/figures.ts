/** Figures: numbers, durations and moments in the form that people read. */

import { formatDuration } from '../../core/values/duration.js'

/** A whole number as `12,345`. `Intl` would cost every process 6 MB. */
export function count(n: number): string {
  return String(n).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

/** `1 job`, `2 jobs` */
export function counted(n: number, noun: string, plural = `${noun}s`): string {
  return `${count(n)} ${n === 1 ? noun : plural}`
}

/** `3m 12s ago`, `in 5s`; `now` within half a second. */
export function fromNow(at: Date, now: number): string {
  const ms = at.getTime() - now
  if (Math.abs(ms) < 500) return 'now'
  return ms > 0 ? `in ${formatDuration(ms)}` : `${formatDuration(-ms)} ago`
}

/** `again in 5s`, `again at once` */
export function againIn(ms: number): string {
  return ms <= 0 ? 'again at once' : `again in ${formatDuration(Math.round(ms))}`
}

/** `14:03:59`, local time. */
export function timeOfDay(at: Date): string {
  return at.toTimeString().slice(0, 8)
}

/** The rate per second, with a digit after the point if it is small. */
export function rate(amount: number, ms: number): string {
  const perSecond = ms <= 0 ? 0 : (amount * 1_000) / ms
  return perSecond >= 10 || perSecond === 0 ? count(Math.round(perSecond)) : perSecond.toFixed(1)
}
