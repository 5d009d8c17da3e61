/** The comparison of one store with the memory store: random sequences of every kind that it can carry out, each as a test. */

import { auditBreaches, compareStores, type HarnessMaker, modelOf, type SequenceKind } from 'millrace/store-testing'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Store } from '#src/stores/contract/store.js'
import { harnesses } from './harnesses.js'

const steps = 60

/** A service of messages promises less than the memory store, and the contract alone says what. */
export const wholeStores = [...harnesses.keys()].filter((name) => !name.startsWith('sqs'))

interface Comparison {
  readonly seed: number
  readonly steps: number
  readonly kind?: SequenceKind
}

/** What breaks the rules in the audit of the store after one sequence. Throws `StoresDifferError`. */
export async function compare(makeSubject: HarnessMaker, comparison: Comparison): Promise<string[]> {
  // Claims of one in three end at two or three jobs: what large ones do, small ones do as well.
  const options = comparison.seed % 3 === 1 ? { mostClaimBytes: 20 } : {}
  const subject = await makeSubject(options)
  const model = await modelOf(subject, options)
  try {
    await compareStores(model, subject, comparison)
    return auditBreaches(await subject.audit())
  } finally {
    await model.close()
    await subject.close()
  }
}

/** The kinds of sequences that not every store can carry out: what one must have, and the reason to skip it. */
const kinds: readonly (readonly [kind: SequenceKind, can: (store: Store) => boolean, reason: string])[] = [
  ['ordered', ({ traits }) => traits.ordered, 'the store has no ordered queues'],
  ['scheduled', ({ traits }) => traits.scheduled, 'the store has no schedules'],
  ['joined', ({ joins }) => joins !== undefined, 'no job of the store waits for others'],
  ['stepped', ({ steps }) => steps !== undefined, 'no job of the store keeps steps'],
  [
    'limited',
    ({ traits: { throttled, limited, groups } }) => throttled && limited && groups,
    'the store has no limits and groups',
  ],
]

/** Its seven queues cost more to be looked at after every step. */
const isOf = (kind: SequenceKind, seed: number) => kind !== 'limited' || seed % 3 === 0

export function comparedWithMemory(name: string, seeds: readonly number[]): void {
  const makeHarness = harnesses.get(name)!
  describe(`the ${name} store compared with the memory store`, () => {
    /** Closed: it says what a store of this kind has. */
    let store: Store
    beforeAll(async () => {
      const harness = await makeHarness()
      store = await harness.open()
      await harness.close()
    })

    for (const seed of seeds) {
      it(`gives the same answers and has the same state after every step of seed ${seed}`, async () => {
        expect(await compare(makeHarness, { seed, steps })).toEqual([])
      })

      for (const [kind, can, reason] of kinds.filter(([kind]) => isOf(kind, seed)))
        it(`gives the same answers and has the same state after every step of ${kind} seed ${seed}`, async (context) => {
          if (!can(store)) context.skip(reason)
          expect(await compare(makeHarness, { seed, steps, kind })).toEqual([])
        })
    }
  })
}
