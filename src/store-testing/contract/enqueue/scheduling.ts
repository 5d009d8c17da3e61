/** Contract cases: schedules, which are written, read, listed and removed, their ticks, and the worker that leads them. */

import assert from 'node:assert/strict'
import { UnknownQueueError } from '../../../core/errors.js'
import { tickId } from '../../../stores/rules/schedule-tick.js'
import { ordered, orderedCase, plainConcern, scheduled } from '../scenes/contract-case.js'
import { soon } from '../scenes/scene.js'
import { hourly, hourMs, schedulesOf, storedSchedule, tickOf } from '../scenes/schedule-words.js'

export const scheduling = plainConcern('schedules', [scheduled], {
  async 'a schedule is read as it was written, on every handle'(scene) {
    const now = await scene.now()
    const job = {
      ...{ task: 'send-mail', payload: Buffer.from([0, 255, 10]), codec: 'msgpack', meta: '{"trace":"é"}' },
      ...{ priority: 3, group: 'tenant', delayMs: 5, rememberMs: 60_000 },
    }
    const rule = { cron: '0 3 * * *', timeZone: 'Europe/Zurich', fromAt: now, untilAt: now + 9 * hourMs }
    const definition = { rule, onMissed: 'all', overlap: 'skip', jitterMs: 17, declaredBy: 'shop', job }
    const change = hourly('nightly', now + hourMs, { definition })
    assert.equal(await schedulesOf(scene.store).put(change, undefined), true)

    const read = await schedulesOf(await scene.harness.open()).get('nightly')

    const { payload, ...readJob } = read!.definition.job
    assert.deepEqual(Buffer.from(payload), job.payload)
    assert.deepEqual(
      { ...read, definition: { ...read!.definition, job: { ...readJob, payload: job.payload } } },
      {
        ...{ ...change, shards: read!.shards, ticked: 0, skipped: 0, missed: 0, createdAt: now, updatedAt: now },
      },
    )
  },

  async 'one is written only where the revision that is expected is stored'(scene) {
    const { put, get } = schedulesOf(scene.store)
    const now = await scene.now()
    const at = (revision: string, nextAt = now) => ({ revision, nextAt })
    assert.equal(await put(hourly('a', now, { revision: 'r1' }), at('r0')), false)
    assert.equal(await get('a'), undefined)
    assert.equal(await put(hourly('a', now, { revision: 'r1' }), undefined), true)
    assert.equal(await put(hourly('a', now, { revision: 'r2' }), undefined), false)
    assert.equal(await put(hourly('a', now, { revision: 'r2' }), at('r0')), false)
    assert.equal((await get('a'))?.revision, 'r1')
    assert.equal(await put(hourly('a', now + 1, { revision: 'r2', paused: true }), at('r1')), true)
    const { revision, paused, nextAt } = await storedSchedule(scene.store, 'a')
    assert.deepEqual([revision, paused, nextAt], ['r2', true, now + 1])
  },

  async 'who read a schedule before it ticked does not take it back'(scene) {
    const { put, tick, due } = schedulesOf(scene.store)
    const now = await scene.now()
    await scene.store.open([{ name: 'reports', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }])
    await put(hourly('a', now), undefined)
    const read = await storedSchedule(scene.store, 'a')
    await tick(tickOf(read))
    assert.equal(await put(hourly('a', now, { revision: 'a-2' }), read), false)
    const elsewhere = hourly('a', now, { revision: 'a-2', definition: { queue: 'reports' } })
    assert.equal(await put(elsewhere, read), false)
    assert.deepEqual((await due('worker', hourMs, 10)).due, [])
    assert.equal((await storedSchedule(scene.store, 'a')).nextAt, now + hourMs)
  },

  async 'a change that is sent again is answered as done'(scene) {
    const { put } = schedulesOf(scene.store)
    const change = hourly('a', await scene.now())
    assert.equal(await put(change, undefined), true)
    assert.equal(await put(change, undefined), true)
  },

  async 'a change keeps what the schedule has ticked so far, and when it came'(scene) {
    const { put, tick, get } = schedulesOf(scene.store)
    const createdAt = await scene.now()
    await put(hourly('a', createdAt), undefined)
    const ticked = tickOf(await storedSchedule(scene.store, 'a'), { skips: 2, misses: 3 })
    assert.equal((await tick(ticked)).outcome, 'ticked')
    await scene.advance(5)
    await put(hourly('a', createdAt + 7, { revision: 'a-2', definition: { onMissed: 'all' } }), await get('a'))

    const { definition, shards: _, ...rest } = await storedSchedule(scene.store, 'a')

    assert.equal(definition.onMissed, 'all')
    assert.deepEqual(rest, {
      ...{ revision: 'a-2', paused: false, nextAt: createdAt + 7, lastAt: createdAt, lastId: ticked.jobs[0]!.id },
      ...{ ticked: 1, skipped: 2, missed: 3, createdAt, updatedAt: createdAt + 5 },
    })
  },

  async 'one for a queue that is not there is refused'(scene) {
    const change = hourly('a', 0, { definition: { queue: 'nowhere' } })
    await assert.rejects(schedulesOf(scene.store).put(change, undefined), UnknownQueueError)
    assert.equal(await schedulesOf(scene.store).get('a'), undefined)
  },

  async 'they are listed by the bytes of their names, page by page'(scene) {
    const { put, list } = schedulesOf(scene.store)
    for (const name of ['b', 'a', 'C', 'a.b', 'a-1']) await put(hourly(name, 0), undefined)
    const first = await list(undefined, 3)
    const names = (page: typeof first) => page.map(({ definition: { name } }) => name)
    assert.deepEqual(names(first), ['C', 'a', 'a-1'])
    assert.deepEqual(names(await list('a-1', 3)), ['a.b', 'b'])
    assert.deepEqual(await list('b', 3), [])
  },

  async 'one is removed once, and only with the revision that is named'(scene) {
    const { put, remove, get } = schedulesOf(scene.store)
    await put(hourly('a', 0), undefined)
    await put(hourly('b', 0), undefined)
    assert.equal(await remove('a', 'a-0'), false)
    assert.equal(await remove('a', 'a-1'), true)
    assert.equal(await remove('a'), false)
    assert.equal(await remove('b'), true)
    assert.deepEqual([await get('a'), await get('b')], [undefined, undefined])
    assert.deepEqual((await schedulesOf(scene.store).due('worker', hourMs, 10)).due, [])
  },

  async 'one that changes its queue ticks there, and keeps its history'(scene) {
    const { put, tick, due, list } = schedulesOf(scene.store)
    await scene.store.open([{ name: 'reports', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }])
    const now = await scene.now()
    await put(hourly('a', now), undefined)
    const before = tickOf(await storedSchedule(scene.store, 'a'))
    assert.equal((await tick(before)).outcome, 'ticked')
    const moved = hourly('a', now, { revision: 'a-2', definition: { queue: 'reports' } })
    assert.equal(await put(moved, await storedSchedule(scene.store, 'a')), true)

    const late = { ...before, dueAt: now + hourMs, nextAt: now + 2 * hourMs, callId: 'late' }
    assert.equal((await tick(late)).outcome, 'lost')
    const [found, ...others] = (await due('worker', hourMs, 10)).due
    assert.deepEqual([found?.definition.queue, found?.ticked, others.length], ['reports', 1, 0])
    assert.equal((await tick(tickOf(found!))).outcome, 'ticked')
    assert.equal((await scene.depth('reports')).ready, 1)
    assert.equal((await scene.depth()).ready, 1)
    assert.equal((await list(undefined, 10)).length, 1)
  },
})

