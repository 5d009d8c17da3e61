/** Contract cases: the lag of jobs that have waited for the members of a join, or for a signal. */

import assert from 'node:assert/strict'
import { exactDepth, groups, joinCase, joinConcern, priority, steps } from '../scenes/contract-case.js'
import type { JoinScene } from '../scenes/join-scene.js'

export const waitedLags = joinConcern('the lag of jobs that have waited', [exactDepth], {
  async 'the lag of a join counts from the end of its last member'(scene) {
    await scene.join({ sets: { all: 2 } })
    await scene.advance(5_000)
    await scene.completes()
    await scene.advance(5_000)
    assert.deepEqual(await lagsOf(scene), [0, undefined])
    await scene.completes()
    assert.deepEqual(await lagsOf(scene), [0, 0])
    await scene.advance(3_000)
    assert.deepEqual(await lagsOf(scene), [3_000, 3_000])
  },

  async 'a join that has waited says until when, in its record and its claim, until it has failed'(scene) {
    await scene.join({ sets: { all: 1 } })
    await scene.add('behind')
    await scene.advance(5_000)
    const waitedUntil = await scene.now()
    await scene.completes()
    await scene.advance(5_000)
    const record = () => scene.records.get(scene.queue, 'join')
    assert.equal((await record())?.waitedUntil, waitedUntil)
    const claim = await scene.claimOne()
    assert.deepEqual([claim.id, claim.waitedUntil], ['join', waitedUntil])
    assert.equal((await record())?.waitedUntil, waitedUntil)
    const { jobs } = await scene.records.list(scene.queue, { by: 'time', limit: 10 })
    const waits = jobs.map((job) => [job.id, job.waitedUntil])
    assert.deepEqual(waits, [
      ['join', waitedUntil],
      ['behind', undefined],
    ])
    await scene.end(claim, { kind: 'retry', delayMs: 0 })
    assert.equal((await record())?.waitedUntil, undefined)
    assert.deepEqual(
      (await scene.claim({ limit: 2 })).claims.map((one) => one.waitedUntil),
      [undefined, undefined],
    )
  },

  async 'the lag of a delayed join counts from when it is due'(scene) {
    await scene.join({ sets: { all: 1 }, job: { delayMs: 5_000 } })
    await scene.advance(10_000)
    await scene.completes()
    await scene.advance(7_000)
    assert.equal((await scene.depth()).lagMs, 2_000)
    await scene.claim({ limit: 0 })
    assert.deepEqual(await lagsOf(scene), [2_000, 2_000])
  },

  async 'a job behind a join that has waited counts from its own due time, and both keep their places'(scene) {
    await scene.join({ sets: { all: 1 } })
    await scene.advance(1_000)
    await scene.add('behind')
    await scene.advance(4_000)
    await scene.completes()
    await scene.advance(1_000)
    assert.deepEqual(await lagsOf(scene), [5_000, 5_000])
    assert.deepEqual(await scene.claimIds(), ['join', 'behind'])
  },

  async 'a job before a join that has waited counts from its own due time'(scene) {
    await scene.add('before')
    await scene.join({ sets: { all: 1 } })
    await scene.advance(4_000)
    await scene.completes()
    await scene.advance(1_000)
    assert.deepEqual(await lagsOf(scene), [5_000, 5_000])
    assert.equal((await scene.claimOne()).id, 'before')
    assert.deepEqual(await lagsOf(scene), [1_000, 1_000])
  },

  async 'of several joins that have waited the first to be ready counts, whatever its place'(scene) {
    const ids = ['a', 'b', 'c']
    for (const id of ids) await scene.join({ id, sets: { all: 1 } })
    const claims = await scene.members()
    for (const id of ['c', 'a', 'b']) {
      await scene.advance(1_000)
      await scene.end(claims[ids.indexOf(id)]!, { kind: 'complete' })
    }
    await scene.advance(2_000)
    assert.deepEqual(await lagsOf(scene), [4_000, 4_000])
    assert.deepEqual(await scene.claimIds({ limit: 2 }), ['a', 'b'])
    assert.deepEqual(await lagsOf(scene), [4_000, 4_000])
  },

  'a join that has waited hides no older job of another priority': joinCase([priority], async (scene) => {
    await scene.join({ sets: { all: 1 }, job: { priority: 3 } })
    await scene.advance(1_000)
    await scene.add('low')
    await scene.advance(4_000)
    await scene.completes()
    await scene.advance(1_000)
    assert.deepEqual(await lagsOf(scene), [5_000, 5_000])
    assert.deepEqual(await scene.claimIds(), ['join', 'low'])
  }),

  'the lag of a join with a group counts from the end of its last member': joinCase([groups], async (scene) => {
    await scene.join({ sets: { all: 1 }, job: { group: 'x' } })
    await scene.advance(10_000)
    await scene.completes()
    await scene.advance(3_000)
    assert.deepEqual(await lagsOf(scene), [3_000, 3_000])
  }),

  async 'a join that a lost worker leaves behind counts from the end of its last member'(scene) {
    await scene.join({ sets: { all: 1 } })
    await scene.advance(10_000)
    await scene.completes()
    await scene.claimOne({ leaseMs: 1_000 })
    await scene.advance(1_000)
    await scene.claim({ worker: 'finder', limit: 0 })
    await scene.advance(2_000)
    assert.equal((await scene.depth()).lagMs, 3_000)
  },

  async 'a join that has failed counts from when its retry is due'(scene) {
    await scene.join({ sets: { all: 1 } })
    await scene.advance(10_000)
    await scene.completes()
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 5_000 })
    await scene.advance(6_000)
    assert.equal((await scene.depth()).lagMs, 1_000)
  },

  'the lag of a job that waited for a signal counts from the signal': joinCase([steps], async (scene) => {
    await waits(scene, 'a')
    await scene.advance(10_000)
    await wake(scene, 'a')
    await scene.advance(3_000)
    assert.deepEqual(await lagsOf(scene), [3_000, 3_000])
    assert.equal((await scene.claimOne()).waitedUntil, (await scene.now()) - 3_000)
  }),

  'a wait for a signal that came first is over when the run ends': joinCase([steps], async (scene) => {
    await scene.add('a')
    await wake(scene, 'a')
    const claim = await scene.claimOne()
    await scene.advance(10_000)
    await scene.end(claim, { kind: 'wait', signal: 'go' })
    await scene.advance(3_000)
    assert.deepEqual(await lagsOf(scene), [3_000, 3_000])
  }),

  'a wait in vain is over when a sweep has ended it': joinCase([steps], async (scene) => {
    await waits(scene, 'a', 60_000)
    await scene.advance(70_000)
    await scene.steps.sweep('worker-1')
    await scene.advance(3_000)
    assert.deepEqual(await lagsOf(scene), [3_000, 3_000])
  }),

  'in a queue that is last in, first out the first to be ready counts too': joinCase([steps], async (scene) => {
    const queue = 'newest'
    await scene.openQueue({ name: queue, order: 'lifo' })
    await scene.enqueue(['a', 'b', 'c'], { queue })
    for (const claim of (await scene.claim({ queue })).claims) await scene.end(claim, { kind: 'wait', signal: 'go' })
    for (const id of ['b', 'a', 'c']) {
      await scene.advance(1_000)
      await wake(scene, id, queue)
    }
    await scene.advance(1_000)
    assert.deepEqual(await lagsOf(scene, queue), [3_000, 3_000])
    assert.deepEqual(await scene.claimIds({ queue, limit: 2 }), ['c', 'b'])
    assert.deepEqual(await lagsOf(scene, queue), [2_000, 2_000])
  }),

  'however many jobs have waited in front of it, a job counts from its own due time': joinCase(
    [steps],
    async (scene) => {
      const ids = Array.from({ length: 150 }, (_, i) => `j${i}`)
      await scene.add(...ids)
      for (const claim of (await scene.claim({ limit: 150 })).claims)
        await scene.end(claim, { kind: 'wait', signal: 'go' })
      await scene.advance(1_000)
      await scene.add('behind')
      await scene.advance(4_000)
      for (const id of ids) await wake(scene, id)
      await scene.advance(1_000)
      assert.deepEqual(await lagsOf(scene), [5_000, 5_000])
    },
  ),
})

/** The lag of the queue, and the age of its head. */
async function lagsOf(scene: JoinScene, queue = scene.queue): Promise<(number | undefined)[]> {
  const { heads } = await scene.claim({ from: [{ queue, limit: 0 }], heads: true })
  return [(await scene.depth(queue)).lagMs, heads?.[0]?.ageMs]
}

/** A job that waits for the signal `go`; nothing else may be ready. */
async function waits(scene: JoinScene, id: string, withinMs?: number): Promise<void> {
  await scene.add(id)
  const bound = withinMs === undefined ? {} : { withinMs }
  await scene.end(await scene.claimOne(), { kind: 'wait', signal: 'go', ...bound })
}

async function wake(scene: JoinScene, id: string, queue = scene.queue): Promise<void> {
  await scene.steps.signal({ queue, id }, { name: 'go' })
}
