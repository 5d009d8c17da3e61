/** Cron texts against a model of Vixie cron: random texts of five fields, and the minutes at which each ticks. */
import { expect, it } from 'vitest'
import { ticksOf } from '#src/core/schedule/schedule-rule.js'
import { seededRandom } from '../../seeded-random.js'

const random = seededRandom(1_500)
const whole = (from: number, to: number) => from + Math.floor(random() * (to - from + 1))
const pick = <T>(all: readonly T[]) => all[whole(0, all.length - 1)]!

const ranges = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7],
] as const

function item(from: number, to: number): string {
  const low = whole(from, to)
  const high = whole(low, to)
  return pick([
    `${low}`,
    `${low}-${high}`,
    `${low}-${high}/${whole(1, 5)}`,
    `*/${whole(1, Math.min(to, to - from + 1))}`,
  ])
}

function field(from: number, to: number): string {
  if (random() < 0.35) return '*'
  return Array.from({ length: pick([1, 1, 1, 2, 3]) }, () => item(from, to)).join(',')
}

/** The numbers that a field names. */
function valuesOf(text: string, from: number, to: number): Set<number> {
  const values = new Set<number>()
  for (const one of text.split(',')) {
    const [range = '', step = '1'] = one.split('/')
    const [low, high = low] = range === '*' ? [from, to] : range.split('-').map(Number)
    for (let value = low!; value <= high!; value += Number(step)) values.add(value)
  }
  return values
}

/** The minutes in `[fromAt, toAt)` at which Vixie cron runs a line with these fields. */
function modelled(fields: readonly string[], fromAt: number, toAt: number): number[] {
  const [minutes, hours, days, months, weekdays] = ranges.map(([from, to], i) => valuesOf(fields[i]!, from, to))
  if (weekdays!.has(7)) weekdays!.add(0)
  const isBoth = fields[2]!.startsWith('*') || fields[4]!.startsWith('*')
  const found: number[] = []
  for (let day = fromAt; day < toAt; day += 86_400_000) {
    const date = new Date(day)
    const [isDay, isWeekday] = [days!.has(date.getUTCDate()), weekdays!.has(date.getUTCDay())]
    if (!months!.has(date.getUTCMonth() + 1) || !(isBoth ? isDay && isWeekday : isDay || isWeekday)) continue
    for (const hour of [...hours!].sort((a, b) => a - b))
      for (const minute of [...minutes!].sort((a, b) => a - b)) found.push(day + hour * 3_600_000 + minute * 60_000)
  }
  return found
}

it('1,500 random expressions of five fields tick when Vixie cron would', () => {
  const fromAt = Date.UTC(2026, 0, 1)
  const toAt = Date.UTC(2028, 0, 1)
  for (let i = 0; i < 1_500; i += 1) {
    const fields = ranges.map(([from, to]) => field(from, to))
    const expected = modelled(fields, fromAt, toAt).slice(0, 40)
    const { next } = ticksOf({ cron: fields.join(' '), timeZone: 'UTC' })
    const found: number[] = []
    for (let at = next(fromAt - 1); at !== undefined && at < toAt && found.length < 40; at = next(at)) found.push(at)
    expect([fields.join(' '), found]).toEqual([fields.join(' '), expected])
  }
})
