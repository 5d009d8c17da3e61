import { describe, expect, it } from 'vitest'
import { foreignKey, thrownAway } from '../../proofs/redis-drills/foreign-hands.js'
import { idleCrowd } from '../../proofs/redis-drills/idle-crowd.js'
import { noServer, repliesLost } from '../../proofs/redis-drills/lost-links.js'
import * as refusals from '../../proofs/redis-drills/refusals.js'
import { killedServer } from '../../proofs/redis-drills/server-deaths.js'

/** What holds whatever happens, as long as the server keeps what it acknowledged. */
const nothingLost = { lost: 0, completedTwice: 0, refusedOddly: 0, buried: 0, workersFailed: 0 }

// `npm run prove redis-drills` has the same drills in full, and those that take long.
describe('with producers and workers at work', { timeout: 60_000 }, () => {
  it('a killed server loses nothing, and work continues within 5 s after it is back', async () => {
    const outcome = await killedServer({ appendfsync: 'always', kills: 2, betweenMs: 500 })

    expect(outcome).toMatchObject(nothingLost)
    expect(Math.max(...outcome.resumedMs, ...outcome.acceptedMs)).toBeLessThan(5_000)
  })

  it.each([
    ['becomes a replica for a while', () => refusals.demoted({ forMs: 1_000 })],
    ["is kept busy by somebody else's script", () => refusals.busy({ forMs: 1_500 })],
    ['cannot save for a while', () => refusals.unsaved({ forMs: 500 })],
  ])('a server that %s loses nothing, and no process needs a restart', async (_, drill) => {
    const outcome = await drill()

    expect(outcome).toMatchObject(nothingLost)
    expect(outcome.resumedMs).toBeLessThan(5_000)
  })

  it('a server that forgets its scripts every 50 ms causes no error', async () => {
    const outcome = await refusals.forgotten({ forMs: 1_000, everyMs: 50 })

    expect(outcome).toMatchObject({ ...nothingLost, refused: 0, storeFailed: 0 })
  })

  it('lost answers count nothing twice', async () => {
    const outcome = await repliesLost({ rounds: 3 })

    expect(outcome).toMatchObject({ ...nothingLost, countedTwice: 0, runTwice: 0, processed: outcome.acknowledged })
  })

  it('a server that drops all its data leaves working queues and no error', async () => {
    const outcome = await thrownAway({ times: 3 })

    expect(outcome).toMatchObject({ refused: 0, storeFailed: 0, workersFailed: 0 })
    expect(outcome.gone).toBeGreaterThan(0)
  })
})

describe('a server that is out of memory', () => {
  it('refuses jobs at once and nothing else; a worker that starts then works it off', async () => {
    const outcome = await refusals.full({ maxmemory: '4mb' })

    expect(outcome).toMatchObject({
      isFull: true,
      cancelled: true,
      acceptedLater: true,
      storeFailed: 0,
      workersFailed: 0,
    })
    expect(new Set(outcome.settles)).toEqual(new Set(['ok', 'revived 1', 'running 0']))
    expect(outcome.lost).toBe(0)
    expect(outcome.refusedMs).toBeLessThan(1_000)
  })
})

describe('an absent server', () => {
  it('makes producers fail within 5 s, and a starting worker wait', { timeout: 60_000 }, async () => {
    const outcome = await noServer({ forMs: 4_500 })

    expect(outcome.isUnavailable).toBe(true)
    expect(outcome.slowestMs).toBeLessThan(5_000)
    expect(outcome.workerMs).toBeLessThan(5_000)
  })
})

describe('idle workers', { timeout: 60_000 }, () => {
  it('notice the next job after their wait has ended with an error', async () => {
    const outcome = await refusals.unblocked()

    expect(outcome).toMatchObject({ ...nothingLost, acknowledged: 2 })
    expect(Math.max(...outcome.startedMs)).toBeLessThan(5_000)
  })

  it('do not all wake up for one job', async () => {
    const { caused } = await idleCrowd({ mode: 'single', processes: 2, handlesEach: 25, rounds: 3 })

    expect(Math.max(...caused)).toBeLessThanOrEqual(20)
  })
})

describe("a key of the wrong type in the place of a queue's jobs", () => {
  it('is named, ends only the worker of that queue, and stays unchanged', async () => {
    expect(await foreignKey()).toMatchObject({
      enqueueIsCorrupt: true,
      workerIsCorrupt: true,
      isNamed: true,
      workersFailed: 1,
      isUntouched: true,
    })
  })
})
