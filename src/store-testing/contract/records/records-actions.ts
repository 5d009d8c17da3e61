/** Contract cases: administration of jobs and queues. */

import assert from 'node:assert/strict'
import type { JobSelection, Step } from '../../../stores/contract/job-records.js'
import { exactDepth, plainCase, plainConcern, records } from '../scenes/contract-case.js'
import type { Scene } from '../scenes/scene.js'

export const recordsActions = plainConcern('records: actions', [records], {
  async 'cancel removes waiting jobs, signals running ones and leaves dead and completed ones'(scene) {
    await everyState(scene)

    assert.deepEqual(await scene.records.cancel(scene.queue, 'all', 'stop'), { changed: 3, more: false })

    assert.deepEqual(await scene.states(), ['dead dead', 'done completed', 'running running'])
    const { claim, reason } = await scene.job('running')
    assert.deepEqual([claim?.cancelRequested, reason], [true, 'stop'])
  },

  async 'a job with a requested cancellation is not counted again'(scene) {
    await scene.add('a')
    await scene.claimOne()
    await scene.records.cancel(scene.queue, 'all', 'first')

    assert.deepEqual(await scene.records.cancel(scene.queue, 'all', 'second'), { changed: 0, more: false })
    assert.equal((await scene.job('a')).reason, 'first')
  },

  async 'a running job ends with the reason of its cancel, or else with that of its worker'(scene) {
    for (const [asked, kept] of [
      ['not wanted', 'not wanted'],
      [undefined, 'as told'],
    ] as const) {
      await scene.add(asked ?? 'without')
      const claim = await scene.claimOne()
      await scene.records.cancel(scene.queue, 'all', asked)
      await scene.end(claim, { kind: 'cancel', reason: 'as told' })

      assert.equal((await scene.records.get(scene.queue, claim.id))?.reason, kept)
    }
  },

  async 'a cancelled waiting job never runs'(scene) {
    await scene.add('a', 'b')
    await scene.records.cancel(scene.queue, { ids: ['a'] })

    assert.deepEqual(await scene.claimIds(), ['b'])
  },

  async 'an action by ids changes only those, and skips unknown and repeated ones'(scene) {
    await scene.add('a', 'b', 'c')

    const step = await scene.records.cancel(scene.queue, { ids: ['b', 'never', 'b', 'a'] })

    assert.deepEqual(step, { changed: 2, more: false })
    assert.deepEqual(await scene.states(), ['c ready'])
  },

  async 'an empty list of ids changes nothing'(scene) {
    await everyState(scene)
    const before = await scene.harness.dump()
    const none: JobSelection = { ids: [] }
    const nothing: Step = { changed: 0, more: false }

    assert.deepEqual(await scene.records.cancel(scene.queue, none), nothing)
    assert.deepEqual(await scene.records.delete(scene.queue, none), nothing)
    assert.deepEqual(await scene.records.runNow(scene.queue, none), nothing)
    assert.deepEqual(await scene.records.bury(scene.queue, none), nothing)
    assert.deepEqual(await scene.records.morgue.revive(scene.queue, none), nothing)
    assert.deepEqual(await scene.records.morgue.delete(scene.queue, none), nothing)
    assert.deepEqual(await scene.harness.dump(), before)
  },

  async '‘failed’ means jobs that failed at least once'(scene) {
    for (const act of ['cancel', 'delete', 'bury'] as const) {
      await scene.add('fresh', 'again')
      const { claims } = await scene.claim()
      await scene.end(claims[0]!, { kind: 'release', delayMs: 0 })
      await scene.end(claims[1]!, { kind: 'retry', delayMs: 60_000 })

      assert.deepEqual(await scene.records[act](scene.queue, 'failed'), { changed: 1, more: false })

      assert.deepEqual(await scene.states(), act === 'bury' ? ['again dead', 'fresh ready'] : ['fresh ready'])
      await scene.records.clear(scene.queue)
      // A cancelled id may be used again once it is no longer remembered.
      await scene.advance(3_600_000)
    }
  },

  async 'delete of all removes only waiting jobs'(scene) {
    await everyState(scene)

    assert.deepEqual(await scene.records.delete(scene.queue, 'all'), { changed: 2, more: false })
    assert.deepEqual(await scene.states(), ['dead dead', 'done completed', 'running running'])
  },

  async 'delete by id removes waiting jobs and kept results, never running or dead ones'(scene) {
    await everyState(scene)
    const ids = ['dead', 'done', 'later', 'ready', 'running']

    assert.deepEqual(await scene.records.delete(scene.queue, { ids }), { changed: 3, more: false })
    assert.deepEqual(await scene.states(), ['dead dead', 'running running'])
  },

  async 'a job that is deleted and enqueued again goes to the end, whatever was in its place'(scene) {
    await scene.add('a', 'b', 'c')
    await scene.records.delete(scene.queue, { ids: ['b'] })
    await scene.add('b')

    assert.deepEqual(await scene.claimIds({ limit: 2 }), ['a', 'c'])
    assert.deepEqual(await scene.claimIds(), ['b'])
  },

  async 'a deleted result leaves no trace, even if its id was to be remembered'(scene) {
    await scene.addCompleted('a', { rememberMs: 60_000 })
    await scene.records.delete(scene.queue, { ids: ['a'] })

    assert.equal(await scene.records.get(scene.queue, 'a'), undefined)
    assert.deepEqual(await scene.enqueue(['a']), ['added'])
  },

  async 'runNow makes scheduled jobs ready and due now, behind the waiting ones'(scene) {
    await scene.add({ id: 'later', delayMs: 60_000 })
    await scene.advance(1_000)
    await scene.add('ready')
    const now = await scene.now()

    assert.deepEqual(await scene.records.runNow(scene.queue, 'all'), { changed: 1, more: false })

    const { claims } = await scene.claim()
    assert.deepEqual(
      claims.map(({ id, runAt }) => [id, runAt]),
      [
        ['ready', now],
        ['later', now],
      ],
    )
  },

  async 'runNow keeps the order in which the jobs would have fallen due'(scene) {
    await scene.add({ id: 'c', delayMs: 3_000 }, { id: 'a', delayMs: 1_000 }, { id: 'b', delayMs: 2_000 })
    await scene.records.runNow(scene.queue, 'all')

    assert.deepEqual(await scene.claimIds(), ['a', 'b', 'c'])
  },

  async 'runNow leaves ready, running and ended jobs'(scene) {
    await everyState(scene)
    const before = await scene.job('ready')
    await scene.advance(5)

    assert.deepEqual(await scene.records.runNow(scene.queue, { ids: ['ready', 'running', 'dead', 'done'] }), {
      changed: 0,
      more: false,
    })
    assert.deepEqual(await scene.job('ready'), before)
  },

  async 'bury puts waiting jobs into the morgue with reason buried'(scene) {
    await everyState(scene)

    assert.deepEqual(await scene.records.bury(scene.queue, 'all'), { changed: 2, more: false })

    const { state, reason, finishedAt, error } = await scene.job('ready')
    assert.deepEqual([state, reason, finishedAt, error], ['dead', 'buried', await scene.now(), null])
    assert.equal((await scene.job('dead')).reason, 'unrecoverable')
    assert.equal((await scene.job('running')).state, 'running')
  },

  async 'fail ends the current claim as a counted failure, with the reason as its error'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()

    assert.equal(await scene.records.fail(scene.queue, 'a', { delayMs: 5_000, reason: 'stuck' }), 'ok')

    const { state, attempt, error, worker } = await scene.job('a')
    assert.deepEqual([state, attempt, error, worker], ['scheduled', 2, 'stuck', null])
    assert.equal((await scene.depth()).failed, 1)
    assert.equal(await scene.settle(claim, { kind: 'complete' }), 'lost')
    assert.equal(await scene.extend(claim), 'lost')
  },

  async 'fail with last buries the job with the reason'(scene) {
    await scene.add('a')
    await scene.claimOne()
    await scene.records.fail(scene.queue, 'a', { delayMs: 0, last: true, reason: 'stuck' })

    const { state, reason, error } = await scene.job('a')

    assert.deepEqual([state, reason, error], ['dead', 'stuck', 'stuck'])
  },

  async 'fail of a job that is not running is answered gone and changes nothing'(scene) {
    await everyState(scene)
    const before = await scene.harness.dump()

    for (const id of ['dead', 'done', 'later', 'ready', 'never']) {
      assert.equal(await scene.records.fail(scene.queue, id, { delayMs: 0, reason: 'x' }), 'gone')
    }
    assert.deepEqual(await scene.harness.dump(), before)
  },

  async 'a pause stops only claims: running jobs settle, and new ones arrive'(scene) {
    await scene.add('a', 'b')
    const claim = await scene.claimOne()
    await scene.records.pause(scene.queue)
    await scene.records.pause(scene.queue)

    assert.deepEqual(await scene.claimIds(), [])
    assert.equal(await scene.extend(claim), 'ok')
    await scene.end(claim, { kind: 'complete' })
    await scene.add('c')
    await scene.records.resume(scene.queue)
    await scene.records.resume(scene.queue)
    assert.deepEqual(await scene.claimIds(), ['b', 'c'])
  },

  async 'a pause applies to every handle'(scene) {
    const other = await scene.harness.open()
    await scene.add('a')
    await scene.records.pause(scene.queue)

    const { waits } = await other.claim([{ queue: scene.queue, limit: 1 }], { worker: 'w2', leaseMs: 30_000 })

    assert.deepEqual(waits, [{ queue: scene.queue, reason: 'paused' }])
  },

  async 'a draining queue refuses jobs and runs waiting ones, including retries; resume ends the drain'(scene) {
    await scene.add('a')
    await scene.records.drain(scene.queue)
    await scene.records.drain(scene.queue)

    assert.deepEqual(await scene.enqueue(['b']), ['draining'])
    assert.deepEqual(await scene.enqueue(['b', { id: 'c', delayMs: 1_000 }]), ['draining', 'draining'])
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0 })
    assert.deepEqual(await scene.claimIds(), ['a'])
    await scene.records.resume(scene.queue)
    await scene.add('b')
  },

  async 'clear removes waiting and dead jobs, never running ones, and keeps results and counters'(scene) {
    await everyState(scene)
    const { processed, failed } = await scene.depth()

    assert.deepEqual(await scene.records.clear(scene.queue), { changed: 3, more: false })

    assert.deepEqual(await scene.states(), ['done completed', 'running running'])
    const after = await scene.depth()
    assert.deepEqual([after.processed, after.failed], [processed, failed])
  },

  'one step changes at most 1,000 jobs and says whether there are more': plainCase(
    [records, exactDepth],
    async (scene) => {
      for (let i = 0; i < 5; i++) {
        await scene.add(...Array.from({ length: 250 }, (_, n) => ({ id: `job-${i}-${n}`, delayMs: 60_000 })))
      }

      assert.deepEqual(await scene.records.runNow(scene.queue, 'all'), { changed: 1_000, more: true })
      assert.deepEqual(await scene.records.runNow(scene.queue, 'all'), { changed: 250, more: false })
      assert.deepEqual(await scene.records.bury(scene.queue, 'all'), { changed: 1_000, more: true })
      assert.deepEqual(await scene.records.clear(scene.queue), { changed: 1_000, more: true })
      assert.deepEqual(await scene.records.clear(scene.queue), { changed: 250, more: false })
      assert.equal((await scene.depth()).dead, 0)
    },
  ),

  async 'exactly 1,000 jobs are one step with nothing more'(scene) {
    for (let i = 0; i < 4; i++) await scene.add(...Array.from({ length: 250 }, (_, n) => `job-${i}-${n}`))

    assert.deepEqual(await scene.records.clear(scene.queue), { changed: 1_000, more: false })
  },

  async 'an action in one queue changes no other queue'(scene) {
    await scene.openQueue({ name: 'other' })
    await scene.add('a')
    await scene.enqueue(['a'], { queue: 'other' })
    const before = await scene.stored('other')

    await scene.records.cancel(scene.queue, 'all')
    await scene.records.pause(scene.queue)
    await scene.records.drain(scene.queue)

    assert.deepEqual(await scene.stored('other'), before)
  },
})

/** One job in each state, named after it. */
async function everyState(scene: Scene): Promise<void> {
  await scene.addDead('dead')
  await scene.addCompleted('done')
  await scene.add('running')
  await scene.claimOne()
  await scene.add('ready', { id: 'later', delayMs: 60_000 })
}
