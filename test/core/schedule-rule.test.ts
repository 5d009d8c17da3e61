import { describe, expect, it } from 'vitest'
import { ticksOf, WallClock } from '#src/core/schedule/schedule-rule.js'
import { seededRandom } from '../seeded-random.js'

/** The ticks of a cron text after an instant, as UTC says them. */
function ticks(cron: string, timeZone: string, after: string, count: number): string[] {
  const { next } = ticksOf({ cron, timeZone })
  const found: string[] = []
  for (let at = next(Date.parse(after)); at !== undefined && found.length < count; at = next(at))
    found.push(new Date(at).toISOString().replace(':00.000Z', 'Z'))
  return found
}

/** Zone, cron, after, and the ticks that follow. */
const table: readonly (readonly [zone: string, cron: string, after: string, ...ticks: string[]])[] = [
  // Zurich jumps from 02:00 to 03:00 on 2026-03-29 at 01:00Z, and goes back from 03:00 to 02:00 on 2026-10-25 at 01:00Z.
  ['Europe/Zurich', '30 2 * * *', '2026-03-28T12:00Z', '2026-03-29T01:00Z', '2026-03-30T00:30Z'],
  ['Europe/Zurich', '0 2 * * *', '2026-03-28T12:00Z', '2026-03-29T01:00Z', '2026-03-30T00:00Z'],
  ['Europe/Zurich', '0 3 * * *', '2026-03-28T12:00Z', '2026-03-29T01:00Z', '2026-03-30T01:00Z'],
  [
    'Europe/Zurich',
    '15,45 2 * * *',
    '2026-03-28T12:00Z',
    '2026-03-29T01:00Z',
    '2026-03-30T00:15Z',
    '2026-03-30T00:45Z',
  ],
  ['Europe/Zurich', '30 2,3 * * *', '2026-03-28T12:00Z', '2026-03-29T01:00Z', '2026-03-29T01:30Z', '2026-03-30T00:30Z'],
  // In every hour: as time passes.
  ['Europe/Zurich', '30 * * * *', '2026-03-28T23:45Z', '2026-03-29T00:30Z', '2026-03-29T01:30Z', '2026-03-29T02:30Z'],
  ['Europe/Zurich', '15 0 * * * *', '2026-03-29T00:30Z', '2026-03-29T01:00:15.000Z', '2026-03-29T02:00:15.000Z'],
  ['Europe/Zurich', '30 2 * * *', '2026-10-24T12:00Z', '2026-10-25T00:30Z', '2026-10-26T01:30Z'],
  ['Europe/Zurich', '*/30 2 * * *', '2026-10-24T12:00Z', '2026-10-25T00:00Z', '2026-10-25T00:30Z', '2026-10-26T01:00Z'],
  ['Europe/Zurich', '0 3 * * *', '2026-10-24T12:00Z', '2026-10-25T02:00Z', '2026-10-26T02:00Z'],
  ['Europe/Zurich', '0 */2 * * *', '2026-10-24T21:00Z', '2026-10-24T22:00Z', '2026-10-25T00:00Z', '2026-10-25T03:00Z'],
  ['Europe/Zurich', '30 * * * *', '2026-10-25T00:00Z', '2026-10-25T00:30Z', '2026-10-25T01:30Z', '2026-10-25T02:30Z'],
  ['Europe/Zurich', '@hourly', '2026-10-24T23:30Z', '2026-10-25T00:00Z', '2026-10-25T01:00Z', '2026-10-25T02:00Z'],
  ['Europe/Zurich', '0 0-23 * * *', '2026-10-24T23:30Z', '2026-10-25T00:00Z', '2026-10-25T01:00Z', '2026-10-25T02:00Z'],
  ['Europe/Zurich', '0 * 1 1 *', '2026-01-01T22:30Z', '2026-12-31T23:00Z', '2027-01-01T00:00Z'],
  // Between the two 02:45, those of the repeated hour are past.
  ['Europe/Zurich', '45 2 * * *', '2026-10-25T01:10Z', '2026-10-26T01:45Z'],
  ['Europe/Zurich', '0 0 L * *', '2026-01-31T00:00Z', '2026-02-27T23:00Z', '2026-03-30T22:00Z', '2026-04-29T22:00Z'],
  // New York jumps on 2026-03-08 at 07:00Z, and goes back on 2026-11-01 at 06:00Z.
  ['America/New_York', '30 2 * * *', '2026-03-07T12:00Z', '2026-03-08T07:00Z', '2026-03-09T06:30Z'],
  ['America/New_York', '30 1 * * *', '2026-10-31T12:00Z', '2026-11-01T05:30Z', '2026-11-02T06:30Z'],
  ['America/New_York', '0 30 2 * * SUN#2', '2026-03-01T00:00Z', '2026-03-08T07:00Z', '2026-04-12T06:30Z'],
  ['America/New_York', '0 3 L * *', '2026-02-01T00:00Z', '2026-02-28T08:00Z', '2026-03-31T07:00Z'],
  ['America/New_York', '@daily', '2026-03-07T12:00Z', '2026-03-08T05:00Z', '2026-03-09T04:00Z'],
  ['America/New_York', '0 12 29 2 *', '2026-01-01T00:00Z', '2028-02-29T17:00Z', '2032-02-29T17:00Z'],
  // São Paulo jumped at midnight: 2018-11-04 began at 01:00, 03:00Z; and went back at midnight, 2018-02-18 at 02:00Z.
  ['America/Sao_Paulo', '0 0 * * *', '2018-11-03T12:00Z', '2018-11-04T03:00Z', '2018-11-05T02:00Z'],
  ['America/Sao_Paulo', '30 0 4 * *', '2018-11-01T00:00Z', '2018-11-04T03:00Z', '2018-12-04T02:30Z'],
  ['America/Sao_Paulo', '30 23 * * *', '2018-02-17T12:00Z', '2018-02-18T01:30Z', '2018-02-19T02:30Z'],
  ['America/Sao_Paulo', '0 0 * * *', '2018-02-17T12:00Z', '2018-02-18T03:00Z', '2018-02-19T03:00Z'],
  // Lord Howe moves by half an hour: on 2026-10-04 from 02:00 to 02:30, 15:30Z; on 2026-04-05 from 02:00 to 01:30, 15:00Z.
  ['Australia/Lord_Howe', '15 2 * * *', '2026-10-03T00:00Z', '2026-10-03T15:30Z', '2026-10-04T15:15Z'],
  ['Australia/Lord_Howe', '45 2 * * *', '2026-10-03T00:00Z', '2026-10-03T15:45Z', '2026-10-04T15:45Z'],
  ['Australia/Lord_Howe', '45 1 * * *', '2026-04-04T00:00Z', '2026-04-04T14:45Z', '2026-04-05T15:15Z'],
  [
    'Australia/Lord_Howe',
    '0,30 1 * * *',
    '2026-04-04T00:00Z',
    '2026-04-04T14:00Z',
    '2026-04-04T14:30Z',
    '2026-04-05T14:30Z',
  ],
  // Apia had no 2011-12-30: after 23:59 on the 29th, 10:00Z on the 30th, it was the 31st.
  ['Pacific/Apia', '0 12 * * *', '2011-12-29T00:00Z', '2011-12-29T22:00Z', '2011-12-30T10:00Z', '2011-12-30T22:00Z'],
  ['Pacific/Apia', '0 12 30 12 *', '2011-12-01T00:00Z', '2011-12-30T10:00Z', '2012-12-29T22:00Z'],
  // The ends of months where nothing jumps.
  ['UTC', '0 3 31 * *', '2026-01-31T03:00Z', '2026-03-31T03:00Z', '2026-05-31T03:00Z', '2026-07-31T03:00Z'],
  ['UTC', '0 0 29 2 *', '2096-03-01T00:00Z', '2104-02-29T00:00Z'],
  ['UTC', '0 0 * * 5L', '2026-01-01T00:00Z', '2026-01-30T00:00Z', '2026-02-27T00:00Z', '2026-03-27T00:00Z'],
  ['UTC', '0 0 * * MON#5', '2026-01-01T00:00Z', '2026-03-30T00:00Z', '2026-06-29T00:00Z'],
  // A day that begins with a star: both must match, as Vixie cron has it.
  ['UTC', '0 0 */2 * 1', '2026-01-01T00:00Z', '2026-01-05T00:00Z', '2026-01-19T00:00Z', '2026-02-09T00:00Z'],
  ['UTC', '0 0 13 * */5', '2026-01-01T00:00Z', '2026-02-13T00:00Z', '2026-03-13T00:00Z', '2026-09-13T00:00Z'],
  ['UTC', '0 0 1,15 * 1', '2026-02-01T00:00Z', '2026-02-02T00:00Z', '2026-02-09T00:00Z', '2026-02-15T00:00Z'],
  ['UTC', '59 59 23 L 2 *', '2027-01-01T00:00Z', '2027-02-28T23:59:59.000Z', '2028-02-29T23:59:59.000Z'],
]

