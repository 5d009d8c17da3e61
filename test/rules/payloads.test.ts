/** The rules of payloads: sets that merge without losing any, and ends of claims that lose none either. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  afterEnd,
  byScore,
  doneOf,
  handedOver,
  merged,
  type PayloadEnd,
  type PayloadEntry,
  payloadIdentity,
  shardOf,
} from '#src/stores/rules/payloads.js'
import { dueAt, nextFence, nextStamp, stampOf } from '#src/stores/rules/sequence.js'

const payload = fc.constantFrom('x', 'y', 'z', Uint8Array.of(120), Uint8Array.of(0, 255))
const rules = ['all', 'distinct', 'latest'] as const
const score = fc.oneof(fc.constantFrom(-1, 0, 1, 1.5, 2), fc.double({ noNaN: true, noDefaultInfinity: true }))
const arrival = fc.record(
  { payload, score, codec: fc.constantFrom('json', 'raw'), meta: fc.constantFrom('m1', 'm2') },
  { requiredKeys: ['payload', 'score'] },
)

/** Two sets of one id whose payloads have arrived one after the other, in any order. */
const sets = fc
  .tuple(fc.array(arrival, { maxLength: 12 }), fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }))
  .map(([arrivals, side]) => {
    // One half arrived under another rule than the other, as after a change of the configuration.
    const entries = arrivals.map((entry, seq): PayloadEntry => {
      const identity = payloadIdentity(entry, seq % 2 ? 'all' : 'distinct', { callId: 'call', place: seq })
      return { ...entry, seq, identity }
    })
    const of = (which: boolean) => entries.filter((_, i) => side[i] === which)
    return [merged([], of(true), 'all'), merged([], of(false), 'all')] as const
  })

const identities = (entries: readonly PayloadEntry[]) => entries.map(({ identity }) => identity)
const holds = <T>(of: fc.Arbitrary<T>, claim: (value: T) => void) =>
  fc.assert(
    fc.property(of, (value) => {
      claim(value)
    }),
    { seed: 1, numRuns: 500 },
  )

describe('the shard of an id', () => {
  it.each([
    ['0', 4, 2],
    ['1', 3, 2],
    ['2', 2, 1],
    ['3', 1, 1],
    ['4', 3, 1],
    ['5', 1, 1],
    ['abc', 3, 0],
    ['order-42', 2, 1],
  ])('for %s is that of Lowkiq: %i of 5, %i of 3', (id, ofFive, ofThree) => {
    expect([shardOf(id, 5), shardOf(id, 3), shardOf(id, 1)]).toEqual([ofFive, ofThree, 0])
  })

  it('is one of the existing shards', () => {
    holds(fc.tuple(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 1_024 })), ([id, shards]) => {
      expect(shardOf(id, shards)).toBeGreaterThanOrEqual(0)
      expect(shardOf(id, shards)).toBeLessThan(shards)
    })
  })
})

describe('two payloads merge', () => {
  const arrival = { callId: 'call', place: 0 }
  const identity = (payload: string | Uint8Array, codec?: string) =>
    payloadIdentity({ payload, ...(codec === undefined ? {} : { codec }) }, 'distinct', arrival)

  it("with 'distinct' if codec, kind and bytes are equal", () => {
    expect(identity('x')).toBe(identity('x', 'json'))
    expect(identity(Uint8Array.of(0, 255))).toBe(identity(Buffer.from([0, 255])))
  })

  it('in no other case', () => {
    const different = [
      ...[identity('x'), identity('X'), identity('x', 'raw'), identity(Buffer.from('x')), identity('')],
      ...[
        identity(new Uint8Array()),
        identity('tx'),
        identity('x', 'json\0t'),
        identity('ÿ'),
        identity(Uint8Array.of(255)),
      ],
    ]
    expect(new Set(different).size).toBe(different.length)
  })

  it.each(['all', 'latest'] as const)('with %s if the given score is equal too', (merge) => {
    const scored = (score: number, payload = 'x') => payloadIdentity({ payload, score }, merge, arrival)
    expect(payloadIdentity({ payload: 'x', score: 1 }, merge, { callId: 'other', place: 7 })).toBe(scored(1))
    expect(scored(-0)).toBe(scored(0))
    expect(new Set([scored(1), scored(2), scored(1, 'y'), identity('x')]).size).toBe(4)
  })

  it.each(['all', 'latest'] as const)('with %s and no given score only if the same call is sent again', (merge) => {
    const arrived = (callId: string, place: number) => payloadIdentity({ payload: 'x' }, merge, { callId, place })
    expect(arrived('call', 0)).toBe(arrived('call', 0))
    const different = [arrived('call', 0), arrived('call', 1), arrived('other', 0), identity('x')]
    expect(new Set(different).size).toBe(different.length)
    const named = { payload: 'x', arrival: 'name' }
    expect(payloadIdentity(named, merge, { callId: 'other', place: 7 })).toBe(payloadIdentity(named, merge, arrival))
    // A given score is no time of arrival, though it may be the same number.
    expect(payloadIdentity({ payload: 'x', score: 0 }, merge, arrival)).not.toBe(arrived('call', 0))
  })
})

