import { describe, expect, it } from 'vitest'
import { joinedLog, mostLogBytes } from '#src/core/job/job-log.js'

describe('a log', () => {
  it('grows by each write', () => {
    expect(joinedLog('one\n', 'two\n')).toBe('one\ntwo\n')
  })

  it('keeps its last 64 KiB', () => {
    const log = joinedLog('a'.repeat(mostLogBytes), 'end')
    expect(Buffer.byteLength(log)).toBe(mostLogBytes)
    expect(log.endsWith('aend')).toBe(true)
  })

  it.each([
    ['two', '½'],
    ['three', '€'],
    ['four', '🎈'],
  ])('begins with a whole character if a cut falls into one of %s bytes', (_, character) => {
    for (let extra = 1; extra <= 4; extra += 1) {
      const log = joinedLog(character.repeat(mostLogBytes / 2), 'x'.repeat(extra))
      expect(Buffer.byteLength(log)).toBeGreaterThan(mostLogBytes - 4)
      expect(Buffer.byteLength(log)).toBeLessThanOrEqual(mostLogBytes)
      expect([...log][0]).toBe(character)
    }
  })
})
