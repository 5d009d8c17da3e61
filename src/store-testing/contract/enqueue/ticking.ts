/** Contract cases: a tick enqueues and steps, both or neither, and only once however many try. */

import assert from 'node:assert/strict'
import { tickId } from '../../../stores/rules/schedule-record.js'
import { ordered, orderedCase, plainCase, plainConcern, scheduled, steps } from '../scenes/contract-case.js'
import { hourly, hourMs, schedulesOf, storedSchedule, tickOf } from '../scenes/schedule-words.js'

export const ticking = plainConcern('ticks of schedules', [scheduled], {
  async 'a tick enqueues its job and steps to the next'(scene) {
    const now = await scene.now()
    await schedulesOf(scene.store).put(hourly('a', now, { definition: { jitterMs: 0 } }), undefined)
    const tick = tickOf(await storedSchedule(scene.store, 'a'))

    const answer = await schedulesOf(scene.store).tick(tick)

    assert.deepEqual(answer, { outcome: 'ticked', enqueued: ['added'] })
    const { nextAt, lastAt, lastId, ticked } = await storedSchedule(scene.store, 'a')
    assert.deepEqual([nextAt, lastAt, lastId, ticked], [now + hourMs, now, tick.jobs[0]!.id, 1])
    assert.deepEqual(await scene.claimIds(), [tick.jobs[0]!.id])
  },

  async 'if several tick the same instant, one does'(scene) {
    const handles = [scene.store, await scene.harness.open(), await scene.harness.open()]
    await schedulesOf(scene.store).put(hourly('a', await scene.now()), undefined)
    const schedule = await storedSchedule(scene.store, 'a')

    const answers = await Promise.all(
      [...handles, ...handles].map((store) => schedulesOf(store).tick(tickOf(schedule))),
    )

    assert.equal(answers.filter(({ outcome }) => outcome === 'ticked').length, 1)
    assert.equal(answers.filter(({ outcome }) => outcome === 'lost').length, 5)
    assert.equal((await scene.depth()).ready, 1)
    assert.equal((await storedSchedule(scene.store, 'a')).ticked, 1)
  },

  async 'a tick with an outdated view of the schedule is lost'(scene) {
    const { put, tick, remove, get } = schedulesOf(scene.store)
    const now = await scene.now()
    await put(hourly('a', now), undefined)
    const old = tickOf(await storedSchedule(scene.store, 'a'))
    await put(hourly('a', now, { revision: 'a-2' }), await get('a'))
    assert.deepEqual(await tick(old), { outcome: 'lost' })
    await remove('a')
    assert.deepEqual(await tick({ ...old, revision: 'a-2' }), { outcome: 'lost' })
    await put(hourly('a', now, { revision: 'a-3' }), undefined)
    assert.deepEqual(await tick({ ...old, revision: 'a-2' }), { outcome: 'lost' })
    assert.equal((await scene.depth()).ready, 0)
  },

  async 'a tick of several jobs enqueues all of them'(scene) {
    const now = await scene.now()
    await schedulesOf(scene.store).put(hourly('a', now), undefined)
    const schedule = await storedSchedule(scene.store, 'a')
    const ids = [0, 1, 2].map((n) => tickId('a', now + n * 1_000, schedule.shards))
    const jobs = ids.map((id) => ({ ...schedule.definition.job, id }))

    await schedulesOf(scene.store).tick(tickOf(schedule, { jobs, lastAt: now + 2_000, misses: 4 }))

    assert.deepEqual((await scene.claimIds()).sort(), [...ids].sort())
    const { ticked, missed, lastAt, lastId } = await storedSchedule(scene.store, 'a')
    assert.deepEqual([ticked, missed, lastAt, lastId], [3, 4, now + 2_000, ids[2]])
  },

  async 'a tick without jobs only advances, and the last one has no next'(scene) {
    const { put, tick, due } = schedulesOf(scene.store)
    const now = await scene.now()
    await put(hourly('a', now), undefined)
    const { nextAt: _, ...last } = tickOf(await storedSchedule(scene.store, 'a'), { jobs: [], misses: 1 })

    assert.deepEqual(await tick(last), { outcome: 'ticked', enqueued: [] })

    const schedule = await storedSchedule(scene.store, 'a')
    assert.deepEqual([schedule.nextAt, schedule.lastAt, schedule.missed, schedule.ticked], [undefined, now, 1, 0])
    const found = await due('worker', hourMs, 10)
    assert.deepEqual([found.due, found.nextAt], [[], undefined])
    assert.equal((await scene.depth()).ready, 0)
  },

  async 'a job run by hand leaves the next tick unchanged'(scene) {
    const now = await scene.now()
    await schedulesOf(scene.store).put(hourly('a', now + hourMs), undefined)
    const { lastAt: _, ...tick } = tickOf(await storedSchedule(scene.store, 'a'), { nextAt: now + hourMs })

    assert.equal((await schedulesOf(scene.store).tick(tick)).outcome, 'ticked')

    const { nextAt, lastAt, lastId } = await storedSchedule(scene.store, 'a')
    assert.deepEqual([nextAt, lastAt, lastId], [now + hourMs, undefined, tick.jobs[0]!.id])
  },

  async 'nothing is enqueued while the job of the previous tick waits or runs'(scene) {
    const { put, tick } = schedulesOf(scene.store)
    await put(hourly('a', await scene.now()), undefined)
    const first = tickOf(await storedSchedule(scene.store, 'a'))
    await tick(first)
    const unless = first.jobs[0]!.id
    const next = async () => tick(tickOf(await storedSchedule(scene.store, 'a'), { unless }))
    assert.deepEqual(await next(), { outcome: 'skipped' })
    const claim = await scene.claimOne()
    assert.deepEqual(await next(), { outcome: 'skipped' })
    const { ticked, skipped, lastId } = await storedSchedule(scene.store, 'a')
    assert.deepEqual([ticked, skipped, lastId], [1, 2, unless])

    await scene.end(claim, { kind: 'complete' })
    assert.equal((await next()).outcome, 'ticked')
    assert.equal((await scene.depth()).ready, 1)
  },

  'nothing is enqueued while the job of the previous tick waits for a signal': plainCase(
    [scheduled, steps],
    async (scene) => {
      const { put, tick } = schedulesOf(scene.store)
      await put(hourly('a', await scene.now()), undefined)
      await tick(tickOf(await storedSchedule(scene.store, 'a')))
      const claim = await scene.claimOne()
      await scene.end(claim, { kind: 'wait', signal: 'go' })
      const next = tickOf(await storedSchedule(scene.store, 'a'), { unless: claim.id })
      assert.deepEqual(await tick(next), { outcome: 'skipped' })
    },
  ),

  async 'a dead job is no reason to skip'(scene) {
    const { put, tick } = schedulesOf(scene.store)
    await put(hourly('a', await scene.now()), undefined)
    await tick(tickOf(await storedSchedule(scene.store, 'a')))
    const claim = await scene.claimOne()
    await scene.end(claim, { kind: 'bury', error: 'broken', reason: 'unrecoverable' })
    const next = tickOf(await storedSchedule(scene.store, 'a'), { unless: claim.id })
    assert.equal((await tick(next)).outcome, 'ticked')
  },

  async 'a full or draining queue takes no tick, which stays due'(scene) {
    const { put, tick } = schedulesOf(scene.store)
    await scene.openQueue({ maxPending: 1 })
    await scene.add('other')
    await put(hourly('a', await scene.now()), undefined)
    const before = await storedSchedule(scene.store, 'a')
    assert.deepEqual(await tick(tickOf(before)), { outcome: 'full' })
    await scene.records.drain('mail')
    assert.deepEqual(await tick(tickOf(before)), { outcome: 'draining' })
    assert.deepEqual(await storedSchedule(scene.store, 'a'), before)
    await scene.records.resume('mail')
    await scene.claimOne()
    assert.equal((await tick(tickOf(before))).outcome, 'ticked')
  },

  async 'schedules of a sharded queue each tick in their shard'(scene) {
    const { put, tick, due } = schedulesOf(scene.store)
    await scene.openQueue({ name: 'spread', shards: 3 })
    const now = await scene.now()
    for (const name of ['a', 'b', 'c', 'd'])
      await put(hourly(name, now, { definition: { queue: 'spread' } }), undefined)
    for (let round = 1; round <= 3; round += 1) {
      const found = (await due('worker', hourMs, 10)).due
      assert.deepEqual(
        found.map(({ definition: { name } }) => name),
        ['a', 'b', 'c', 'd'],
      )
      for (const schedule of found)
        assert.deepEqual(await tick(tickOf(schedule)), { outcome: 'ticked', enqueued: ['added'] })
      assert.equal((await scene.depth('spread')).ready, 4 * round)
      await scene.advance(hourMs)
    }
  },

  async 'the job of a tick wakes a waiter'(scene) {
    await schedulesOf(scene.store).put(hourly('a', await scene.now()), undefined)
    const schedule = await storedSchedule(scene.store, 'a')
    const waiting = scene.store.wait(['mail'], 5_000, new AbortController().signal)
    await schedulesOf(await scene.harness.open()).tick(tickOf(schedule))
    assert.deepEqual(await waiting, ['mail'])
  },

  'an ordered job takes the payload of each tick, and its id is the reason to skip': orderedCase(
    [scheduled, ordered],
    async (scene) => {
      const { put, tick } = schedulesOf(scene.store)
      const job = { id: 'o-1', task: 'sync', payload: '{"n":1}', priority: 0, rememberMs: 0 }
      await put(hourly('a', await scene.now(), { definition: { queue: scene.queue, job } }), undefined)
      const schedule = await storedSchedule(scene.store, 'a')
      assert.equal(schedule.shards, 1)
      assert.deepEqual(await tick(tickOf(schedule)), { outcome: 'ticked', enqueued: ['added'] })
      const second = tickOf(await storedSchedule(scene.store, 'a'))
      assert.deepEqual(await tick(second), { outcome: 'ticked', enqueued: ['merged'] })
      const third = tickOf(await storedSchedule(scene.store, 'a'), { unless: 'o-1' })
      assert.deepEqual(await tick(third), { outcome: 'skipped' })
    },
  ),

  'a schedule of an ordered job keeps ticking if its queue moves to other shards': orderedCase(
    [scheduled, ordered],
    async (scene) => {
      const { put, tick, due, list } = schedulesOf(scene.store)
      const now = await scene.now()
      for (const name of ['a', 'b', 'c', 'd']) {
        const job = { id: `order-${name}`, task: 'sync', payload: '{}', priority: 0, rememberMs: 0 }
        await put(hourly(name, now, { definition: { queue: scene.queue, job } }), undefined)
      }
      const first = (await due('worker', hourMs, 10)).due
      for (const schedule of first) assert.equal((await tick(tickOf(schedule))).outcome, 'ticked')
      for (let step = await scene.records.reshard(scene.queue, 7); step.more; )
        step = await scene.records.reshard(scene.queue, 7)
      await scene.advance(hourMs)

      const other = schedulesOf(await scene.harness.open())
      const second = (await other.due('worker', hourMs, 10)).due

      assert.deepEqual(
        second.map(({ definition: { name }, ticked }) => `${name} ${ticked}`),
        ['a 1', 'b 1', 'c 1', 'd 1'],
      )
      for (const schedule of second) assert.equal((await other.tick(tickOf(schedule))).outcome, 'ticked')
      for (const schedule of second) assert.equal((await tick(tickOf(schedule))).outcome, 'lost')
      assert.deepEqual(
        (await list(undefined, 10)).map(({ ticked, nextAt }) => [ticked, nextAt]),
        first.map(() => [2, now + 2 * hourMs]),
      )
    },
  ),
})