describe('merged sets', () => {
  it("with 'distinct' keep score 5 of queued 10 and new 5, and score 2 of queued 2 and new 3", () => {
    const entry = (score: number, seq: number): PayloadEntry => ({ payload: 'v', score, seq, identity: 'v' })
    expect(merged([entry(10, 1)], [entry(5, 2)], 'distinct')).toEqual([entry(5, 2)])
    expect(merged([entry(2, 1)], [entry(3, 2)], 'distinct')).toEqual([entry(2, 1)])
  })

  it('contain every payload of both once, and no other', () => {
    holds(sets, ([one, other]) => {
      const both = identities(merged(one, other, 'all'))
      expect(new Set(both).size).toBe(both.length)
      expect(new Set(both)).toEqual(new Set(identities([...one, ...other])))
    })
  })

  it('are ordered by score, then by arrival', () => {
    holds(sets, ([one, other]) => {
      const both = merged(one, other, 'all')
      expect([...both].sort(byScore)).toEqual(both)
    })
  })

  it('keep the first of equal payloads, unchanged', () => {
    holds(sets, ([one, other]) => {
      for (const kept of merged(one, other, 'all')) {
        const equal = [...one, ...other].filter(({ identity }) => identity === kept.identity)
        expect(equal.sort(byScore)[0]).toBe(kept)
      }
    })
  })

  it.each(rules)('do not depend on the order of merging, with %s', (merge) => {
    holds(sets, ([one, other]) => expect(merged(one, other, merge)).toEqual(merged(other, one, merge)))
  })

  it.each(rules)('do not change when they are merged again, with %s', (merge) => {
    holds(sets, ([one, other]) => {
      const both = merged(one, other, merge)
      expect(merged(both, both, merge)).toEqual(both)
      if (merge !== 'latest') expect(merged(both, other, merge)).toEqual(both)
    })
  })

  it('do not depend on the grouping of merges', () => {
    holds(fc.tuple(sets, sets), ([[one, other], [third]]) => {
      const numbered = third.map((entry) => ({ ...entry, seq: entry.seq + 100 }))
      const left = merged(merged(one, other, 'all'), numbered, 'all')
      expect(merged(one, merged(other, numbered, 'all'), 'all')).toEqual(left)
    })
  })

  it("with 'latest' keep only the last in order, and are empty only if both were", () => {
    holds(sets, ([one, other]) => {
      expect(merged(one, other, 'latest')).toEqual(merged(one, other, 'all').slice(-1))
    })
  })

  it('leave the original sets unchanged', () => {
    holds(sets, ([one, other]) => {
      const before = [[...one], [...other]]
      merged(one, other, 'latest')
      expect([one, other]).toEqual(before)
    })
  })
})

describe('a claim of payloads', () => {
  it('takes the oldest, at least one and at most the limit, and leaves the rest', () => {
    holds(fc.tuple(sets, fc.integer({ min: 0, max: 14 })), ([[set], maxPayloads]) => {
      const { inHand, left } = handedOver(set, maxPayloads)
      expect([...inHand, ...left]).toEqual(set)
      expect(inHand.length).toBe(Math.min(set.length, Math.max(1, maxPayloads)))
    })
  })

  it('takes all payloads if there is no limit', () => {
    holds(sets, ([set]) => expect(handedOver(set, Number.POSITIVE_INFINITY)).toEqual({ inHand: set, left: [] }))
  })
})

