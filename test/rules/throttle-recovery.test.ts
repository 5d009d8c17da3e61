/** The recovery of a throttle: what a restart, another server or a clock set back may make it forget. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { longestCountedMs, type ThrottleRule } from '#src/core/queue/throttle.js'
import { type Counter, decide, firstCounter, permitted } from '#src/stores/rules/throttle/throttle-counter.js'
import {
  firstRecovery,
  type Recovery,
  recovered,
  recoveredCounter,
} from '#src/stores/rules/throttle/throttle-recovery.js'
import { anyRules, mostIn, startsIn, stepsFor, type TrialStep } from './trial.js'

const minuteMs = 60_000
const rule = (limit: number, windowMs: number): ThrottleRule => ({ limit, windowMs, moderate: false })
const short = [rule(10, minuteMs)]
const long = [rule(10, 60 * minuteMs)]

/** What a store holds of a throttle. */
interface Held {
  readonly counter: Counter
  readonly recovery: Recovery
}

/** A store that may be replaced by a copy of it as it was, and whose clock may be set back. */
class Server {
  readonly #rules: readonly ThrottleRule[]
  /** What was held, and from when on, by a clock that nobody sets. */
  readonly #history: { readonly trueAt: number; readonly held: Held }[] = []
  #held: Held
  #run = 0
  #offMs = 0

  constructor(rules: readonly ThrottleRule[], trueAt: number) {
    this.#rules = rules
    this.#held = { counter: firstCounter(rules), recovery: firstRecovery('0', trueAt) }
  }

  /** Another takes its place, which has not heard of the last `tailMs`. */
  failOver(trueAt: number, tailMs: number): void {
    this.#run += 1
    const known = this.#history.filter((one) => one.trueAt <= trueAt - tailMs)
    this.#held = known.at(-1)?.held ?? this.#held
  }

  setBack(byMs: number): void {
    this.#offMs -= byMs
  }