/** A tick enqueues and steps, both or neither, and only once however many try. */
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

  async 'of all who tick the same instant one does'(scene) {
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

  async 'a tick by an old idea of the schedule is lost'(scene) {
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

  async 'a tick without jobs only steps, and the last has no next'(scene) {
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

  async 'a job out of turn leaves the next tick where it is'(scene) {
    const now = await scene.now()
    await schedulesOf(scene.store).put(hourly('a', now + hourMs), undefined)
    const { lastAt: _, ...tick } = tickOf(await storedSchedule(scene.store, 'a'), { nextAt: now + hourMs })

    assert.equal((await schedulesOf(scene.store).tick(tick)).outcome, 'ticked')

    const { nextAt, lastAt, lastId } = await storedSchedule(scene.store, 'a')
    assert.deepEqual([nextAt, lastAt, lastId], [now + hourMs, undefined, tick.jobs[0]!.id])
  },

  async 'nothing is enqueued while the job of the tick before waits or runs'(scene) {
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

  async 'a dead job is no reason to skip'(scene) {
    const { put, tick } = schedulesOf(scene.store)
    await put(hourly('a', await scene.now()), undefined)
    await tick(tickOf(await storedSchedule(scene.store, 'a')))
    const claim = await scene.claimOne()
    await scene.end(claim, { kind: 'bury', error: 'broken', reason: 'unrecoverable' })
    const next = tickOf(await storedSchedule(scene.store, 'a'), { unless: claim.id })
    assert.equal((await tick(next)).outcome, 'ticked')
  },

  async 'a full queue and one that drains take no tick, which stays due'(scene) {
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

  async 'schedules of a queue that is spread each tick where they lie'(scene) {
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

  async 'the job of a tick wakes one who waits'(scene) {
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

  'a schedule of an ordered job ticks on where its queue lies in other shards': orderedCase(
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

const leadMs = 30_000

/** Of all workers that look for due schedules one leads, and receives the due ones. */
export const scheduleLeads = plainConcern('leads of schedules', [scheduled], {
  async 'what is due is told with its time, the earliest first, and when the next is'(scene) {
    const { put, due } = schedulesOf(scene.store)
    const now = await scene.now()
    for (const [name, inMs] of Object.entries({ c: 0, b: -5, d: 1, e: 9, a: 0 }))
      await put(hourly(name, now + inMs), undefined)
    await put(hourly('never', undefined), undefined)
    const told = async (limit: number) => {
      const found = await due('worker', leadMs, limit)
      return [found.due.map(({ definition: { name } }) => name), found.nextAt]
    }
    assert.deepEqual(await told(10), [['b', 'a', 'c'], now + 1])
    assert.deepEqual(await told(2), [['b', 'a'], now])
    await scene.advance(1)
    assert.deepEqual(await told(10), [['b', 'a', 'c', 'd'], now + 9])
  },

  async 'a schedule that has ticked is due at its next instant'(scene) {
    const { put, due, tick } = schedulesOf(scene.store)
    const now = await scene.now()
    await put(hourly('a', now), undefined)
    await tick(tickOf(await storedSchedule(scene.store, 'a')))
    const found = await due('worker', leadMs, 10)
    assert.deepEqual([found.due, found.nextAt], [[], now + hourMs])
    await scene.advance(hourMs - 1)
    assert.equal((await due('worker', leadMs, 10)).due.length, 0)
    await scene.advance(1)
    assert.equal((await due('worker', leadMs, 10)).due.length, 1)
  },

  async 'one of many leads, until it has not asked for its time'(scene) {
    const { put, due } = schedulesOf(scene.store)
    const other = schedulesOf(await scene.harness.open())
    const now = await scene.now()
    await put(hourly('a', now), undefined)
    const first = await due('worker-1', leadMs, 10)
    assert.deepEqual([first.now, first.isLead, first.leadMs, first.due.length], [now, true, leadMs, 1])
    const { origin, ...second } = await other.due('worker-2', leadMs, 10)
    assert.deepEqual(second, { now, isLead: false, leadMs, due: [] })
    assert.equal(origin, first.origin)
    await scene.advance(leadMs - 1)
    assert.equal((await due('worker-1', leadMs, 10)).isLead, true)
    await scene.advance(leadMs - 1)
    assert.equal((await other.due('worker-2', leadMs, 10)).leadMs, 1)
    await scene.advance(1)
    assert.equal((await other.due('worker-2', leadMs, 10)).isLead, true)
    assert.equal((await due('worker-1', leadMs, 10)).isLead, false)
  },

  async 'a lead that resigns is followed at once, and only its own lead'(scene) {
    const { due, resign } = schedulesOf(scene.store)
    await due('worker-1', leadMs, 10)
    await resign('worker-2')
    assert.equal((await due('worker-2', leadMs, 10)).isLead, false)
    await resign('worker-1')
    assert.equal((await due('worker-2', leadMs, 10)).isLead, true)
  },

  async 'a dead lead is followed in its time though the clock was set back'(scene) {
    const { due } = schedulesOf(scene.store)
    await due('worker-1', leadMs, 10)
    await scene.harness.step(-10 * hourMs)
    assert.equal((await due('worker-2', leadMs, 10)).isLead, false)
    await scene.advance(leadMs)
    assert.equal((await due('worker-2', leadMs, 10)).isLead, true)
  },

  async 'whoever waits for a change wakes when a schedule is written elsewhere'(scene) {
    const other = schedulesOf(await scene.harness.open())
    const { put, changed } = schedulesOf(scene.store)
    await put(hourly('a', 0), undefined)
    const woken = changed(60_000, new AbortController().signal)
    await other.put(hourly('b', 0), undefined)
    await soon(woken, 7_000)
  },

  async 'whoever waits for a change wakes when the time is over, or is called away'(scene) {
    const { changed } = schedulesOf(scene.store)
    await soon(changed(10, new AbortController().signal))
    const calling = new AbortController()
    const called = changed(60_000, calling.signal)
    calling.abort()
    await soon(called, 2_000)
  },
})
