/** The counter of a throttle: its windows, its even spacing, and what it says to those whom it denies. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { longestCountedMs, type ThrottleRule } from '#src/core/queue/throttle.js'
import { logAfter } from '#src/stores/rules/throttle/start-log.js'
import {
  type Counter,
  counterAt,
  counterAtRest,
  decide,
  firstCounter,
  permitted,
} from '#src/stores/rules/throttle/throttle-counter.js'
import { seededRandom } from '../seeded-random.js'
import { anyRule, anyRules, mostIn, type Pace, startsIn, stepsFor, trials } from './trial.js'

const runs = { seed: 6, numRuns: 2_000 }
const moderated = anyRule.map(({ limit, windowMs }): ThrottleRule => ({ limit: limit + 1, windowMs, moderate: true }))
const plain = (limit: number, windowMs: number): ThrottleRule => ({ limit, windowMs, moderate: false })

function counterOf(rules: readonly ThrottleRule[]): Pace {
  let state = firstCounter(rules)
  return (now, want, ready) => {
    const decision = decide(state, rules, now, want, ready)
    state = decision.state
    return decision.granted
  }
}

/** INCR and PEXPIRE: what is counted is forgotten all at once. */
function fixedWindow([rule]: readonly ThrottleRule[]): Pace {
  let hits = 0
  let endsAt = 0
  return (now, want, ready) => {
    if (now >= endsAt) {
      hits = 0
      endsAt = now + rule!.windowMs
    }
    const granted = Math.max(0, Math.min(want, ready, rule!.limit - hits))
    hits += granted
    return granted
  }
}

/** The same counter, asked with the clocks of two machines in turn that are an hour apart from the true one. */
function skewed(rules: readonly ThrottleRule[]): Pace {
  const pace = counterOf(rules)
  let asked = 0
  return (now, want, ready) => {
    asked += 1
    return pace(now + (asked % 2 === 0 ? 3_600_000 : -3_600_000), want, ready)
  }
}

/** Whether the pace keeps every window of the rules in one trial. */
function keeps(make: (rules: readonly ThrottleRule[]) => Pace) {
  return fc.property(trials(), ([rules, steps]) => {
    const starts = startsIn(make(rules), steps)
    for (const { limit, windowMs } of rules) expect(mostIn(windowMs, starts)).toBeLessThanOrEqual(limit)
  })
}

describe('the windows of a throttle', () => {
  it('never hold more starts than their limits, from any beginning and under any rules', () => {
    fc.assert(keeps(counterOf), runs)
  })

  it('are violated by an algorithm that forgets all starts at once, and this test notices', () => {
    expect(fc.check(keeps(fixedWindow), runs).failed).toBe(true)
  })

  it('are violated if each claimer uses its own clock, and this test notices', () => {
    expect(fc.check(keeps(skewed), runs).failed).toBe(true)
  })

  it('are used up: with a claim each ms they grant the whole limit, plus one ms for the strict edge', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 50 }), (limit, windowMs) => {
        const steps = Array.from({ length: 300 }, () => ({ afterMs: 1, arriving: limit, want: limit }))
        const starts = startsIn(counterOf([plain(limit, windowMs)]), steps)
        expect(starts.reduce((sum, { count }) => sum + count, 0)).toBe(limit * Math.ceil(300 / (windowMs + 1)))
      }),
      runs,
    )
  })

  it('hold a start for exactly their length', () => {
    const rules = [plain(1, 1_000)]
    const { state } = decide(firstCounter(rules), rules, 5_000, 1, 9)

    expect(decide(state, rules, 6_000, 1, 9)).toMatchObject({ granted: 0, forMs: 1 })
    expect(decide(state, rules, 6_001, 1, 9)).toMatchObject({ granted: 1, forMs: 0 })
  })

  it('grant at most as many as are wanted and available', () => {
    const rules = [plain(9, 1_000)]
    expect(decide(firstCounter(rules), rules, 0, 2, 5).granted).toBe(2)
    expect(decide(firstCounter(rules), rules, 0, 5, 2).granted).toBe(2)
    expect(decide(firstCounter(rules), rules, 0, 5, 0)).toEqual({ granted: 0, forMs: 0, state: firstCounter(rules) })
  })
})

