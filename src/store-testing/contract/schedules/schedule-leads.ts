/** Contract cases: of all workers that look for due schedules one leads, and receives the due ones. */

import assert from 'node:assert/strict'
import { plainConcern, scheduled } from '../scenes/contract-case.js'
import { soon } from '../scenes/scene.js'
import { hourly, hourMs, schedulesOf, storedSchedule, tickOf } from '../scenes/schedule-words.js'

const leadMs = 30_000

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
