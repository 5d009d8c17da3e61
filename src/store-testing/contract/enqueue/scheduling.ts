/** Contract cases: schedules, which are written, read, listed and removed, and the worker that leads them. */

import assert from 'node:assert/strict'
import { UnknownQueueError } from '../../../core/errors.js'
import { plainConcern, scheduled } from '../scenes/contract-case.js'
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

  async 'a schedule is written only if the expected revision is stored'(scene) {
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

  async 'a writer that read a schedule before it ticked does not set it back'(scene) {
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

  async 'a repeated change is answered as done'(scene) {
    const { put } = schedulesOf(scene.store)
    const change = hourly('a', await scene.now())
    assert.equal(await put(change, undefined), true)
    assert.equal(await put(change, undefined), true)
  },

  async 'a change keeps the ticks of the schedule so far, and its creation time'(scene) {
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

  async 'a schedule for a missing queue is refused'(scene) {
    const change = hourly('a', 0, { definition: { queue: 'nowhere' } })
    await assert.rejects(schedulesOf(scene.store).put(change, undefined), UnknownQueueError)
    assert.equal(await schedulesOf(scene.store).get('a'), undefined)
  },

  async 'schedules are listed by the bytes of their names, page by page'(scene) {
    const { put, list } = schedulesOf(scene.store)
    for (const name of ['b', 'a', 'C', 'a.b', 'a-1']) await put(hourly(name, 0), undefined)
    const first = await list(undefined, 3)
    const names = (page: typeof first) => page.map(({ definition: { name } }) => name)
    assert.deepEqual(names(first), ['C', 'a', 'a-1'])
    assert.deepEqual(names(await list('a-1', 3)), ['a.b', 'b'])
    assert.deepEqual(await list('b', 3), [])
  },

  async 'a schedule is removed once, and only with the named revision'(scene) {
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

  async 'a schedule that changes its queue ticks there, and keeps its history'(scene) {
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

const leadMs = 30_000

/** Of all workers that look for due schedules one leads, and receives the due ones. */
export const scheduleLeads = plainConcern('leads of schedules', [scheduled], {
  async 'due schedules are returned with their times, the earliest first, and when the next is due'(scene) {
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

  async 'one of several leads, until it has not asked for its time'(scene) {
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

  async 'a lead that resigns is replaced at once, and only its own lead ends'(scene) {
    const { due, resign } = schedulesOf(scene.store)
    await due('worker-1', leadMs, 10)
    await resign('worker-2')
    assert.equal((await due('worker-2', leadMs, 10)).isLead, false)
    await resign('worker-1')
    assert.equal((await due('worker-2', leadMs, 10)).isLead, true)
  },

  async 'a dead lead is replaced in time even if the clock was set back'(scene) {
    const { due } = schedulesOf(scene.store)
    await due('worker-1', leadMs, 10)
    await scene.harness.step(-10 * hourMs)
    assert.equal((await due('worker-2', leadMs, 10)).isLead, false)
    await scene.advance(leadMs)
    assert.equal((await due('worker-2', leadMs, 10)).isLead, true)
  },

  async 'a waiter for changes wakes when a schedule is written elsewhere'(scene) {
    const other = schedulesOf(await scene.harness.open())
    const { put, changed } = schedulesOf(scene.store)
    await put(hourly('a', 0), undefined)
    const woken = changed(60_000, new AbortController().signal)
    await other.put(hourly('b', 0), undefined)
    await soon(woken, 7_000)
  },

  async 'a waiter for changes wakes when its time is over, or when it is called away'(scene) {
    const { changed } = schedulesOf(scene.store)
    await soon(changed(10, new AbortController().signal))
    const calling = new AbortController()
    const called = changed(60_000, calling.signal)
    calling.abort()
    await soon(called, 2_000)
  },
})