describe('a denial', () => {
  it('gives the wait until the next start to the ms, under any rules', () => {
    fc.assert(
      fc.property(trials(), ([rules, steps]) => {
        let state = firstCounter(rules)
        const starts = startsIn((now, want, ready) => {
          const decision = decide(state, rules, now, want, ready)
          const { forMs } = decision
          if (forMs > 0) {
            expect(decision.granted).toBe(0)
            expect(permitted(state, rules, now + forMs - 1).permits).toBe(0)
            expect(permitted(state, rules, now + forMs).permits).toBeGreaterThan(0)
          } else expect(decision.granted).toBeGreaterThan(ready > 0 ? 0 : -1)
          state = decision.state
          return decision.granted
        }, steps)
        return starts.length >= 0
      }),
      runs,
    )
  })

  it('changes nothing as long as there are jobs', () => {
    fc.assert(
      fc.property(anyRules, (rules) => {
        const full = decide(firstCounter(rules), rules, 9, 20, 30).state
        const { granted, state } = decide(full, rules, 9, 1, 1)
        if (granted === 0) expect(state).toBe(full)
      }),
      runs,
    )
  })
})

describe('an even counter', () => {
  it('grants one at a time, and a late start brings the next one closer by at most its lateness', () => {
    fc.assert(
      fc.property(
        moderated.chain((rule) => fc.tuple(fc.constant(rule), stepsFor([rule]))),
        ([rule, steps]) => {
          const rules = [rule]
          const spacingUs = Math.floor((rule.windowMs * 1_000) / rule.limit)
          let state: Counter = firstCounter(rules)
          let readyAt: number | undefined
          let last: { readonly at: number; readonly lateMs: number } | undefined
          startsIn((now, want, ready) => {
            if (ready > 0) readyAt ??= now
            const opensAt = ready > 0 ? readyAt! + permitted(state, rules, readyAt!).forMs : now
            const decision = decide(state, rules, now, want, ready)
            state = decision.state
            expect(decision.granted).toBeLessThanOrEqual(1)
            if (decision.granted === 0) return 0
            // Instants are whole ms, places on the grid are not.
            if (last !== undefined)
              expect((now - last.at) * 1_000).toBeGreaterThan(spacingUs - last.lateMs * 1_000 - 1_000)
            last = { at: now, lateMs: now - opensAt }
            readyAt = ready > 1 ? now : undefined
            return 1
          }, steps)
        },
      ),
      runs,
    )
  })

  it('uses every slot in its window even if claimers are late', () => {
    const rules = [{ limit: 60, windowMs: 60_000, moderate: true }]
    // Late by up to 700 ms, never by a whole place.
    const lateMs = (i: number) => (i * 379) % 701
    const steps = Array.from({ length: 60 }, (_, i) => ({
      afterMs: i === 0 ? 0 : 1_000 + lateMs(i) - lateMs(i - 1),
      arriving: 2,
      want: 5,
    }))
    expect(startsIn(counterOf(rules), steps).length).toBe(60)
  })

  it('is off if the limit is 1', () => {
    const rules = [{ limit: 1, windowMs: 1_000, moderate: true }]
    const { state } = decide(firstCounter(rules), rules, 0, 9, 9)
    expect(state.grids).toEqual([{ credit: 0 }])
    expect(permitted(state, rules, 1_001)).toEqual({ permits: 1, forMs: 0 })
  })

  it('never catches up if it is not elastic', () => {
    const rules = [{ limit: 5, windowMs: 1_000, moderate: true }]
    const { state } = decide(firstCounter(rules), rules, 0, 1, 99)
    expect(decide(state, rules, 900, 9, 99).granted).toBe(1)
  })

  it('treats a start after a pause without jobs as punctual: the next one comes a whole spacing later', () => {
    const rules = [{ limit: 5, windowMs: 1_000, moderate: true }]
    const rested = decide(firstCounter(rules), rules, 0, 1, 1).state
    const { state } = decide(rested, rules, 590, 1, 2)
    expect(decide(state, rules, 590, 1, 1).forMs).toBe(200)
  })

  it('keeps its spacing after its window held it back', () => {
    const rules = [{ limit: 3, windowMs: 9_000, moderate: true }]
    const started = [0, 5_900, 6_000, 9_001].reduce((state, now) => {
      const { granted, state: after } = decide(state, rules, now, 1, 9)
      expect(granted).toBe(1)
      return after
    }, firstCounter(rules))
    expect(decide(started, rules, 9_001, 1, 9).forMs).toBe(5_900)

    const held = decide(started, rules, 14_901, 1, 9).state
    expect(decide(held, rules, 14_901, 1, 9).forMs).toBe(3_000)
  })
})

