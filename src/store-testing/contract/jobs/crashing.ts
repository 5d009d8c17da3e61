/** Contract cases: crashes, and the jobs that they are charged to. */

import assert from 'node:assert/strict'
import { plainCase, plainConcern, records, tellsCrashes } from '../scenes/contract-case.js'

export const crashing = plainConcern('crashing', [tellsCrashes], {
  async 'the one who finds an expired lease reports a crash of its holder'(scene) {
    await scene.add({ id: 'a', task: 'resize' })
    await scene.claimOne({ worker: 'worker-7', leaseMs: 1_000 })
    await scene.advance(1_000)

    const { crashed, buried } = await scene.claim({ worker: 'worker-2' })

    assert.deepEqual(crashed, [
      { queue: scene.queue, id: 'a', task: 'resize', worker: 'worker-7', charged: false, crashes: 0 },
    ])
    assert.deepEqual(buried, [])
    assert.equal((await scene.depth()).crashed, 1)
  },

  async 'a crash is reported once'(scene) {
    await scene.add('a')
    await scene.claimOne({ leaseMs: 1_000 })
    await scene.advance(1_000)

    assert.equal((await scene.claim()).crashed.length, 1)
    assert.deepEqual((await scene.claim()).crashed, [])
    assert.equal((await scene.depth()).crashed, 1)
  },

  async 'crashes are reported in the order in which the leases ended, then of arrival'(scene) {
    await scene.add('a', 'b', 'c')
    await scene.claim({ limit: 1, leaseMs: 2_000 })
    await scene.claim({ limit: 2, leaseMs: 1_000 })
    await scene.advance(5_000)

    const { crashed } = await scene.claim({ limit: 0 })

    assert.deepEqual(
      crashed.map(({ id }) => id),
      ['b', 'c', 'a'],
    )
  },

  async 'a crash is reported for each queue in the claim'(scene) {
    await scene.openQueue({ name: 'other' })
    await scene.add('a')
    await scene.enqueue(['b'], { queue: 'other' })
    await scene.claimOne({ leaseMs: 1_000 })
    await scene.claimOne({ queue: 'other', leaseMs: 1_000 })
    await scene.advance(1_000)

    const { crashed } = await scene.claim({ from: ['other', scene.queue].map((queue) => ({ queue, limit: 1 })) })

    assert.deepEqual(
      crashed.map(({ queue, id }) => [queue, id]),
      [
        ['other', 'b'],
        [scene.queue, 'a'],
      ],
    )
    assert.deepEqual([(await scene.depth()).crashed, (await scene.depth('other')).crashed], [1, 1])
  },

  async 'a crash in company counts no attempt, and nothing against the job'(scene) {
    await scene.add('a', 'b')
    await scene.claim({ leaseMs: 1_000 })
    await scene.advance(1_000)

    const claims = [await scene.claimOne({ alone: true }), await scene.claimOne({ alone: true })]

    assert.deepEqual(
      claims.map(({ id, attempt, crashes }) => [id, attempt, crashes]),
      [
        ['a', 1, 0],
        ['b', 1, 0],
      ],
    )
    assert.equal((await scene.depth()).failed, 0)
  },

  async 'a crash of a claim alone is charged to the job'(scene) {
    await scene.add('a')
    await scene.claimOne({ leaseMs: 1_000, alone: true })
    await scene.advance(1_000)

    const { crashed } = await scene.claim()

    assert.deepEqual(
      crashed.map(({ charged, crashes }) => [charged, crashes]),
      [[true, 1]],
    )
    const { crashes, attempt } = await scene.claimOne({ alone: true })
    assert.deepEqual({ crashes, attempt }, { crashes: 1, attempt: 1 })
  },

  async 'a job charged maxCrashes times is buried as crashed, by the claim that finds it'(scene) {
    await scene.openQueue({ maxCrashes: 2 })
    await scene.add({ id: 'a', task: 'resize' }, 'b')
    let fence = 0
    for (let i = 0; i < 2; i++) {
      const claim = await scene.claimOne({ leaseMs: 1_000, alone: true })
      assert.equal(claim.id, 'a')
      fence = claim.fence
      await scene.advance(1_000)
    }

    const { crashed, buried, claims, waits } = await scene.claim({ limit: 1 })

    assert.deepEqual(
      crashed.map(({ id, crashes }) => [id, crashes]),
      [['a', 2]],
    )
    assert.deepEqual(buried, [{ queue: scene.queue, id: 'a', task: 'resize', reason: 'crashed', fence }])
    assert.deepEqual([claims.map(({ id }) => id), waits], [['b'], []])
    const { state, reason, crashes, finishedAt, suspect } = await scene.job('a')
    assert.deepEqual([state, reason, crashes, finishedAt, suspect], ['dead', 'crashed', 2, await scene.now(), false])
  },

  async 'a burial is reported once'(scene) {
    await scene.openQueue({ maxCrashes: 1 })
    await scene.add('a')
    await scene.claimOne({ leaseMs: 1_000, alone: true })
    await scene.advance(1_000)

    assert.equal((await scene.claim()).buried.length, 1)
    assert.equal((await scene.claim()).buried.length, 0)
  },

  async 'no crash that is not charged buries a job, however low maxCrashes is'(scene) {
    await scene.openQueue({ maxCrashes: 1 })
    await scene.addSuspects('a')
    assert.equal((await scene.job('a')).state, 'ready')
    await scene.claimOne({ leaseMs: 1_000, alone: true })
    await scene.advance(1_000)

    const { buried } = await scene.claim()

    assert.deepEqual(
      buried.map(({ id }) => id),
      ['a'],
    )
    assert.equal((await scene.job('a')).crashes, 1)
  },

  async 'if one job of a batch kills its worker, all others complete uncharged'(scene) {
    const ids = ['a', 'b', 'c', 'killer', 'd', 'e', 'f', 'g', 'h', 'i']
    await scene.add(...ids)
    await scene.claim({ limit: 10, leaseMs: 1_000 })
    await scene.advance(1_000)
    const completed: [string, number][] = []
    const buried: string[] = []

    for (;;) {
      const claimed = await scene.claim({ alone: true, leaseMs: 1_000 })
      buried.push(...claimed.buried.map(({ id }) => id))
      const [claim] = claimed.claims
      if (claim === undefined) break
      if (claim.id === 'killer') await scene.advance(1_000)
      else {
        await scene.end(claim, { kind: 'complete' })
        completed.push([claim.id, claim.crashes])
      }
    }

    assert.deepEqual(
      completed,
      ids.filter((id) => id !== 'killer').map((id) => [id, 0]),
    )
    assert.deepEqual([buried, (await scene.job('killer')).crashes], [['killer'], 3])
    const { processed, crashed } = await scene.depth()
    assert.deepEqual([processed, crashed], [9, 13])
  },

  async 'crashes are kept over releases without delay and over failures'(scene) {
    await scene.add('a')
    await scene.claimOne({ leaseMs: 1_000, alone: true })
    await scene.advance(1_000)
    await scene.end(await scene.claimOne({ alone: true }), { kind: 'release', delayMs: 0 })
    await scene.end(await scene.claimOne({ alone: true }), { kind: 'retry', delayMs: 0 })

    assert.equal((await scene.claimOne()).crashes, 1)
  },

  async 'crashes are forgotten when a job is released for later'(scene) {
    await scene.add('a')
    await scene.claimOne({ leaseMs: 1_000, alone: true })
    await scene.advance(1_000)
    await scene.end(await scene.claimOne({ alone: true }), { kind: 'release', delayMs: 1_000 })
    await scene.advance(1_000)
    assert.equal((await scene.claimOne()).crashes, 0)
  },

  'a job with a requested cancellation is gone when it crashes, and the crash is reported and counted': plainCase(
    [tellsCrashes, records],
    async (scene) => {
      await scene.openQueue({ maxCrashes: 1 })
      await scene.add({ id: 'a', rememberMs: 60_000 })
      await scene.claimOne({ leaseMs: 1_000, alone: true })
      await scene.records.cancel(scene.queue, { ids: ['a'] }, 'stop')
      await scene.advance(1_000)

      const { crashed, buried } = await scene.claim()

      assert.deepEqual(
        crashed.map(({ id, charged, crashes }) => [id, charged, crashes]),
        [['a', true, 1]],
      )
      assert.deepEqual(buried, [])
      const { jobs, remembered, crashed: counted } = await scene.stored()
      assert.deepEqual([jobs, counted], [[], 1])
      assert.deepEqual([remembered[0]?.state, remembered[0]?.crashes], ['cancelled', 1])
    },
  ),

  async 'every crash of a job counts for its queue'(scene) {
    await scene.addSuspects('a', 'b')
    await scene.claimOne({ leaseMs: 1_000, alone: true })
    await scene.advance(1_000)
    await scene.claim()

    assert.equal((await scene.depth()).crashed, 3)
  },
})
