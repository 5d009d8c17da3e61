/** The duration words: a number of milliseconds in a readable form. */

const units: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
]

/** At most two units: `0 s`, `340 ms`, `4.2 s`, `3 min 20 s`, `2 d 4 h`. */
export function durationWords(ms: number): string {
  if (ms < 0) return `−${durationWords(-ms)}`
  if (ms < 0.5) return '0 s'
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 9_950) return `${Number((ms / 1_000).toFixed(1))} s`
  const rounded = Math.round(ms / 1_000) * 1_000
  const first = units.findIndex(([size]) => rounded >= size)
  const [size, name] = units[first]!
  const count = Math.floor(rounded / size)
  const next = units[first + 1]
  const rest = next === undefined || count >= 100 ? 0 : Math.floor((rounded % size) / next[0])
  return rest === 0 ? `${count} ${name}` : `${count} ${name} ${rest} ${next![1]}`
}

/** One unit, for narrow places: `4.2s`, `3m`, `2d`. */
export function shortDuration(ms: number): string {
  if (ms < 0.5) return '0'
  if (ms < 999.5) return `${Math.round(ms)}ms`
  if (ms < 59_500) return `${ms < 9_950 ? Number((ms / 1_000).toFixed(1)) : Math.round(ms / 1_000)}s`
  const [size, name] = units.find(([size]) => ms >= size - 500) ?? units[3]!
  return `${Math.round(ms / size)}${name === 'min' ? 'm' : name}`
}
