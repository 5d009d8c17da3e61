/** The count words: numbers as people read them. */

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const rate = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })

/** `1,234`; from 100,000 on `123.4K`. */
export function countWords(count: number): string {
  return Math.abs(count) < 100_000 ? whole.format(count) : short.format(count)
}

/** `1,234,567` */
export function exactCount(count: number): string {
  return whole.format(count)
}

/** `12.5` of something in a time. */
export function rateWords(perTime: number): string {
  return Math.abs(perTime) < 1_000 ? rate.format(perTime) : countWords(perTime)
}

/** `1 job`, `2 jobs` */
export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${exactCount(count)} ${count === 1 ? one : many}`
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** `12.5 MiB` */
export function bytesWords(bytes: number): string {
  const step = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  return `${rate.format(bytes / 1_024 ** step)} ${units[step]}`
}