describe('the end of a claim of payloads', () => {
  const inHand = sets.map(([set]) => set).filter((set) => set.length > 0)

  it.each(['return', 'exhaust', 'bury'] as const)(
    'loses nothing by %s: payloads that are not buried go back',
    (end) => {
      holds(inHand, (set) => {
        const { buried, back } = afterEnd(end, set)
        expect([...buried, ...back]).toEqual(set)
      })
    },
  )

  it.each<[PayloadEnd, number, number]>([
    ['complete', 0, 0],
    ['cancel', 0, 0],
    ['return', 0, 3],
    ['exhaust', 1, 2],
    ['bury', 3, 0],
  ])('by %s buries %i of three and gives back %i', (end, buried, back) => {
    const set = ['x', 'y', 'z'].map((payload, seq): PayloadEntry => ({ payload, score: seq, seq, identity: payload }))
    const after = afterEnd(end, set)
    expect([after.buried.length, after.back.length]).toEqual([buried, back])
  })

  it('by the last failure buries the oldest', () => {
    holds(inHand, (set) => expect(afterEnd('exhaust', set).buried).toEqual([set[0]]))
  })

  it('leaves at least one payload, however many are reported as done', () => {
    expect([doneOf(3), doneOf(3, 0), doneOf(3, 2), doneOf(3, 3), doneOf(1, 1)]).toEqual([0, 0, 2, 2, 0])
  })

  it('leaves all payloads that were neither buried nor done to the next claim, with those that arrived meanwhile', () => {
    holds(fc.tuple(sets, fc.integer({ min: 1, max: 5 })), ([[set, arrived], maxPayloads]) => {
      fc.pre(set.length > 0)
      const { inHand: taken, left } = handedOver(set, maxPayloads)
      const beside = merged(left, arrived, 'all')
      const { buried, back } = afterEnd('exhaust', taken)
      const next = merged(back, beside, 'all')
      expect(new Set(identities([...buried, ...next]))).toEqual(new Set(identities([...set, ...arrived])))
    })
  })
})

const instant = fc.integer({ min: 0, max: 8_640_000_000_000 })

describe('the stamp of a ready job', () => {
  it('is the time in µs if the clock has advanced', () => {
    expect(nextStamp(0, 1_000)).toBe(1_000_000)
    expect(nextStamp(1_000_000, 1_001)).toBe(1_001_000)
  })

  it('keeps counting while the clock stands still or steps back by at most a second', () => {
    expect(nextStamp(5_000_000, 5_000)).toBe(5_000_001)
    expect(nextStamp(5_000_000, 4_000)).toBe(5_000_001)
  })

  it('follows the clock when it steps back by more than a second', () => {
    expect(nextStamp(5_000_000, 3_999)).toBe(3_999_000)
  })

  it('grows strictly over any steps within a second', () => {
    fc.assert(
      fc.property(instant, fc.array(fc.integer({ min: -1_000, max: 1_000 })), (start, steps) => {
        let last = nextStamp(0, start + 1_000)
        for (const step of steps) {
          const next = nextStamp(last, Math.floor(last / 1_000) + step)
          expect(next).toBeGreaterThan(last)
          last = next
        }
      }),
      { seed: 1 },
    )
  })
})

describe('the stamp of a due time', () => {
  it('yields the due time', () => {
    fc.assert(
      fc.property(instant, (at) => {
        expect(dueAt(stampOf(at))).toBe(at)
      }),
      { seed: 2 },
    )
  })

  it('yields for a counted stamp the millisecond in which it was given', () => {
    expect(dueAt(nextStamp(5_000_000, 5_000))).toBe(5_000)
  })
})

describe('the fence', () => {
  it('grows with every claim, whatever the clock does, and never lags behind the clock', () => {
    fc.assert(
      fc.property(fc.array(instant, { minLength: 1 }), (times) => {
        let last = 0
        for (const now of times) {
          const next = nextFence(last, now)
          expect(next).toBeGreaterThan(last)
          expect(next).toBeGreaterThanOrEqual(now * 1_000)
          expect(Number.isSafeInteger(next)).toBe(true)
          last = next
        }
      }),
      { seed: 3 },
    )
  })

  it('keeps growing in a new store', () => {
    expect(nextFence(0, 2_000)).toBeGreaterThan(nextFence(nextFence(0, 1_000), 1_000))
  })
})
