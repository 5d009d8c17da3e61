import fc from 'fast-check'
import picocolors from 'picocolors'
import { describe, expect, it } from 'vitest'
import { printable, printableJson, printableLines, shortened, widthOf } from '#src/cli/printable.js'
import { count, counted, fromNow, rate } from '#src/cli/terminal/figures.js'
import { recordLines } from '#src/cli/terminal/record-lines.js'
import { type Column, table } from '#src/cli/terminal/table.js'
import { jsonText, type Terminal } from '#src/cli/terminal/terminal.js'
import type { JobRecord } from '#src/core/job/job.js'

interface Row {
  name: string
  n: number
  note: string
}

const columns: Column<Row>[] = [
  { title: 'name', most: 6, cell: ({ name }) => name },
  { title: 'n', align: 'right', cell: ({ n }) => String(n) },
  { title: 'note', cell: ({ note }) => note },
]

describe('a table', () => {
  it('aligns its cells under their titles, numbers to the right, without trailing spaces', () => {
    const rows = [
      { name: 'a', n: 5, note: '' },
      { name: 'bcd', n: 1_234, note: 'late' },
    ]
    expect(table(columns, rows)).toEqual(['name     n  note', 'a        5', 'bcd   1234  late'])
  })

  it('shortens a cell to the limit of its column, and the last one to the width of the terminal', () => {
    const rows = [{ name: 'abcdefgh', n: 1, note: 'a long story about nothing' }]
    expect(table(columns, rows, { width: 20 })).toEqual(['name    n  note', 'abcde…  1  a long s…'])
  })

  it('counts wide characters as two columns and combining marks as none', () => {
    const rows = [
      { name: '日本', n: 1, note: '' },
      { name: 'e\u0301', n: 2, note: '' },
    ]
    expect(table(columns, rows)).toEqual(['name  n  note', '日本  1', 'e\u0301     2'])
  })

  it('writes out control characters in each cell, before it measures and shortens them', () => {
    const rows = [{ name: '\u001b[2J', n: 1, note: 'a\nb\u009b' }]
    expect(table(columns, rows)).toEqual(['name    n  note', '\\u001…  1  a\\nb\\u009b'])
  })

  it('colours cells and titles without moving them', () => {
    const painted = columns.map((column) => ({ ...column, paint: (text: string) => `<${text}>` }))
    expect(table(painted, [{ name: 'a', n: 5, note: 'x' }], { paintTitle: (text) => `[${text}]` })).toEqual([
      '[name]  [n]  [note]',
      '<a>     <5>  <x>',
    ])
  })
})

describe('figures', () => {
  it('are grouped, and their nouns agree with the number', () => {
    expect([count(1_234_567), counted(1, 'job'), counted(0, 'job'), counted(2_000, 'job')]).toEqual([
      '1,234,567',
      '1 job',
      '0 jobs',
      '2,000 jobs',
    ])
  })

  it('show an instant by its distance from now', () => {
    const at = (ms: number) => fromNow(new Date(1_000_000 + ms), 1_000_000)
    expect([at(0), at(-400), at(65_000), at(-3_600_000)]).toEqual(['now', 'now', 'in 1m 5s', '1h ago'])
  })

  it('show a small rate with its fraction, and 0 if no time has passed', () => {
    expect([rate(1_500, 1_000), rate(3, 2_000), rate(0, 1_000), rate(5, 0)]).toEqual(['1,500', '1.5', '0', '0'])
  })
})

const terminal = { json: false, colors: picocolors.createColors(false), columns: 100 } as Terminal
const at = new Date('2026-11-25T03:00:00Z')
const job = {
  ...{ id: 'film-b', queue: 'video', task: 'encode', state: 'running', attempt: 1, priority: 0 },
  ...{ createdAt: at, updatedAt: at, runAt: at, startedAt: at },
} as unknown as JobRecord

it.each([
  [{ fraction: 0.11666666666666667, note: 'frame 7\u001b[31m' }, '12% frame 7\\u001b[31m'],
  [{ fraction: 1 }, '100%'],
  [{ fraction: 0 }, '0%'],
])('a job record shows its progress as lists do: %j is %s', (progress, words) => {
  const lines = recordLines({ ...job, progress } as JobRecord, terminal)
  expect(lines.filter((line) => line.startsWith('progress'))).toEqual([`progress   ${words}`])
})