describe('an elastic counter', () => {
  const elastic = (elasticBuffer: number) => [{ limit: 4, windowMs: 4_000, moderate: true, elasticBuffer }]
  /** Four starts on time from 0 to 3,000, with jobs left. */
  const warm = (rules: readonly ThrottleRule[]) =>
    [0, 1_000, 2_000, 3_000].reduce((state, now) => decide(state, rules, now, 1, 9).state, firstCounter(rules))

  it('catches up to its limit less the buffer, once a full limit has started', () => {
    for (const buffer of [0, 1, 2]) {
      const rules = elastic(buffer)
      // In the window from 2,500 to 6,500 there is only the start of 3,000.
      expect(decide(warm(rules), rules, 6_500, 9, 9).granted).toBe(3 - buffer)
    }
  })

  it('does not catch up before a full limit has started', () => {
    const rules = elastic(0)
    const three = [0, 1_000, 2_000].reduce((state, now) => decide(state, rules, now, 1, 9).state, firstCounter(rules))
    expect(decide(three, rules, 6_500, 9, 9).granted).toBe(1)
  })

  it('does not catch up after a time without jobs, even if jobs are back', () => {
    const rules = elastic(0)
    const rested = decide(warm(rules), rules, 3_500, 1, 0).state
    expect(rested).toEqual(counterAtRest(warm(rules), rules))
    expect(decide(rested, rules, 6_500, 9, 9).granted).toBe(1)
  })

  it('reaches its limit in ten minutes with eight claimers that each sleep for up to three slots, and no window holds more', () => {
    const rules = [{ limit: 60, windowMs: 60_000, moderate: true, elasticBuffer: 0 }]
    for (let seed = 1; seed <= 20; seed++) {
      const random = seededRandom(seed)
      const pace = counterOf(rules)
      const polls = Array.from({ length: 8 }, () => {
        let at = 0
        return Array.from({ length: 450 }, () => (at += Math.floor(random() * 3_000)))
      })
      const asked = polls.flat().sort((a, b) => a - b)
      const steps = asked.map((at, i) => ({ afterMs: at - (asked[i - 1] ?? 0), arriving: 10, want: 10 }))
      const starts = startsIn(pace, steps)
      const ended = starts[0]!.at + 600_000
      const total = starts.filter(({ at }) => at < ended).reduce((sum, { count }) => sum + count, 0)

      expect(total).toBeGreaterThanOrEqual(594)
      expect(mostIn(60_000, starts)).toBe(60)
    }
  })
})

it('a counter is reset once its last start has left the longest window; at the edge that start still counts', () => {
  const rules: ThrottleRule[] = [
    { limit: 3, windowMs: 1_000, moderate: true, elasticBuffer: 0 },
    { limit: 9, windowMs: 5_000, moderate: false },
  ]
  const counter: Counter = { log: [{ at: 0, count: 1 }], grids: [{ slotUs: 0, credit: 3 }, { credit: 0 }] }
  const longest = longestCountedMs(rules)

  expect(counterAt(counter, rules, longest)).toBe(counter)
  expect(counterAt(counter, rules, longest + 1)).toEqual(firstCounter(rules))
})

const forMs = 1_000

it('a log of starts has each instant once, with all its starts', () => {
  const log = [
    { at: 0, count: 2 },
    { at: 10, count: 1 },
  ]

  expect(logAfter(log, 3, forMs, 10)).toEqual([
    { at: 0, count: 2 },
    { at: 10, count: 4 },
  ])
  expect(logAfter(log, 3, forMs, 11)).toEqual([...log, { at: 11, count: 3 }])
})

it('a log of starts counts late ones from the latest instant on, and later starts no earlier', () => {
  const late = logAfter([{ at: 0, count: 1 }], 2, forMs, 10, 100)
  expect(late).toEqual([
    { at: 0, count: 1 },
    { at: 110, count: 2 },
  ])
  expect(logAfter(late, 1, forMs, 20)).toEqual([
    { at: 0, count: 1 },
    { at: 110, count: 3 },
  ])
})

it('a log of starts forgets what every window has passed, and keeps the edge of the longest window', () => {
  const log = [
    { at: 0, count: 2 },
    { at: 1, count: 1 },
  ]

  expect(logAfter(log, 1, forMs, 1_000)).toHaveLength(3)
  expect(logAfter(log, 1, forMs, 1_001)).toEqual([
    { at: 1, count: 1 },
    { at: 1_001, count: 1 },
  ])
})