  claim(trueAt: number, want: number): number {
    const now = trueAt + this.#offMs
    const { counter, recovery: before } = this.#held
    const recovery = recovered(before, this.#rules, String(this.#run), now)
    const at = Math.max(now, recovery.lastAt ?? now)
    const state = recoveredCounter(counter, this.#rules, before, recovery)
    const isQuiet = recovery.quietUntil !== undefined && recovery.quietUntil > at
    const { granted, state: after } = isQuiet ? { granted: 0, state } : decide(state, this.#rules, at, want, 1_000)
    this.#held = { counter: after, recovery: granted > 0 ? { ...recovery, lastAt: at } : recovery }
    this.#history.push({ trueAt, held: this.#held })
    return granted
  }
}

type Mishap = { readonly failsOverMs?: number; readonly setsBackMs?: number }

const mishap: fc.Arbitrary<Mishap> = fc.oneof(
  { weight: 12, arbitrary: fc.constant({}) },
  { weight: 2, arbitrary: fc.record({ failsOverMs: fc.integer({ min: 0, max: 2_000 }) }) },
  { weight: 1, arbitrary: fc.record({ setsBackMs: fc.constantFrom(1, 900, 1_000, 1_001, 5_000, 3_600_000) }) },
)

const trial = anyRules.chain((rules) =>
  fc.tuple(fc.constant(rules), fc.array(fc.tuple(stepsFor(rules, 1), mishap), { minLength: 2, maxLength: 60 })),
)

function startsOf(rules: readonly ThrottleRule[], steps: readonly (readonly [readonly TrialStep[], Mishap])[]) {
  const server = new Server(rules, 0)
  let step = -1
  // One start that no tail forgets: where nothing is known of any, nothing is charged.
  const begun = { afterMs: 0, arriving: 1, want: 1 }
  const settled = { afterMs: 5_000, arriving: 0, want: 0 }
  const all = [begun, settled, ...steps.map(([[one]]) => ({ ...one!, arriving: 20, want: Math.max(1, one!.want) }))]
  return startsIn((now, want) => {
    step += 1
    const { failsOverMs, setsBackMs } = steps[step - 1]?.[1] ?? {}
    if (failsOverMs !== undefined) server.failOver(now, failsOverMs)
    if (setsBackMs !== undefined) server.setBack(setsBackMs)
    return server.claim(now, want)
  }, all)
}

describe('a short window after a restart', () => {
  it('never holds more than its limit, even if starts of two seconds are lost and the clock is set back', () => {
    fc.assert(
      fc.property(trial, ([rules, steps]) => {
        const starts = startsOf(rules, steps)
        for (const { limit, windowMs } of rules) expect(mostIn(windowMs, starts)).toBeLessThanOrEqual(limit)
      }),
      { seed: 6, numRuns: 3_000 },
    )
  })

  it('is silent for its length and one ms, and then goes on', () => {
    const begun: Recovery = { ...firstRecovery('a', 0), lastAt: 0 }
    const after = recovered(begun, short, 'b', 1_000)

    expect(after).toEqual({
      run: 'b',
      count: 1,
      at: 1_000,
      shiftMs: 0,
      lastAt: 1_000,
      quietUntil: 1_000 + minuteMs + 1,
    })
    expect(recovered(after, short, 'b', 1_001)).toBe(after)
  })

  it('is one of at most ten minutes; one ms more makes it long', () => {
    const begun: Recovery = { ...firstRecovery('a', 0), lastAt: 0 }

    expect(recovered(begun, [rule(1, 600_000)], 'b', 5).quietUntil).toBe(600_006)
    expect(recovered(begun, [rule(1, 600_001)], 'b', 5).quietUntil).toBeUndefined()
  })

  it('is silent for as long as the longest short window', () => {
    const begun: Recovery = { ...firstRecovery('a', 0), lastAt: 0 }
    expect(recovered(begun, [rule(1, 1_000), rule(5, 9_000), ...long], 'b', 5).quietUntil).toBe(9_006)
  })

  it('stays silent until the later of two ends if it was silent already', () => {
    const quiet: Recovery = { ...firstRecovery('a', 0), lastAt: 0, quietUntil: 500_000 }
    expect(recovered(quiet, short, 'b', 5).quietUntil).toBe(500_000)
  })
})

describe('a throttle without starts', () => {
  it('forgets nothing, and so is neither silent nor charged', () => {
    const recovery = recovered(firstRecovery('a', 0), [...short, ...long], 'b', 5)
    expect(recovery).toEqual(firstRecovery('b', 5))
    expect(recoveredCounter(firstCounter(long), long, firstRecovery('a', 0), { ...recovery, count: 1 }).log).toEqual([])
  })
})

describe('a long window after a restart', () => {
  /** So many may start after a restart, where the latest of three starts was so long before it. */
  const left = (gapMs: number) => {
    const counter = decide(firstCounter(long), long, 0, 3, 9).state
    const before: Recovery = { ...firstRecovery('a', 0), lastAt: 0 }
    const recovery = recovered(before, long, 'b', gapMs)
    return permitted(recoveredCounter(counter, long, before, recovery), long, gapMs).permits
  }

  it('is charged with as many starts as would have fitted since its last one, rounded up', () => {
    expect(left(0)).toBe(7)
    expect(left(1)).toBe(6)
    expect(left(6 * minuteMs)).toBe(6)
    expect(left(6 * minuteMs + 1)).toBe(5)
    expect(left(30 * minuteMs)).toBe(2)
  })

  it('is charged nothing if it had no start', () => {
    const counter = decide(firstCounter(long), long, 0, 3, 9).state
    const before: Recovery = { ...firstRecovery('a', 0), lastAt: 0 }
    const recovery = recovered(before, long, 'b', 500 * minuteMs)
    expect(recoveredCounter(counter, long, before, recovery)).toEqual(firstCounter(long))
  })

  it('is charged separately: a short window with it, which is silent, adds nothing', () => {
    const rules = [...short, ...long]
    const counter = decide(firstCounter(rules), rules, 0, 3, 9).state
    const before: Recovery = { ...firstRecovery('a', 0), lastAt: 0 }
    const recovery = recovered(before, rules, 'b', 30 * minuteMs)

    expect(recoveredCounter(counter, rules, before, recovery).log).toEqual([
      { at: 0, count: 3 },
      { at: 30 * minuteMs, count: 5 },
    ])
  })

  it('keeps a counter whose last start is at its edge, and drops older ones', () => {
    const counter = decide(firstCounter(long), long, 0, 3, 9).state
    const before: Recovery = { ...firstRecovery('a', 0), lastAt: 0 }
    const at = (ms: number) => recoveredCounter(counter, long, before, recovered(before, long, 'b', ms))
    const edge = longestCountedMs(long)

    expect(at(edge).log).toHaveLength(2)
    expect(at(edge + 1)).toEqual(firstCounter(long))
  })

  it('is shifted by the amount the clock was set back since it was written, whatever happened before', () => {
    const even: ThrottleRule[] = [{ limit: 10, windowMs: 60 * minuteMs, moderate: true }]
    const counter: Counter = { log: [{ at: 9_000, count: 1 }], grids: [{ slotUs: 9_000_000, credit: 1 }] }
    const once = { ...firstRecovery('a', 0), count: 1, shiftMs: -4_000, lastAt: 9_000 }
    const twice = recovered(once, even, 'a', 2_000, 0)
    const moved = recoveredCounter(counter, even, once, twice)

    expect(twice.shiftMs).toBe(-11_000)
    expect(moved).toEqual({ log: [{ at: 2_000, count: 1 }], grids: [{ slotUs: 2_000_000, credit: 1 }] })
  })

  it('has its last start at the recovery: no charge lies in the future', () => {
    const before: Recovery = { ...firstRecovery('a', 0), lastAt: 0 }
    expect(recovered(before, long, 'b', 30 * minuteMs).lastAt).toBe(30 * minuteMs)
  })

  it('is charged once for each restart', () => {
    const counter = decide(firstCounter(long), long, 0, 3, 9).state
    const recovery = recovered({ ...firstRecovery('a', 0), lastAt: 0 }, long, 'b', 1)
    expect(recoveredCounter(counter, long, recovery, recovery)).toBe(counter)
  })
})

describe('a clock that is set back', () => {
  const even = [{ limit: 10, windowMs: minuteMs, moderate: true }]

  it('by at most a second counts as standing still', () => {
    const begun: Recovery = { ...firstRecovery('a', 0), lastAt: 50_000 }
    expect(recovered(begun, short, 'a', 49_000)).toBe(begun)
  })

  it('by more than a second moves the latest start to now, keeps distances between starts, and makes the throttle silent', () => {
    const counter = decide(decide(firstCounter(even), even, 50_000, 1, 9).state, even, 56_000, 1, 9).state
    const before: Recovery = { ...firstRecovery('a', 0), lastAt: 56_000 }
    const recovery = recovered(before, even, 'a', 9_000)

    expect(recovery).toMatchObject({ count: 1, at: 9_000, shiftMs: -47_000, lastAt: 9_000 })
    expect(recovery.quietUntil).toBe(9_000 + minuteMs + 1)
    expect(recoveredCounter(counter, even, before, recovery)).toEqual({
      log: [
        { at: 3_000, count: 1 },
        { at: 9_000, count: 1 },
      ],
      grids: [{ slotUs: 9_000_000, credit: 2 }],
    })
  })

  it('during a silence leaves the silence as long as it was', () => {
    const quiet: Recovery = { ...firstRecovery('a', 0), lastAt: 50_000, quietUntil: 150_000 }
    expect(recovered(quiet, short, 'a', 10_000).quietUntil).toBe(110_000)
  })

  it('together with a restart learns how long ago the latest start was', () => {
    const begun: Recovery = { ...firstRecovery('a', 0), lastAt: 500_000 }
    expect(recovered(begun, short, 'b', 10, 7_000)).toMatchObject({ shiftMs: -506_990, lastAt: 10 })
  })
})
