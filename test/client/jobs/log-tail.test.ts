import { describe, expect, it } from 'vitest'
import { linesOf, newIn } from '#src/client/jobs/log-tail.js'
import { joinedLog, mostLogBytes } from '#src/core/job/job-log.js'

describe('the new part of a log', () => {
  it.each([
    ['all of the first', '', 'a\nb\n', 'a\nb\n'],
    ['nothing if nothing came', 'a\n', 'a\n', ''],
    ['the text after the known part', 'a\n', 'a\nb\n', 'b\n'],
    ['the rest of a known line', 'a', 'ab\n', 'b\n'],
    ['the text after it if the beginning is gone', 'one\ntwo\n', 'two\nthree\n', 'three\n'],
    ['the shortest possible part of a log that repeats itself', 'xyxyxy', 'yxyxyxz', 'xz'],
  ])('is %s', (_, seen, log, text) => {
    expect(newIn(seen, log)).toEqual({ text, isGap: false })
  })

  it('is the whole window, marked as a gap, if the window has moved past what was seen', () => {
    expect(newIn('old\n', 'new')).toEqual({ text: 'new', isGap: true })
  })

  it('adds up to the whole log, however the window moves, even inside a character', () => {
    const chunks = Array.from({ length: 400 }, (_, i) => `${'ä€'.repeat(i % 97)} line ${i}\n`)
    let [log, seen, told] = ['', '', '']
    for (const chunk of chunks) {
      log = joinedLog(log, chunk)
      told += newIn(seen, log).text
      seen = log
    }

    expect(Buffer.byteLength(told)).toBeGreaterThan(mostLogBytes)
    expect(told).toBe(chunks.join(''))
  })

  it('is found quickly in a full log of one repeated character', () => {
    // Character by character it would take minutes, and the test would be ended.
    expect(newIn(`${'a'.repeat(mostLogBytes - 1)}b`, 'a'.repeat(mostLogBytes)).isGap).toBe(true)
  })
})

it('a log has as many lines as line breaks, plus one if the last line has not ended', () => {
  expect([linesOf(''), linesOf('a\n'), linesOf('a\n\nb')]).toEqual([[], ['a'], ['a', '', 'b']])
})
