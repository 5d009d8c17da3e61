/** The count words: numbers in a readable form. Written by hand: the first use of `Intl` delays a page by 50 ms. */

const thousands = ['', 'K', 'M', 'B', 'T']

/** `1,234`; from 100,000 on `123.4K`. */
export function countWords(count: number): string {
  return Math.abs(count) < 100_000 ? exactCount(count) : shortCount(count)
}

/** `1,234,567` */
export function exactCount(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ',')
}

function shortCount(count: number): string {
  const digits = Math.floor(Math.log10(Math.abs(count)))
  // 999,950 is 1M, not 1000K.
  const rounded = Number(count.toPrecision(Math.min(4, (digits % 3) + 2)))
  const step = Math.min(thousands.length - 1, Math.floor(Math.log10(Math.abs(rounded)) / 3))
  return `${Number((rounded / 1_000 ** step).toFixed(1))}${thousands[step]}`
}

/** `12.5` per unit of time. */
export function rateWords(perTime: number): string {
  return Math.abs(perTime) < 1_000 ? threeDigits(perTime) : countWords(perTime)
}

function threeDigits(n: number): string {
  return String(Number(n.toPrecision(3)))
}

/** `1 job`, `2 jobs` */
export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${exactCount(count)} ${count === 1 ? one : many}`
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** `12.5 MiB` */
export function bytesWords(bytes: number): string {
  const step = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  return `${threeDigits(bytes / 1_024 ** step)} ${units[step]}`
}
