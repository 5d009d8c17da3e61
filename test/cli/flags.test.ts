import { describe, expect, it } from 'vitest'
import { bytesFlag, graceFlag } from '#src/cli/flags.js'

describe('flags', () => {
  it.each([
    ['1', 1],
    ['536870912', 536_870_912],
    ['512MB', 536_870_912],
    ['2gb', 2_147_483_648],
    ['100KB', 102_400],
  ])('the size %s is %i bytes', (given, bytes) => {
    expect(bytesFlag(given)).toBe(bytes)
  })

  it.each(['', '0', '-1', '1.5GB', '512M', '99999999999999GB'])("the size '%s' is refused", (given) => {
    expect(() => bytesFlag(given)).toThrow(/Expected a size such as '512MB'/)
  })

  it("the grace 'none' means no limit", () => {
    expect([graceFlag('none'), graceFlag('5s'), graceFlag('0')]).toEqual([Number.POSITIVE_INFINITY, 5_000, 0])
  })
})
