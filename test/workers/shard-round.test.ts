import { expect, it } from 'vitest'
import { ShardRound, type ShardSequence } from '#src/workers/claims/shard-picker.js'

const asGiven: ShardSequence = { needsHeads: true, of: (shards) => shards.map(({ shard }) => shard) }
const split = { own: [1, 3], others: [0, 2, 4] }

function tour(line = asGiven) {
  let now = 0
  const subject = new ShardRound(line, () => now)
  return {
    subject,
    pass: (ms: number) => {
      now += ms
    },
    next: () => subject.next(split).join(''),
    empty: (...shards: number[]) => subject.foundEmpty(shards, split),
  }
}

it('a round asks its own shards, then the others if these grant nothing, and is empty if those grant nothing either', () => {
  const { next, empty } = tour()

  expect([next(), next()]).toEqual(['13', '13'])
  expect(empty(1)).toBe(false)
  expect(next()).toBe('3')
  expect(empty(3)).toBe(false)
  expect(next()).toBe('024')
  expect(empty(0, 2)).toBe(false)
  expect(empty(4)).toBe(true)
})

it('a round goes back to its own shards after every grant', () => {
  const { subject, next, empty } = tour()
  empty(1, 3)
  expect(next()).toBe('024')
  subject.granted()

  expect(next()).toBe('13')
})

it('a round asks all shards on news or after it was empty: its own first, and before them the due ones', () => {
  const { subject, next, empty } = tour()
  expect(next()).toBe('13')
  subject.heard()
  expect(next()).toBe('13024')
  subject.heard(4)
  expect(next()).toBe('41302')
  expect(empty(4, 1, 3, 0, 2)).toBe(true)

  expect(next()).toBe('13024')
})

it('a round checks the others after ten seconds of its own work, and then its own before it is empty', () => {
  const { subject, pass, next, empty } = tour()
  pass(9_999)
  subject.granted()
  expect(next()).toBe('13')
  pass(1)
  subject.granted()
  expect(next()).toBe('024')
  expect(empty(0, 2, 4)).toBe(false)
  expect(next()).toBe('13')
  subject.granted()
  expect(next()).toBe('13')
  expect([empty(1, 3), empty(0, 2, 4)]).toEqual([false, true])
})

it('a round needs the ages of heads while it grants, ten times a second, and passes them on with their growth', () => {
  const seen: unknown[] = []
  const { subject, pass } = tour({
    needsHeads: true,
    of: (shards) => {
      seen.push(shards)
      return shards.map(({ shard }) => shard)
    },
  })
  expect(subject.wantsHeads).toBe(false)
  subject.granted()
  expect(subject.wantsHeads).toBe(true)
  subject.told([
    { queue: 'q', shard: 1, ageMs: 7 },
    { queue: 'q', shard: 3 },
  ])
  expect(subject.wantsHeads).toBe(false)
  pass(100)
  expect(subject.wantsHeads).toBe(true)
  subject.next({ own: [1, 3, 5], others: [] })
  expect(seen).toEqual([
    [
      { shard: 1, toldMs: 100, headAgeMs: 107 },
      { shard: 3, toldMs: 100 },
      { shard: 5, toldMs: Number.POSITIVE_INFINITY },
    ],
  ])
  subject.foundEmpty([1, 3, 5], { own: [1, 3, 5], others: [] })
  expect(subject.wantsHeads).toBe(false)
})

it('a round leaves out what its sequence leaves out, but never everything', () => {
  const only3 = tour({
    needsHeads: false,
    of: (shards) => shards.map(({ shard }) => shard).filter((shard) => shard === 3),
  })
  expect(only3.next()).toBe('3')
  expect(only3.empty(3)).toBe(true)

  const none = tour({ needsHeads: false, of: () => [] })
  expect(none.next()).toBe('13024')
  expect(none.empty(1, 3, 0, 2, 4)).toBe(true)
  expect(none.next()).toBe('13024')
})