const dayMs = 86_400_000

/** Cron texts of every hour, and whether one ticks at a local time, here in the form of UTC. */
const hourly: Readonly<Record<string, (wall: Date) => boolean>> = {
  '*/15 * * * *': (wall) => wall.getUTCMinutes() % 15 === 0,
  '7,37 * * * *': (wall) => [7, 37].includes(wall.getUTCMinutes()),
  '0 * */2 * *': (wall) => wall.getUTCMinutes() === 0 && wall.getUTCDate() % 2 === 1,
}

describe('the ticks of a rule', () => {
  it.each(table)('in %s, %s after %s', (zone, cron, after, ...expected) => {
    expect(ticks(cron, zone, after, expected.length)).toEqual(expected)
  })

  it('in every hour are the instants at which clocks show them, through all clock changes', () => {
    const zones = [
      ...['Europe/Zurich', 'America/New_York', 'Australia/Lord_Howe', 'Africa/Cairo', 'Asia/Beirut', 'America/Havana'],
      ...['Pacific/Apia', 'America/Santiago', 'America/Sao_Paulo', 'Africa/Casablanca', 'Asia/Kolkata', 'UTC'],
    ]
    for (const timeZone of zones) {
      const clock = new WallClock(timeZone)
      // The days around each change, and a date line that was crossed.
      const days = [Date.UTC(2011, 11, 29), Date.UTC(2018, 1, 17), Date.UTC(2018, 10, 3)]
      for (let day = Date.UTC(2026, 0, 1); day < Date.UTC(2027, 0, 1); day += dayMs)
        if (clock.changeIn(day, day + dayMs) !== undefined) days.push(day)
      for (const day of days) {
        const minutes = Array.from({ length: (2 * dayMs) / 60_000 }, (_, i) => day + i * 60_000)
        const shown = minutes.map((at) => [at, new Date(clock.wallAt(at))] as const)
        for (const [cron, isShown] of Object.entries(hourly)) {
          const { next } = ticksOf({ cron, timeZone })
          const found: number[] = []
          for (let at = next(day - 1); at !== undefined && at < day + 2 * dayMs; at = next(at)) found.push(at)
          const expected = shown.filter(([, wall]) => isShown(wall)).map(([at]) => at)
          expect([timeZone, cron, found]).toEqual([timeZone, cron, expected])
        }
      }
    }
  })

  it('are the same from whichever instant they are computed', () => {
    for (const cron of ['*/20 1-3 * * *', '*/20 * * * *'])
      for (const day of ['2026-03-28T22:00Z', '2026-10-24T22:00Z']) {
        const { next, latest } = ticksOf({ cron, timeZone: 'Europe/Zurich' })
        const from = Date.parse(day)
        const found: number[] = []
        for (let at = next(from); at !== undefined && at < from + 8 * 3_600_000; at = next(at)) found.push(at)
        for (let at = from; at < from + 8 * 3_600_000; at += 300_000) {
          const following = found.find((tick) => tick > at)
          if (following !== undefined) expect(next(at)).toBe(following)
          expect(latest(at, from)).toBe(found.findLast((tick) => tick <= at))
        }
      }
  })

  it('of an interval are the multiples since 1970, or since `from`', () => {
    const at = Date.parse('2026-11-25T10:07:00Z')
    expect(ticksOf({ everyMs: 900_000, timeZone: 'UTC' }).next(at)).toBe(Date.parse('2026-11-25T10:15:00Z'))
    const fromAt = Date.parse('2026-11-25T10:01:00Z')
    const since = ticksOf({ everyMs: 900_000, timeZone: 'UTC', fromAt })
    expect(since.next(at)).toBe(Date.parse('2026-11-25T10:16:00Z'))
    expect(since.next(Date.parse('2026-11-01T00:00:00Z'))).toBe(fromAt)
  })

  it('begin with `from` and end with `until`, both included', () => {
    const [fromAt, untilAt] = [Date.parse('2026-11-25T03:00:00Z'), Date.parse('2026-11-26T03:00:00Z')]
    const { next } = ticksOf({ cron: '0 3 * * *', timeZone: 'UTC', fromAt, untilAt })
    expect(next(0)).toBe(fromAt)
    expect(next(fromAt)).toBe(untilAt)
    expect(next(untilAt)).toBeUndefined()
  })

  it('are found backwards, however far apart they are', () => {
    const { latest } = ticksOf({ cron: '0 0 29 2 *', timeZone: 'UTC' })
    const now = Date.parse('2026-11-25T00:00:00Z')
    expect(latest(now, 0)).toBe(Date.parse('2024-02-29T00:00:00Z'))
    expect(latest(now, Date.parse('2024-02-29T00:00:00Z'))).toBeUndefined()
  })
})

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