it.each([
  ['dead', 'max-retries', 4, 'attempt    4  the last: none is left'],
  ['dead', 'unrecoverable', 2, 'attempt    2  after 1 failure'],
  ['dead', 'buried', 1, 'attempt    1'],
  ['scheduled', undefined, 2, 'attempt    2  after 1 failure'],
])('a record shows the attempt of a %s job (%s): %i', (state, reason, attempt, line) => {
  const lines = recordLines({ ...job, state, reason, attempt } as JobRecord, terminal)
  expect(lines).toContain(line)
})

it('a record counts the wait of a job from when it could begin', () => {
  const waitedUntil = new Date('2026-11-25T04:00:00Z')
  const began = (startedAt: Date, more = {}) =>
    recordLines({ ...job, startedAt, finishedAt: startedAt, ...more } as JobRecord, terminal).find((line) =>
      line.startsWith('startedAt'),
    )
  const startedAt = new Date('2026-11-25T04:00:05Z')
  expect(began(startedAt)).toContain('1h 5s after it was due')
  expect(began(startedAt, { waitedUntil })).toContain('  5s after its wait was over')
  expect(began(at, { waitedUntil })).not.toContain('after')
})

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
const commands = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/

it('a record of an ordered job writes out what would command the terminal in the parents of its payloads', () => {
  const parent = { id: 'a\u001b]0;x\u0007\nb', task: 't\u009b2J', queue: 'q\u202e' }
  const payloads = [{ score: 1, input: 'x', meta: { by: '\u001b[1m' }, parent }]
  const lines = recordLines({ ...job, payloads, payloadCount: 1 } as unknown as JobRecord, terminal)
  expect(lines.filter((line) => commands.test(line))).toEqual([])
  expect(lines.join('\n')).toContain('a\\u001b]0;x\\u0007\\nb (t\\u009b2J, in q\\u202e)')
})

describe('printable text', () => {
  it('escapes terminal control sequences, and leaves the rest alone', () => {
    expect(printable('a\u001b[31mb\u0007\r\n\tc\u009b2J\u202e\u2066d')).toBe(
      'a\\u001b[31mb\\u0007\\r\\n\\tc\\u009b2J\\u202e\\u2066d',
    )
    expect(printable('Grüße, 日本 👍')).toBe('Grüße, 日本 👍')
    expect(printableLines('one\u001b\r\ntwo')).toBe('one\\u001b\ntwo')
  })

  it('escapes invisible characters: two ids that differ look different', () => {
    expect(printable('a\u200bb\u200cc\u200dd\u2060e\u00adf\u034fg\u115fh\u3164i\ufe0fj')).toBe(
      'a\\u200bb\\u200cc\\u200dd\\u2060e\\u00adf\\u034fg\\u115fh\\u3164i\\ufe0fj',
    )
    expect(printable('x\u{e0041}')).toBe('x\\udb40\\udc41')
    expect(printable('👩‍💻 ❤️ 👍🏽')).toBe('👩‍💻 ❤️ 👍🏽')
    const json = jsonText({ id: 'a\u200b\u{e0041}' })
    expect(json).not.toMatch(/[\u200b\u{e0041}]/u)
    expect(JSON.parse(json)).toEqual({ id: 'a\u200b\u{e0041}' })
  })

  it('no text controls the terminal, as text or as JSON, and the JSON keeps its value', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(printable(text)).not.toMatch(commands)
        const json = jsonText({ text })
        expect(json).not.toMatch(commands)
        expect(JSON.parse(json)).toEqual({ text })
      }),
      { seed: 7, numRuns: 500 },
    )
    expect(printableJson('{\n  "a": "\u009b"\n}')).toBe('{\n  "a": "\\u009b"\n}')
  })

  it('shortened text is never wider than requested', () => {
    expect(shortened('abcdef', 6)).toBe('abcdef')
    expect(shortened('abcdefg', 6)).toBe('abcde…')
    expect(shortened('日本語', 4)).toBe('日…')
    expect(shortened('abc', 0)).toBe('')
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(20), (text, most) => {
        expect(widthOf(shortened(text, most))).toBeLessThanOrEqual(most)
      }),
      { seed: 7, numRuns: 500 },
    )
  })

  it('JSON shows record values that JSON lacks', () => {
    const value = { big: 12n, map: new Map([['a', 1]]), set: new Set([1]), bytes: Buffer.from('hi'), at: new Date(0) }
    expect(JSON.parse(jsonText(value))).toEqual({
      big: '12',
      map: [['a', 1]],
      set: [1],
      bytes: 'aGk=',
      at: '1970-01-01T00:00:00.000Z',
    })
    expect(jsonText(undefined)).toBe('null')
  })
})
