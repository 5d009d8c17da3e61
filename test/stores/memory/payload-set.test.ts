/** Sets of payloads: what `merged` says, one payload after the other. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Merge } from '#src/core/queue/queue.js'
import { PayloadSet } from '#src/stores/memory/queue/payload-set.js'
import { merged, type PayloadEntry, payloadIdentity } from '#src/stores/rules/payloads.js'

const payload = fc.constantFrom('x', 'y', 'z', Uint8Array.of(120))
const entries = fc
  .array(fc.record({ payload, score: fc.integer({ min: -2, max: 2 }) }), { maxLength: 12 })
  .map((all) => all.map(entryOf))
const rule = fc.constantFrom<Merge>('all', 'distinct', 'latest')

/** Every other payload arrived while only distinct ones were kept. */
function entryOf(entry: Pick<PayloadEntry, 'payload' | 'score'>, seq: number): PayloadEntry {
  const identity = payloadIdentity(entry, seq % 2 ? 'all' : 'distinct', { callId: 'call', place: seq })
  return { ...entry, seq, identity }
}

const holds = <T>(of: fc.Arbitrary<T>, claim: (value: T) => void) =>
  fc.assert(
    fc.property(of, (value) => {
      claim(value)
    }),
    { seed: 1, numRuns: 500 },
  )

describe('a set of payloads', () => {
  it('equals `merged`, payload by payload, even if the merge rule changes meanwhile', () => {
    holds(fc.tuple(entries, fc.array(rule, { minLength: 12, maxLength: 12 })), ([all, rules]) => {
      let merge: Merge = 'all'
      const set = new PayloadSet(() => merge)
      let expected: readonly PayloadEntry[] = []
      for (const [i, entry] of all.entries()) {
        merge = rules[i]!
        set.add(entry)
        expected = merged(expected, [entry], merge)
        expect([...set]).toEqual(expected)
        expect(set.size).toBe(expected.length)
      }
    })
  })

  it('equals `merged` of two sets, whatever the earlier merge rule', () => {
    holds(fc.tuple(entries, fc.integer({ min: 0, max: 12 }), rule, rule), ([all, half, before, after]) => {
      let merge = before
      const [one, other] = [all.slice(0, half), all.slice(half)]
      const set = new PayloadSet(() => merge, one)
      merge = after
      set.addAll(other)
      expect([...set]).toEqual(merged(merged([], one, before), other, after))
    })
  })

  it('predicts whether a payload would enlarge it', () => {
    holds(fc.tuple(entries, payload, rule), ([all, payload, merge]) => {
      const set = new PayloadSet(() => merge, all)
      const before = set.size
      const entry = entryOf({ payload, score: 0 }, 100)
      const grows = set.growsBy(entry.identity)
      set.add(entry)
      expect(set.size > before).toBe(grows)
    })
  })

  it('hands out its first payloads and keeps the others', () => {
    holds(fc.tuple(entries, fc.integer({ min: 0, max: 12 })), ([all, count]) => {
      const set = new PayloadSet(() => 'all', all)
      const before = [...set]
      expect(set.take(count)).toEqual(before.slice(0, count))
      expect([...set]).toEqual(before.slice(count))
      for (const taken of before.slice(0, count)) expect(set.growsBy(taken.identity)).toBe(true)
    })
  })
})