/** The first minutes in `[fromAt, toAt)` at which Vixie cron runs a line with these fields, and perhaps some more. */
function modelled(fields: readonly string[], fromAt: number, toAt: number, count: number): number[] {
  const [minutes, hours, days, months, weekdays] = ranges.map(([from, to], i) => valuesOf(fields[i]!, from, to))
  if (weekdays!.has(7)) weekdays!.add(0)
  const isBoth = fields[2]!.startsWith('*') || fields[4]!.startsWith('*')
  const found: number[] = []
  for (let day = fromAt; day < toAt && found.length < count; day += 86_400_000) {
    const date = new Date(day)
    const [isDay, isWeekday] = [days!.has(date.getUTCDate()), weekdays!.has(date.getUTCDay())]
    if (!months!.has(date.getUTCMonth() + 1) || !(isBoth ? isDay && isWeekday : isDay || isWeekday)) continue
    for (const hour of [...hours!].sort((a, b) => a - b))
      for (const minute of [...minutes!].sort((a, b) => a - b)) found.push(day + hour * 3_600_000 + minute * 60_000)
  }
  return found
}

// All of it is computation, which takes six times as long beside other work.
it('300 random expressions of five fields tick when Vixie cron would', () => {
  const fromAt = Date.UTC(2026, 0, 1)
  const toAt = Date.UTC(2028, 0, 1)
  for (let i = 0; i < 300; i += 1) {
    const fields = ranges.map(([from, to]) => field(from, to))
    const expected = modelled(fields, fromAt, toAt, 40).slice(0, 40)
    const { next } = ticksOf({ cron: fields.join(' '), timeZone: 'UTC' })
    const found: number[] = []
    for (let at = next(fromAt - 1); at !== undefined && at < toAt && found.length < 40; at = next(at)) found.push(at)
    expect([fields.join(' '), found]).toEqual([fields.join(' '), expected])
  }
}, 60_000)
