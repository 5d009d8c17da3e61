import { describe, expect, it } from 'vitest'
import { plotLines } from '#src/cli/commands/throttle-plot.js'
import { type Arrivals, simulated } from '#src/cli/commands/throttle-simulation.js'
import { seededRandom } from '../seeded-random.js'

const minute = 60_000
const dim = (text: string) => text

function plot(limit: number, options: { forMs?: number; width?: number; arrivals?: Arrivals } = {}): string[] {
  const { forMs = 5 * minute, width = 80, arrivals = {} } = options
  const rules = [{ limit, windowMs: minute, moderate: false }]
  const simulation = simulated({ rules, forMs, arrivals, random: seededRandom(1) })
  return plotLines(simulation, { forMs, width, dim })
}

describe('the plot of a throttle', () => {
  it('has a mark for each start, a line for their sum, and the time axis below', () => {
    expect(plot(2, { forMs: 3 * minute, width: 40, arrivals: { burst: 5 } })).toEqual([
      'started in each 5s, a mark for each job',
      '2 │•           •',
      '  │•           •           •',
      '  └┬───────────┬───────────┬───────────',
      '   0           1m          2m',
      'started in all •, enqueued ·',
      '5 │························••••••••••••',
      '  │            ••••••••••••',
      '  │',
      '  │',
      '  │••••••••••••',
      '  │',
      '  │',
      '0 │',
      '  └┬───────────┬───────────┬───────────',
      '   0           1m          2m',
    ])
  })

  it.each([20, 40, 80, 200, Number.POSITIVE_INFINITY])('fits into %d columns, and into 80 at most', (width) => {
    for (const [limit, forMs] of [
      [1, minute],
      [10, 5 * minute],
      [1_000, 8 * minute],
      [3, 86_400_000],
    ] as const) {
      const widths = plot(limit, { forMs, width }).map((line) => line.length)
      // It cannot be narrower than its words.
      expect(Math.max(...widths)).toBeLessThanOrEqual(Math.min(80, Math.max(width, 42)))
    }
  })

  it('says how many starts a mark stands for if there are many', () => {
    expect(plot(1_000)[0]).toBe('started in each 5s, a mark for up to 167')
    expect(plot(1_000)[1]).toMatch(/^1,000 │•/)
  })

  it('is empty without starts', () => {
    const empty = plotLines({ starts: [], arrived: [], worst: [] }, { forMs: minute, width: 80, dim })
    expect(empty.filter((line) => line.includes('•')).length).toBe(2)
  })
})
