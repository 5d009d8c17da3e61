import type { Wait } from 'millrace/store'
import { expect, it } from 'vitest'
import { SuspectTargets } from '#src/workers/claims/suspect-targets.js'

const at = (shard: number) => ({ queue: 'q', shard })
const suspect = (shard: number): Wait => ({ ...at(shard), reason: 'suspect', forMs: 5_000 })
const empty = (shard: number): Wait => ({ ...at(shard), reason: 'empty' })

/** After a claim that told of suspects in these shards. */
function places(...shards: number[]) {
  const subject = new SuspectTargets()
  subject.onAnswer({ waits: shards.map(suspect) })
  return {
    subject,
    next: () => subject.next().map(({ shard }) => shard),
    claimAlone(waits: readonly Wait[], queue?: string) {
      const asked = subject.next()
      subject.onAnswer({ waits: [...waits] })
      subject.answeredAlone(asked, { ...(queue === undefined ? {} : { queue }), waits: [...waits] })
    },
  }
}

it('suspect targets stay until an answer says that they have no suspects, in any order of the answer', () => {
  const { subject, next } = places(0, 1, 2)
  subject.onAnswer({ waits: [suspect(1), { ...at(1), reason: 'scheduled', forMs: 7 }, empty(2)] })

  expect(next()).toEqual([0, 1])
})

it('suspect targets stay if a claim alone did not reach them because an earlier one granted', () => {
  const { next, claimAlone } = places(0, 1, 2, 3)
  claimAlone([empty(0)], 'q')

  expect(next()).toEqual([2, 3])
})

it('suspect targets that granted and have more are asked after the others', () => {
  const { next, claimAlone } = places(0, 1, 2)
  claimAlone([suspect(0)], 'q')

  expect(next()).toEqual([1, 2, 0])
})

it('suspect targets that granted nothing alone are forgotten, even if suspects are reported there', () => {
  const { subject, claimAlone } = places(0, 1)
  claimAlone([suspect(0), empty(1)])

  expect(subject.size).toBe(0)
})

it('suspect targets are asked sixteen at a time', () => {
  const { subject, next } = places(...Array.from({ length: 20 }, (_, shard) => shard))
  expect(next()).toHaveLength(16)
  subject.clear()
  expect(next()).toEqual([])
})

it('suspect targets that were not reached stay if the one that granted is shut now', () => {
  const { next, claimAlone } = places(0, 1, 2)
  claimAlone([empty(0), { ...at(1), reason: 'throttled', forMs: 100 }], 'q')

  expect(next()).toEqual([2])
})

it('suspect targets denied by limits are dropped, and asked again only after news of them', () => {
  const { next, claimAlone } = places(0, 1)
  claimAlone([suspect(0), { ...at(1), reason: 'throttled', forMs: 100 }, suspect(1)])

  expect(next()).toEqual([])
})

it('suspect targets that were shut to a claim alone are asked alone once they open', () => {
  const { subject, next, claimAlone } = places(0, 1)
  claimAlone([{ ...at(0), reason: 'throttled', forMs: 9 }, empty(1)])
  expect(subject.size).toBe(0)
  expect(subject.opened([at(1)])).toBe(false)
  expect(subject.opened([at(0)])).toBe(true)

  expect(next()).toEqual([0])
  expect(subject.opened([at(0)])).toBe(false)
})
