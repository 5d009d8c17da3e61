import type { AuditEntry } from 'millrace/store-testing'
import { describe, expect, it } from 'vitest'
import { leaseMs } from '../../proofs/crew.js'
import { redisGround } from '../../proofs/ground.js'
import { contend, judged } from '../../proofs/workers/contention.js'
import { seededRandom } from '../seeded-random.js'

describe('four processes on one file', () => {
  it('complete each job exactly once while some are killed with SIGKILL', { timeout: 90_000 }, async () => {
    const outcome = await contend({
      jobs: 3_000,
      processes: 4,
      kills: 4,
      random: seededRandom(1),
      withinMs: 80_000,
      // Long enough that every process has jobs in hand whenever a fault comes.
      jobMs: 60,
    })

    expect(outcome).toMatchObject({
      completed: 3_000,
      lost: 0,
      completedTwice: 0,
      overlaps: 0,
      breaches: [],
      kills: 4,
      failedCalls: [],
    })
    expect(outcome.redelivered).toBeGreaterThan(0)
  })
})

describe('four processes on one Redis', () => {
  it('complete each job exactly once while processes and Redis are killed and stopped', {
    timeout: 120_000,
  }, async () => {
    const outcome = await contend(
      {
        jobs: 2_000,
        processes: 4,
        kills: 3,
        stops: 2,
        crashes: 1,
        random: seededRandom(2),
        withinMs: 90_000,
        jobMs: 100,
      },
      redisGround,
    )

    expect(outcome).toMatchObject({
      lost: 0,
      completedTwice: 0,
      overlaps: 0,
      breaches: [],
      buried: 0,
      kills: 3,
      stops: 2,
      crashes: 1,
    })
    expect(outcome.redelivered).toBeGreaterThan(0)
    expect(outcome.slowestReturnMs).toBeLessThanOrEqual(2 * leaseMs + 5_000)
  })
})

describe('the judge of the audit', () => {
  const entry = (kind: AuditEntry['kind'], fence: number): AuditEntry => {
    const leaves = kind !== 'claim'
    return {
      at: 0,
      queue: 'default',
      id: 'a',
      kind,
      from: leaves ? 'running' : 'ready',
      to: leaves ? null : 'running',
      fence,
      worker: 'w',
    }
  }

  it('detects a lost job, a job that completed twice, and overlapping claims', () => {
    expect(judged([entry('claim', 1), entry('leave', 1)], ['a'])).toMatchObject({
      lost: 0,
      completedTwice: 0,
      overlaps: 0,
    })
    expect(judged([entry('claim', 1)], ['a'])).toMatchObject({ lost: 1 })
    expect(judged([entry('claim', 1), entry('leave', 1), entry('claim', 2), entry('leave', 2)], ['a'])).toMatchObject({
      completedTwice: 1,
    })
    expect(judged([entry('claim', 1), entry('claim', 2), entry('leave', 1)], ['a'])).toMatchObject({ overlaps: 2 })
  })
})
