import { describe, expect, it } from 'vitest'
import { dueTicks } from '#src/core/schedule/due-ticks.js'
import { ticksOf } from '#src/core/schedule/schedule-rule.js'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const nightly = ticksOf({ cron: '0 3 * * *', timeZone: 'Europe/Zurich' })
const dueAt = Date.parse('2026-11-21T02:00:00Z')
const allow = { overlap: 'allow' } as const

describe('due ticks', () => {
  it('are enqueued if they are punctual, whatever the policy for missed ones', () => {
    for (const onMissed of ['skip', 'latest', 'all'] as const)
      expect(dueTicks(nightly, { onMissed, ...allow }, dueAt, dueAt + 60_000)).toEqual({
        ...{ ticks: [dueAt], latestAt: dueAt, leftOut: 0, areMissed: false, nextAt: dueAt + dayMs },
      })
  })

  it('after three days of downtime are none, the latest, or all of them', () => {
    const now = dueAt + 3 * dayMs - hourMs
    const rest = { latestAt: dueAt + 2 * dayMs, areMissed: true, nextAt: dueAt + 3 * dayMs }
    const by = (onMissed: 'skip' | 'latest' | 'all') => dueTicks(nightly, { onMissed, ...allow }, dueAt, now)
    expect(by('skip')).toEqual({ ticks: [], leftOut: 3, ...rest })
    expect(by('latest')).toEqual({ ticks: [dueAt + 2 * dayMs], leftOut: 2, ...rest })
    expect(by('all')).toEqual({ ticks: [dueAt, dueAt + dayMs, dueAt + 2 * dayMs], leftOut: 0, ...rest })
  })

  it('include the latest if it is punctual, even if missed ones are skipped', () => {
    const { ticks, leftOut } = dueTicks(nightly, { onMissed: 'skip', ...allow }, dueAt, dueAt + 3 * dayMs + 20_000)
    expect([ticks, leftOut]).toEqual([[dueAt + 3 * dayMs], 3])
  })

  it('are at most the last thousand', () => {
    const minutely = ticksOf({ cron: '* * * * *', timeZone: 'Europe/Zurich' })
    const now = dueAt + 3 * dayMs
    const { ticks, leftOut, nextAt } = dueTicks(minutely, { onMissed: 'all', ...allow }, dueAt, now)
    expect(ticks).toEqual(Array.from({ length: 1_000 }, (_, i) => now - (999 - i) * 60_000))
    expect([leftOut, nextAt]).toEqual([1_000, now + 60_000])
  })

  it('are only the latest if each would cause the next to be skipped', () => {
    const everySecond = ticksOf({ everyMs: 1_000, timeZone: 'UTC' })
    const policy = { onMissed: 'all', overlap: 'skip' } as const
    expect(dueTicks(everySecond, policy, dueAt, dueAt + 2_500)).toEqual({
      ...{ ticks: [dueAt + 2_000], latestAt: dueAt + 2_000, leftOut: 2, areMissed: false, nextAt: dueAt + 3_000 },
    })
  })

  it('end with the last tick of the rule', () => {
    const ended = ticksOf({ everyMs: hourMs, timeZone: 'UTC', untilAt: dueAt + hourMs })
    const { ticks, nextAt } = dueTicks(ended, { onMissed: 'all', ...allow }, dueAt, dueAt + dayMs)
    expect([ticks, nextAt]).toEqual([[dueAt, dueAt + hourMs], undefined])
  })
})
