import { describe, expect, it } from 'vitest'
import { deathsInARow, restartDelayMs } from '#src/cli/supervise/restart-delay.js'

describe('the restart delay', () => {
  it('is 0 after the first death, then 250 ms, doubling to 30 s', () => {
    const delays = [1, 2, 3, 4, 8, 9, 10, 2_000].map((deaths) => restartDelayMs(deaths, () => 0))
    expect(delays).toEqual([0, 250, 500, 1_000, 16_000, 30_000, 30_000, 30_000])
  })

  it('is shortened by up to half at random', () => {
    expect([0.5, 0.999_999].map((random) => restartDelayMs(5, () => random))).toEqual([1_500, 1_000])
  })

  it('forgets the deaths before a process that lived for a minute', () => {
    expect([deathsInARow(0, 5), deathsInARow(7, 59_999), deathsInARow(7, 60_000)]).toEqual([1, 8, 1])
  })
})
