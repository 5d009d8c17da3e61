/** Contract cases: the morgue. */

import assert from 'node:assert/strict'
import { plainConcern, records } from '../scenes/contract-case.js'

export const morgue = plainConcern('morgue', [records], {
  async 'a revived job is ready now with attempt 1 and no crashes, and keeps its last error'(scene) {
    await scene.openQueue({ maxCrashes: 1 })
    await scene.add({ id: 'a', delayMs: 1_000 })
    await scene.advance(1_000)
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, error: 'the last' })
    await scene.claimOne({ leaseMs: 1_000, alone: true })
    await scene.advance(1_000)
    assert.equal((await scene.claim()).buried.length, 1)
    await scene.advance(60_000)
    const now = await scene.now()

    assert.deepEqual(await scene.records.morgue.revive(scene.queue, { ids: ['a'] }), { changed: 1, more: false })

    const { state, attempt, crashes, error, reason, finishedAt, worker } = await scene.job('a')
    assert.deepEqual(
      { state, attempt, crashes, error, reason, finishedAt, worker },
      {
        state: 'ready',
        attempt: 1,
        crashes: 0,
        error: 'the last',
        reason: null,
        finishedAt: null,
        worker: null,
      },
    )
    assert.equal((await scene.claimOne()).runAt, now)
  },

  async 'revived jobs go behind the waiting ones'(scene) {
    await scene.addDead('a')
    await scene.add('b')
    await scene.records.morgue.revive(scene.queue, 'all')

    assert.deepEqual(await scene.claimIds(), ['b', 'a'])
  },

  async 'jobs that are revived by their ids come in the order of these'(scene) {
    for (const id of ['a', 'b', 'c']) await scene.addDead(id)
    await scene.records.morgue.revive(scene.queue, { ids: ['b', 'c', 'a'] })

    assert.deepEqual(await scene.claimIds(), ['b', 'c', 'a'])
  },

  async 'revive of all and of ‘failed’ takes every dead job'(scene) {
    for (const where of ['all', 'failed'] as const) {
      await scene.addDead(`${where} 1`)
      await scene.addDead(`${where} 2`)
      assert.deepEqual(await scene.records.morgue.revive(scene.queue, where), { changed: 2, more: false })
      for (const claim of (await scene.claim()).claims) await scene.end(claim, { kind: 'complete' })
    }
    assert.equal((await scene.depth()).dead, 0)
  },

  async 'revive touches dead jobs only'(scene) {
    await scene.addCompleted('done')
    await scene.add('running')
    await scene.claimOne()
    await scene.add('ready', { id: 'later', delayMs: 1_000 })
    const before = await scene.harness.dump()
    const ids = ['done', 'running', 'ready', 'later', 'never']

    assert.deepEqual(await scene.records.morgue.revive(scene.queue, { ids }), { changed: 0, more: false })
    assert.deepEqual(await scene.records.morgue.delete(scene.queue, { ids }), { changed: 0, more: false })
    assert.deepEqual(await scene.harness.dump(), before)
  },

  async '150 failed jobs and one fresh: bury the failed, revive all, and 151 are there'(scene) {
    await scene.add(...Array.from({ length: 150 }, (_, i) => `job-${i}`))
    const { claims } = await scene.claim({ limit: 150 })
    await scene.store.settle(
      claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'retry', delayMs: 60_000 })),
    )
    await scene.add('fresh')

    await scene.records.bury(scene.queue, 'failed')
    const buried = await scene.depth()
    await scene.records.morgue.revive(scene.queue, 'all')
    const revived = await scene.depth()

    assert.deepEqual([buried.dead, buried.ready], [150, 1])
    assert.deepEqual([revived.dead, revived.ready, revived.retries], [0, 151, 0])
  },

  async 'a deleted dead job is gone and frees its id'(scene) {
    await scene.addDead('a', { rememberMs: 60_000 })
    await scene.addDead('b')

    assert.deepEqual(await scene.records.morgue.delete(scene.queue, { ids: ['a'] }), { changed: 1, more: false })
    assert.deepEqual(await scene.enqueue(['a', 'b']), ['added', 'dead'])
  },

  async 'the morgue lists dead jobs by id or latest first, page by page'(scene) {
    for (const id of ['b', 'd', 'a', 'c']) {
      await scene.addDead(id)
      await scene.advance(1)
    }
    await scene.add('waiting')
    const list = (by: 'id' | 'time', cursor?: string) =>
      scene.records.morgue.list(scene.queue, { by, limit: 3, ...(cursor === undefined ? {} : { cursor }) })

    for (const [by, ids] of [
      ['id', ['a', 'b', 'c', 'd']],
      ['time', ['c', 'a', 'd', 'b']],
    ] as const) {
      const first = await list(by)
      const second = await list(by, first.cursor)
      assert.deepEqual(
        [...first.jobs, ...second.jobs].map(({ id }) => id),
        ids,
      )
      assert.deepEqual([first.jobs.length, second.cursor], [3, undefined])
    }
  },

  async 'a dead job cannot be run, cancelled, failed or deleted like a waiting one'(scene) {
    await scene.addDead('a')
    const before = await scene.harness.dump()
    const where = { ids: ['a'] }

    for (const act of ['cancel', 'delete', 'runNow', 'bury'] as const) {
      assert.deepEqual(await scene.records[act](scene.queue, where), { changed: 0, more: false })
    }
    assert.deepEqual(await scene.harness.dump(), before)
  },
})
