import { describe, expect, it } from 'vitest'
import { AwakeTime } from '#src/cli/supervise/awake-time.js'

describe('awake time', () => {
  it('advances with the clock while it ticks', () => {
    const watched = new AwakeTime(10_000)
    for (const now of [10_500, 11_000, 11_900]) watched.tick(now)
    expect(watched.ms).toBe(1_900)
  })

  it('stands still while the supervisor is stopped', () => {
    const watched = new AwakeTime(0)
    for (const now of [500, 3_600_500, 3_601_000]) watched.tick(now)
    expect(watched.ms).toBe(500 + 1_000 + 500)
  })
})
