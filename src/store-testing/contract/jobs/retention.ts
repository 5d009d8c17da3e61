/** Contract cases: how many ended jobs are kept, and for how long. */

import assert from 'node:assert/strict'
import { resultDropped } from '../../../stores/contract/job-records.js'
import type { SettleItem } from '../../../stores/contract/settle.js'
import { exactDepth, plainCase, plainConcern, records } from '../scenes/contract-case.js'
import type { Scene } from '../scenes/scene.js'

export const retention = plainConcern('retention', [], {
  'a result is shown until its time is over, and not a millisecond longer': plainCase([records], async (scene) => {
    await scene.addCompleted('a', {}, 5_000)

    await scene.advance(4_999)
    const job = await scene.records.get(scene.queue, 'a')
    assert.deepEqual(job?.result, { payload: '"a"' })
    await scene.advance(1)
    assert.equal(await scene.records.get(scene.queue, 'a'), undefined)
    assert.deepEqual((await scene.records.list(scene.queue, { by: 'time', limit: 10 })).jobs, [])
  }),

  'a job without a result is kept as completed if its settle asks for that': plainCase([records], async (scene) => {
    await scene.add('kept', 'gone')
    const { claims } = await scene.claim()
    await scene.store.settle(
      claims.map(({ queue, id, fence }) => ({
        ...{ queue, id, fence, kind: 'complete' as const },
        ...(id === 'kept' ? { result: { keepMs: 5_000 } } : {}),
      })),
    )

    const job = await scene.records.get(scene.queue, 'kept')
    assert.equal(job?.state, 'completed')
    assert.deepEqual(job?.result, {})
    assert.equal(typeof job?.finishedAt, 'number')
    const { jobs } = await scene.records.list(scene.queue, { state: 'completed', by: 'time', limit: 10 })
    assert.deepEqual(
      jobs.map(({ id, result }) => [id, result]),
      [['kept', {}]],
    )
    await scene.advance(5_000)
    assert.equal(await scene.records.get(scene.queue, 'kept'), undefined)
  }),

  ...Object.fromEntries(
    [[], ['of-group']].map((grouped) => [
      `results that are kept by one call are as if each was kept by a call of its own${grouped.length > 0 ? ', also beside a group' : ''}`,
      plainCase([records], async (scene) => {
        const run = { startedMs: 0, host: 'host-1', pid: 7 }
        const ids = ['a', 'failed', 'remembered', 'beaten', 'noted', 'blank', 'b', 'c', ...grouped]
        const more = { 'of-group': { group: 'g' }, remembered: { rememberMs: 60_000 } }
        const kept = async (queue: string, isOneCall: boolean) => {
          await scene.openQueue({ name: queue })
          await scene.enqueue(['failed'], { queue })
          await scene.end(await scene.claimOne({ queue }), { kind: 'retry', delayMs: 0, error: 'E' })
          const others = ids.filter((id) => id !== 'failed')
          await scene.enqueue(
            others.map((id) => ({ id, ...more[id as keyof typeof more] })),
            { queue },
          )
          const { claims } = await scene.claim({ queue, limit: ids.length })
          const claimOf = (id: string) => claims.find((claim) => claim.id === id)!
          await scene.extend(claimOf('beaten'), { beat: { progress: { fraction: 0.5 }, host: 'host-2' } })
          await scene.extend(claimOf('noted'), { beat: { log: 'a line' } })
          const items = ids.map((id, i): SettleItem => {
            const { fence } = claimOf(id)
            const result = id === 'blank' ? { keepMs: 1_000 } : { payload: `"${id}\0ü🎈"`, keepMs: 1_000 + i }
            return { queue, id, fence, kind: 'complete', result, ...(id !== 'b' && { run }) }
          })
          const calls = isOneCall ? [items] : items.map((item) => [item])
          for (const call of calls)
            assert.deepEqual(
              await scene.store.settle(call),
              call.map(() => 'ok'),
            )
          assert.deepEqual(await scene.store.settle(items.slice(0, 4)), ['lost', 'lost', 'lost', 'lost'])
          const { processed, running } = await scene.depth(queue)
          assert.deepEqual([processed, running], [ids.length, 0])
        }
        const times = { stamp: 0, createdAt: 0, updatedAt: 0, startedAt: 0, finishedAt: 0, expiresAt: 0 }
        const shown = async (queue: string) => (await scene.stored(queue)).jobs.map((job) => ({ ...job, ...times }))

        await kept('one', true)
        await kept('each', false)

        assert.deepEqual(await shown('one'), await shown('each'))
        const { worker, host, pid } = await scene.job('a', 'one')
        assert.deepEqual([worker, host, pid], ['worker-1', 'host-1', 7])
        await scene.advance(1_000 + ids.length)
        for (const queue of ['one', 'each']) {
          await scene.enqueue(['last'], { queue })
          await scene.end(await scene.claimOne({ queue }), { kind: 'complete' })
          assert.deepEqual(await scene.states(queue), [])
          assert.deepEqual(await scene.rememberedIds(queue), ['remembered'])
        }
      }),
    ]),
  ),

  async 'jobs without a result count among the kept ones'(scene) {
    await scene.openQueue({ resultsCount: 2 })
    for (const id of ['a', 'b', 'c']) {
      await scene.add(id)
      await scene.end(await scene.claimOne(), { kind: 'complete', result: {} })
      await scene.advance(1)
    }

    assert.deepEqual(await scene.states(), ['b completed', 'c completed'])
  },

  'depth says since when something was lost: by hand, or from the morgue; dropped results are not losses': plainCase(
    [records],
    async (scene) => {
      const lostAt = async () => (await scene.store.depth([scene.queue])).depths[0]!.lostAt
      await scene.openQueue({ resultsCount: 1, dead: { count: 1 } })
      await scene.add('blank')
      await scene.end(await scene.claimOne(), { kind: 'complete' })
      await scene.addCompleted('a')
      assert.equal(await lostAt(), undefined)
      await scene.advance(10)
      await scene.addCompleted('b')
      assert.deepEqual(await scene.states(), ['b completed'])
      assert.equal(await lostAt(), undefined)
      await scene.advance(10)
      await scene.add('c', 'd', 'e')
      for (const act of [
        () => scene.records.delete(scene.queue, { ids: ['c'] }),
        () => scene.records.delete(scene.queue, { ids: ['b'] }),
        () => scene.records.clear(scene.queue),
      ]) {
        const before = await scene.now()
        await act()
        const at = await lostAt()
        assert.ok(at !== undefined && at >= before && at <= (await scene.now()))
        await scene.advance(10)
      }
      await scene.addDead('f')
      const death = (await scene.records.get(scene.queue, 'f'))!.finishedAt!
      await scene.advance(10)
      await scene.addDead('g')
      assert.equal(await lostAt(), death)
      await scene.advance(10)
      const before = await lostAt()
      await scene.records.cancel(scene.queue, 'all')
      await scene.add('h')
      await scene.end(await scene.claimOne(), { kind: 'complete' })
      assert.equal(await lostAt(), before)
      await scene.records.morgue.delete(scene.queue, 'all')
      assert.ok((await lostAt())! > before!)
    },
  ),

  'an id whose result was dropped or is too old is remembered as having had one; other ids are not': plainCase(
    [records],
    async (scene) => {
      await scene.openQueue({ resultsCount: 1 })
      const remembered = { rememberMs: 60_000 }
      await scene.addCompleted('trimmed', remembered)
      await scene.addCompleted('expired', remembered, 1_000)
      await scene.add({ id: 'blank', ...remembered })
      await scene.end(await scene.claimOne(), { kind: 'complete' })
      await scene.advance(1_000)
      const reasons = async () =>
        Promise.all(
          ['trimmed', 'expired', 'blank'].map(async (id) => {
            const job = await scene.records.get(scene.queue, id)
            assert.equal(job?.state, 'completed')
            assert.equal(job.result, undefined)
            return job.reason
          }),
        )
      assert.deepEqual(await reasons(), [resultDropped, resultDropped, undefined])
      // The next settle removes what is past its time.
      await scene.addCompleted('z')
      assert.deepEqual(await reasons(), [resultDropped, resultDropped, undefined])
    },
  ),

  async 'a result without an age is kept as long as the store exists'(scene) {
    await scene.addCompleted('a')
    await scene.advance(10 * 365 * 86_400_000)

    assert.deepEqual(await scene.states(), ['a completed'])
  },

  async 'results within the limit are all kept'(scene) {
    await scene.openQueue({ resultsCount: 8 })
    for (let i = 0; i < 5; i++) await scene.addCompleted(`job-${i}`)

    assert.equal((await scene.states()).length, 5)
  },

  async 'beyond the limit the oldest results go'(scene) {
    await scene.openQueue({ resultsCount: 2 })
    for (const id of ['d', 'a', 'c', 'b']) {
      await scene.addCompleted(id)
      await scene.advance(1)
    }

    assert.deepEqual(await scene.states(), ['b completed', 'c completed'])
  },

  async 'results that ended in one millisecond go in the order in which they were enqueued'(scene) {
    await scene.openQueue({ resultsCount: 2 })
    await scene.add('d', 'a', 'c', 'b')
    const { claims } = await scene.claim()
    await scene.store.settle(
      claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete', result: { payload: id } })),
    )

    assert.deepEqual(await scene.states(), ['b completed', 'c completed'])
  },

  async 'a limit of 0 keeps no result'(scene) {
    await scene.openQueue({ resultsCount: 0 })
    await scene.addCompleted('a')

    assert.deepEqual(await scene.states(), [])
  },

  async 'dead jobs are kept until they are deleted if there is no limit'(scene) {
    await scene.addDead('a')
    await scene.advance(10 * 365 * 86_400_000)

    assert.deepEqual(await scene.states(), ['a dead'])
  },

  'a dead job is shown until its age is over, and then nowhere': plainCase([records], async (scene) => {
    await scene.openQueue({ dead: { ageMs: 5_000 } })
    await scene.addDead('a')

    await scene.advance(4_999)
    assert.equal((await scene.records.get(scene.queue, 'a'))?.state, 'dead')
    await scene.advance(1)
    assert.equal(await scene.records.get(scene.queue, 'a'), undefined)
    assert.deepEqual(await scene.records.morgue.list(scene.queue, { by: 'time', limit: 10 }), { jobs: [] })
    assert.deepEqual(await scene.records.morgue.revive(scene.queue, 'all'), { changed: 0, more: false })
  }),

  async 'a dead job beyond its age frees its id'(scene) {
    await scene.openQueue({ dead: { ageMs: 5_000 } })
    await scene.addDead('a')
    await scene.advance(5_000)

    assert.deepEqual(await scene.enqueue(['a']), ['added'])
  },

  async 'beyond the limit the oldest dead jobs go'(scene) {
    await scene.openQueue({ dead: { count: 2 } })
    for (const id of ['c', 'a', 'b']) {
      await scene.addDead(id)
      await scene.advance(1)
    }

    assert.deepEqual(await scene.states(), ['a dead', 'b dead'])
  },

  async 'dead jobs within the limit are all kept'(scene) {
    await scene.openQueue({ dead: { count: 8 } })
    for (let i = 0; i < 5; i++) await scene.addDead(`job-${i}`)

    assert.equal((await scene.depth()).dead, 5)
  },

  'one settle trims at most 300 of a kind, more than it can add': plainCase([records, exactDepth], async (scene) => {
    await buryMany(scene, 450)
    await scene.openQueue({ dead: { count: 10 } })

    await settleOne(scene)
    assert.equal((await scene.depth()).dead, 150)
    await settleOne(scene)
    assert.equal((await scene.depth()).dead, 10)
  }),

  async 'a settle trims only its own queue'(scene) {
    await scene.openQueue({ name: 'other' })
    await scene.enqueue(['x', 'y'], { queue: 'other' })
    for (const { queue, id, fence } of (await scene.claim({ queue: 'other' })).claims)
      await scene.end({ queue, id, fence }, { kind: 'bury' })
    await scene.openQueue({ name: 'other', dead: { count: 1 } })

    await settleOne(scene)

    assert.deepEqual(await scene.states('other'), ['x dead', 'y dead'])
  },

  async 'waiting and running jobs are never trimmed'(scene) {
    await scene.openQueue({ resultsCount: 0, dead: { ageMs: 1, count: 0 } })
    await scene.add('running', 'ready', { id: 'later', delayMs: 1_000_000 })
    await scene.claimOne({ leaseMs: 1_000_000 })
    await scene.advance(900_000)
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0 })

    assert.deepEqual(await scene.states(), ['later scheduled', 'ready ready', 'running running'])
  },
})

async function settleOne(scene: Scene): Promise<void> {
  await scene.add('one')
  await scene.end(await scene.claimOne(), { kind: 'complete' })
}

async function buryMany(scene: Scene, count: number): Promise<void> {
  for (let from = 0; from < count; from += 150)
    await scene.add(...Array.from({ length: Math.min(150, count - from) }, (_, i) => `job-${from + i}`))
  await scene.records.bury(scene.queue, 'all')
}
