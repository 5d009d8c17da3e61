import { describe, expect, it } from 'vitest'
import { redisGround, sqliteGround } from '../../proofs/ground.js'
import * as hazards from '../../proofs/workers/hazards.js'

// `npm run prove workers` has the same scenarios in full.
describe('a job that kills its process', () => {
  it('is buried after maxCrashes; no other job is charged or lost', { timeout: 90_000 }, async () => {
    const outcome = await hazards.poisonAmong({
      kind: 'abort',
      innocents: 100,
      everyMs: 10,
      processes: 2,
      concurrency: 100,
    })

    expect(outcome).toMatchObject({
      culprit: { state: 'dead', reason: 'crashed', crashes: 3, attempt: 1 },
      culpritRuns: 4,
      othersCharged: 0,
      completed: 100,
      completedTwice: 0,
      buried: 0,
    })
  })

  it.each(Object.entries({ SQLite: sqliteGround, Redis: redisGround }))(
    'leaves the nine others of its batch to complete, once each, on %s',
    { timeout: 60_000 },
    async (_, ground) => {
      expect(await hazards.poisonInBatch(ground)).toMatchObject({ completed: 9, completedTwice: 0, buried: 0 })
    },
  )
})

describe('a handler that blocks the event loop', () => {
  it('for longer than its lease runs once', { timeout: 60_000 }, async () => {
    expect(await hazards.spinThroughLease('3s', 5_000)).toEqual({ runs: 1, claims: 1, processesLost: 0 })
  })

  it('for longer than maxBlock runs again elsewhere, and its process is replaced', { timeout: 60_000 }, async () => {
    expect(await hazards.spinPastMaxBlock()).toMatchObject({ runs: 2, processes: 2, recycled: 1 })
  })
})

describe('a handler that never resolves', () => {
  it('times out, loses its slot, and has its process replaced', { timeout: 60_000 }, async () => {
    expect(await hazards.neverResolves()).toEqual({ state: 'dead', isTimeLimit: true, runs: 1 })
  })
})
