import type { AuditEntry } from 'millrace/store-testing'
import { describe, expect, it } from 'vitest'
import { leaseMs } from '../../proofs/crew.js'
import { redisGround, sqliteGround } from '../../proofs/ground.js'
import { drillOrdered } from '../../proofs/ordered/ordered-drill.js'
import { orderedJudgement } from '../../proofs/ordered/ordered-judge.js'
import { seededRandom } from '../seeded-random.js'

/** Runs take a moment, so that whoever is killed or stopped has payloads in hand. */
const plan = { ids: 10, payloadsPerId: 500, processes: 4, runMs: 40, maxPayloads: 8, withinMs: 90_000 }

for (const [name, open] of [
  ['SQLite', sqliteGround],
  ['Redis', redisGround],
] as const) {
  describe(`four processes on an ordered queue of ${name}`, () => {
    it('complete each payload once and in order, or bury it, while some are killed and stopped', {
      timeout: 120_000,
    }, async () => {
      const outcome = await drillOrdered(
        { ...plan, exclusive: 'id', kills: 3, stops: 2, reliefs: 0, random: seededRandom(3) },
        open,
      )

      expect(outcome).toMatchObject({
        lost: 0,
        twice: 0,
        breaches: [],
        disorders: 0,
        staleWrites: 0,
        kills: 3,
        stops: 2,
      })
      expect(outcome.completed + outcome.buried).toBe(5_000)
      expect(outcome.returned).toBeGreaterThan(0)
      expect(outcome.slowestReturnMs).toBeLessThanOrEqual(leaseMs + 5_000)
    })

    it('never run two batches of an exclusive shard at once while they come and go', {
      timeout: 120_000,
    }, async () => {
      const outcome = await drillOrdered(
        { ...plan, exclusive: 'shard', kills: 2, stops: 0, reliefs: 4, random: seededRandom(4) },
        open,
      )

      expect(outcome).toMatchObject({ lost: 0, twice: 0, breaches: [], shardOverlaps: 0, disorders: 0, kills: 2 })
      expect(outcome.slowestReturnMs).toBeLessThanOrEqual(leaseMs + 5_000)
    })
  })
}

describe('the judge of an ordered drill', () => {
  const entry = (id: string, kind: AuditEntry['kind'], fence: number, shard = 0): AuditEntry => {
    const isClaim = kind === 'claim'
    const to = isClaim ? 'running' : kind === 'requeue' ? 'ready' : null
    return { at: 0, queue: 'o', shard, id, kind, from: isClaim ? 'ready' : 'running', to, fence, worker: 'w' }
  }
  const evidence = {
    audit: [entry('a', 'claim', 1), entry('a', 'leave', 1)],
    handOvers: [{ id: 'a', fence: 1, payloads: [0, 1] }],
    writings: [{ id: 'a', fence: 1 }],
    morgue: new Map(),
    ids: ['a'],
    payloadsPerId: 2,
    isShardExclusive: true,
  }

  it('finds no fault in a correct history', () => {
    expect(orderedJudgement(evidence)).toMatchObject({
      completed: 2,
      lost: 0,
      twice: 0,
      breaches: [],
      shardOverlaps: 0,
      disorders: 0,
      staleWrites: 0,
    })
  })

  it('detects a missing payload, one that completed twice, and one that completed and was buried', () => {
    expect(orderedJudgement({ ...evidence, payloadsPerId: 3 })).toMatchObject({ lost: 1 })
    const again = {
      audit: [...evidence.audit, entry('a', 'claim', 2), entry('a', 'leave', 2)],
      handOvers: [...evidence.handOvers, { id: 'a', fence: 2, payloads: [1] }],
    }
    expect(orderedJudgement({ ...evidence, ...again })).toMatchObject({ twice: 1 })
    expect(orderedJudgement({ ...evidence, morgue: new Map([['a', [0]]]) })).toMatchObject({ twice: 1 })
  })

  it('detects overlapping claims of an id or of a shard, disorder, and a stale write', () => {
    const overlapping = [entry('a', 'claim', 1), entry('a', 'claim', 2), entry('a', 'leave', 1)]
    expect(orderedJudgement({ ...evidence, audit: overlapping }).breaches).not.toEqual([])
    const twoBatches = [entry('a', 'claim', 1), entry('b', 'claim', 2), entry('a', 'leave', 1), entry('b', 'leave', 2)]
    expect(orderedJudgement({ ...evidence, audit: twoBatches })).toMatchObject({ shardOverlaps: 1 })
    const reversed = [{ id: 'a', fence: 1, payloads: [1, 0] }]
    expect(orderedJudgement({ ...evidence, handOvers: reversed })).toMatchObject({ disorders: 1 })
    const stale = [
      { id: 'a', fence: 2 },
      { id: 'a', fence: 1 },
    ]
    expect(orderedJudgement({ ...evidence, writings: stale })).toMatchObject({ staleWrites: 1 })
  })
})
