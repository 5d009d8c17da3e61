/** The page's words: what it makes of ids, numbers and instants before it shows them. */

import { describe, expect, it } from 'vitest'
import { bytesWords, countOf, countWords, rateWords } from '../../dashboard/src/words/count-words.js'
import { durationWords, shortDuration } from '../../dashboard/src/words/duration-words.js'
import { clockWords, dayWords, fullMoment, momentWords, secondWords } from '../../dashboard/src/words/moment-words.js'
import { safeLines, safeText, shortText } from '../../dashboard/src/words/safe-text.js'

describe('foreign text', () => {
  it.each([
    ['a bidi override', 'gpj.\u202eexe', 'gpj.\\u202eexe'],
    ['an isolate', 'a\u2066b\u2069', 'a\\u2066b\\u2069'],
    ['a null, a line end and an escape', 'a\0b\nc\u001b[31m', 'a\\u0000b\\u000ac\\u001b[31m'],
    ['a space without width', 'ad\u200bmin', 'ad\\u200bmin'],
    ['a filler that looks like nothing', 'a\u3164', 'a\\u3164'],
    ['a tag beyond four digits', 'a\u{e0041}', 'a\\u{e0041}'],
    ['half a sign', 'a\ud83d', 'a\\ud83d'],
  ])('shows %s as an escape', (_, text, shown) => {
    expect(safeText(text)).toBe(shown)
  })

  it('is unchanged for every script', () => {
    for (const text of ['order-42', 'größe', '注文', 'заказ', '🚀', '<b>&amp;', 'a/b c'])
      expect(safeText(text)).toBe(text)
  })

  it('keeps lines and tabs of a log, and no other invisible characters', () => {
    expect(safeLines('a\tb\r\nc\u202ed\n')).toBe('a\tb\nc\\u202ed\n')
  })

  it('is shortened in the middle if it is long, and never cuts a character', () => {
    expect(shortText('0123456789', 10)).toBe('0123456789')
    expect(shortText('0123456789a', 10)).toBe('01234…789a')
    expect([...shortText('🚀'.repeat(50), 9)]).toHaveLength(9)
  })
})

describe('numbers', () => {
  it('are written in full while they are short', () => {
    expect([0, 999, 12_345, 123_456, 1_234_567].map(countWords)).toEqual(['0', '999', '12,345', '123.5K', '1.2M'])
    expect([99_999, 100_000, 999_949, 999_950, 12_345_678, 1e9, 7.25e13].map(countWords)).toEqual([
      ...['99,999', '100K', '999.9K', '1M', '12.3M', '1B', '72.5T'],
    ])
    expect([countOf(1, 'job'), countOf(1_000, 'job')]).toEqual(['1 job', '1,000 jobs'])
    expect([0.125, 12.34, 4_321].map(rateWords)).toEqual(['0.125', '12.3', '4,321'])
    expect([512, 87_203_840].map(bytesWords)).toEqual(['512 B', '83.2 MiB'])
  })

  it('show durations in at most two units', () => {
    const all = [0, 0.2, 340, 4_234, 59_600, 200_000, 7_380_000, 187_200_000, -5_000]
    expect(all.map(durationWords)).toEqual([
      ...['0 s', '0 s', '340 ms', '4.2 s', '1 min', '3 min 20 s', '2 h 3 min', '2 d 4 h', '−5 s'],
    ])
    expect([0, 340, 4_234, 59_600, 200_000, 86_400_000].map(shortDuration)).toEqual([
      ...['0', '340ms', '4.2s', '1m', '3m', '1d'],
    ])
  })

  it('show instants relative to now', () => {
    const now = Date.UTC(2026, 0, 1)
    expect([0, -400, -5_400, 300_000, -7_400_000].map((away) => momentWords(now + away, now))).toEqual([
      ...['just now', 'just now', '5 s ago', 'in 5 min', '2 h ago'],
    ])
  })

  it('show instants in local time, with the zone', () => {
    const at = new Date(2026, 10, 5, 4, 3, 9)
    const east = -at.getTimezoneOffset()
    const zone = east === 0 ? 'UTC' : expect.stringMatching(/^UTC[+−]\d+(:\d\d)?$/)
    expect([dayWords, clockWords, secondWords].map((words) => words(at.getTime()))).toEqual([
      '5 Nov',
      '04:03',
      '04:03:09',
    ])
    const [, text, told] = /^(.+) (\S+)$/.exec(fullMoment(at.getTime()))!
    expect([text, told]).toEqual(['5 Nov 2026, 04:03:09', zone])
  })
})
