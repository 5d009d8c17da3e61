import { describe, expect, it } from 'vitest'
import { plotLines } from '#src/cli/commands/simulate-command.js'
import {
  type Arrivals,
  mostOf,
  mostWithin,
  type SimulatedLoad,
  simulated,
} from '#src/cli/commands/throttle-simulation.js'
import type { ThrottleRule } from '#src/core/queue/throttle.js'
import { seededRandom } from '../../seeded-random.js'

const minute = 60_000
const rule = (limit: number, windowMs: number, more: Partial<ThrottleRule> = {}): ThrottleRule => ({
  limit,
  windowMs,
  moderate: false,
  ...more,
})
const even = { moderate: true }
const elastic = { moderate: true, elasticBuffer: 0 }
const run = (rules: ThrottleRule[], scene: Partial<SimulatedLoad> = {}, seed = 1) =>
  simulated({ rules, forMs: 10 * minute, arrivals: {}, random: seededRandom(seed), ...scene })

describe('a simulated throttle', () => {
  it('starts the whole limit at once, and as many again one millisecond after the window', () => {
    const { starts } = run([rule(3, minute)], { forMs: 2 * minute })
    expect(starts).toEqual([0, 0, 0, 60_001, 60_001, 60_001])
  })

  it('starts one in each slot of an even grid if it is moderated', () => {
    const { starts } = run([rule(10, minute, even)], { forMs: 30_000 })
    expect(starts).toEqual([0, 6_000, 12_000, 18_000, 24_000, 30_000])
  })

  it('allows 33 in 60 s, moderated and elastic, within 3 of 330 in ten minutes', () => {
    const { starts, worst } = run([rule(33, minute, elastic)])
    expect(Math.abs(starts.length - 330)).toBeLessThanOrEqual(3)
    expect(worst).toEqual([{ limit: 33, windowMs: minute, most: 33 }])
  })

  it('catches up when polled if it is elastic, and falls behind if it is not', () => {
    const polls = { least: 0, most: 3 }
    const [behind, caughtUp] = [run([rule(60, minute, even)], { polls }), run([rule(60, minute, elastic)], { polls })]
    expect(behind.starts.length).toBeLessThan(400)
    expect(caughtUp.starts.length).toBeGreaterThan(550)
  })

  it('never starts more than its limit in any closed window, whatever the arrivals and polls', () => {
    const scenes: Partial<SimulatedLoad>[] = [
      { arrivals: { rate: { jobs: 40, ms: minute } } },
      { arrivals: { burst: 200, rate: { jobs: 5, ms: minute } } },
      { polls: { least: 0, most: 3 } },
      { polls: { least: 0, most: 0.2 }, arrivals: { burst: 500 } },
    ]
    const rules = [
      [rule(33, minute, elastic)],
      [rule(33, minute, { moderate: true, elasticBuffer: 5 })],
      [rule(7, 1_000), rule(33, minute, even), rule(150, 5 * minute, elastic)],
      [rule(1, 2_000, even)],
    ]
    for (const seed of [1, 2, 3, 4, 5])
      for (const scene of scenes)
        for (const given of rules) {
          const { worst, starts } = run(given, scene, seed)
          expect(starts.length).toBeGreaterThan(40)
          for (const { limit, most } of worst) expect(most).toBeLessThanOrEqual(limit)
        }
  })

  it('starts no job before it arrived, and all in order of arrival', () => {
    const { starts, arrived } = run([rule(10, minute, even)], { arrivals: { burst: 2, rate: { jobs: 9, ms: minute } } })
    expect(arrived!.slice(0, 2)).toEqual([0, 0])
    expect(Math.abs(arrived!.length - 92)).toBeLessThan(30)
    expect(starts.every((at, i) => at >= arrived![i]!)).toBe(true)
  })

  it('gives no credit for idle time: later jobs are spaced as before', () => {
    const { starts } = run([rule(10, minute, elastic)], { arrivals: { burst: 3 } })
    expect(starts).toEqual([0, 6_000, 12_000])
  })

  it('draws the same for the same seed, and a different plot for another', () => {
    const drawn = (seed: number) =>
      run([rule(10, minute)], { arrivals: { rate: { jobs: 9, ms: minute } } }, seed).starts
    expect(drawn(7)).toEqual(drawn(7))
    expect(drawn(7)).not.toEqual(drawn(8))
  })

  it('predicts the upper bounds of a simulation', () => {
    const most = (scene: Partial<SimulatedLoad>) =>
      mostOf({ rules: [rule(10, minute)], forMs: 5 * minute, arrivals: {}, ...scene })
    expect(most({})).toEqual({ starts: 60, jobs: 0, looks: 0 })
    expect(most({ arrivals: { burst: 7 } })).toMatchObject({ starts: 7, jobs: 7 })
    expect(most({ arrivals: { rate: { jobs: 100, ms: minute } } })).toMatchObject({ starts: 60, jobs: 1_000 })
    expect(most({ polls: { least: 0, most: 2 } })).toMatchObject({ looks: 50 })
  })
})

describe('the most within a window', () => {
  it('counts both of its edges', () => {
    expect([
      mostWithin([0, 10, 20], 10),
      mostWithin([0, 11, 22], 10),
      mostWithin([5, 5, 5], 1),
      mostWithin([], 1),
    ]).toEqual([2, 1, 3, 0])
  })
})

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
