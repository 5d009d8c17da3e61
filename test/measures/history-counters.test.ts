/** The history counters: counters that only grow, whatever becomes of the history. */

import { describe, expect, it } from 'vitest'
import { HistoryCounters, hourNumbers } from '#src/measures/history-counters.js'
import type { HistoryCounts } from '#src/stores/contract/history.js'

const hour = 3_600_000

function hourOf(at: number, completed: number) {
  const zeros = { enqueued: 0, started: 0, completed, failed: 0, dead: 0, crashed: 0, cancelled: 0 }
  const counts: HistoryCounts = { ...zeros, runMs: completed * 10, runTimes: [completed, 0, 0, 0, 0, 0, 0] }
  return hourNumbers(at, counts)
}

describe('the counters of a history', () => {
  it('begin at 0 and grow with the open hours, including late counts of the last hour', () => {
    const counters = new HistoryCounters()
    const read = (...hours: number[][]) => {
      counters.add([{ name: 'mail', hours }])
      return counters.of('mail')?.completed
    }

    expect(read(hourOf(0, 70), hourOf(hour, 5))).toBe(0)
    expect(read(hourOf(0, 71), hourOf(hour, 9))).toBe(5)
    expect(read(hourOf(hour, 10), hourOf(2 * hour, 3))).toBe(9)
    expect(counters.of('mail')).toMatchObject({ runMs: 90, runTimes: [9, 0, 0, 0, 0, 0, 0] })
  })

  it('never decrease if the history does, and continue from there', () => {
    const counters = new HistoryCounters()
    for (const completed of [0, 8, 2, 3]) counters.add([{ name: 'mail', hours: [hourOf(0, completed)] }])
    expect(counters.of('mail')?.completed).toBe(9)
    counters.add([{ name: 'mail', hours: [] }])
    expect(counters.of('mail')?.completed).toBe(9)
  })

  it('include a queue that appears later, and continue with one that reappears', () => {
    const counters = new HistoryCounters()
    counters.add([])
    counters.add([{ name: 'mail', hours: [hourOf(0, 4)] }])
    counters.add([])
    counters.add([{ name: 'mail', hours: [hourOf(0, 6)] }])
    expect(counters.of('mail')?.completed).toBe(6)
    expect(counters.of('nobody')).toBeUndefined()
  })

  it('forget removed queues, so that changing names do not fill the memory', () => {
    const counters = new HistoryCounters()
    for (let i = 0; i < 3_000; i += 1) counters.add([{ name: `queue-${i}`, hours: [hourOf(0, 1)] }])
    const kept = Array.from({ length: 3_000 }, (_, i) => counters.of(`queue-${i}`)).filter((one) => one !== undefined)
    expect(kept.length).toBeLessThanOrEqual(2_000)
  })
})
