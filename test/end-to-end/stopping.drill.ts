import { describe, expect, it } from 'vitest'
import { redisGround, sqliteGround } from '../../proofs/ground.js'
import * as hazards from '../../proofs/workers/hazards.js'

// `npm run prove workers` has the same scenarios in full.
describe('a worker process that is stopped', { timeout: 60_000 }, () => {
  it('puts back at once the jobs that it has not begun, uncounted, and exits with 0 when the rest is done', async () => {
    const outcome = await hazards.termDuringBatch()

    expect(outcome).toMatchObject({ code: 0, putBack: 5, failed: 0, runs: 6 })
    expect(outcome.putBackMs).toBeLessThan(2_000)
    expect(outcome.stopMs).toBeLessThan(11_000)
  })

  it.each(['patient', 'deaf'] as const)(
    'releases a %s job that takes longer than its grace, uncounted',
    async (how) => {
      const outcome = await hazards.graceExceeded(how)

      expect(outcome).toMatchObject({ code: 0, job: { state: 'ready', attempt: 1, crashes: 0 } })
      expect(outcome.stopMs).toBeLessThan(1_000 + 1_000 + 2_000)
    },
  )

  it('ends at once on a second signal', async () => {
    const outcome = await hazards.secondSignal()

    expect(outcome.code).toBe(143)
    expect(outcome.stopMs).toBeLessThan(2_000)
  })

  it.each([
    ['without a running job', false, 0],
    ['with a report that the store does not take', true, 1],
  ])('ends while another process holds the write lock, %s', async (_, withJob, code) => {
    const outcome = await hazards.stopWithoutStore(withJob)

    expect(outcome.code).toBe(code)
    // And two seconds for a busy machine: what waited for the lock instead would take five more.
    expect(outcome.stopMs).toBeLessThan(2_000 + 1_500 + 2_000)
  })
})

describe('cancelling a job that runs in another process', () => {
  it.each(Object.entries({ SQLite: sqliteGround, Redis: redisGround }))(
    'reaches its handler within a third of the lease, on %s',
    { timeout: 60_000 },
    async (_, ground) => {
      const latencies = await hazards.cancelLatency(3_000, 3, ground)

      // Half a second: how often the lease keeper looks what is due. And one for a busy machine.
      expect(latencies.at(-1)).toBeLessThan(1_000 + 500 + 1_000)
    },
  )
})
