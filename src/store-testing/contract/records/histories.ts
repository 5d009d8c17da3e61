/** Contract cases: the history of queues, added up over all processes. */

import assert from 'node:assert/strict'
import type { HistoryCounts, HistoryPoint, HistoryStep } from '../../../stores/contract/history.js'
import { historyKeptMs, slotAt, stepMs } from '../../../stores/rules/history-slots.js'
import { history, plainCase, plainConcern, records } from '../scenes/contract-case.js'
import type { Scene } from '../scenes/scene.js'

const none: HistoryCounts = {
  ...{ enqueued: 0, started: 0, completed: 0, failed: 0, dead: 0, crashed: 0, cancelled: 0, runMs: 0 },
  runTimes: [0, 0, 0, 0, 0, 0, 0],
}
const some: HistoryCounts = {
  ...{ enqueued: 7, started: 6, completed: 3, failed: 2, dead: 1, crashed: 4, cancelled: 5, runMs: 86_400_001 },
  runTimes: [1, 0, 2, 0, 0, 3, 4],
}

/** Adds counts of the scene's queue, taken `agoMs` ago. */
function add(scene: Scene, counts: Partial<HistoryCounts>, agoMs = 0, queue = scene.queue): Promise<void> {
  return scene.history.add([{ queue, agoMs, counts: { ...none, ...counts } }])
}

/** All existing points. */
async function points(scene: Scene, step: HistoryStep, queue = scene.queue): Promise<HistoryPoint[]> {
  const [found] = await scene.history.read([queue], await spanOf(scene, step, historyKeptMs[step] * 2))
  assert.ok(found, 'read answers for each queue')
  return found
}

async function spanOf(scene: Scene, step: HistoryStep, ms: number) {
  const now = await scene.now()
  return { step, fromAt: now - ms, toAt: now + stepMs[step] }
}

export const histories = plainConcern('history', [history], {
  async 'counts are added to the minute and to the hour of the clock of the store at once'(scene) {
    const now = await scene.now()
    await add(scene, some)
    assert.deepEqual(await points(scene, 'minute'), [{ at: slotAt('minute', now), ...some }])
    assert.deepEqual(await points(scene, 'hour'), [{ at: slotAt('hour', now), ...some }])
  },

  async 'counts of several processes are added up'(scene) {
    const other = (await scene.harness.open()).history!
    const entry = { queue: scene.queue, agoMs: 0, counts: some }
    await Promise.all([scene.history.add([entry]), other.add([entry]), other.add([entry, entry])])
    const [point] = await points(scene, 'minute')
    const fourfold = (counts: HistoryCounts) => ({
      ...Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, 4 * count])),
      runTimes: counts.runTimes.map((count) => 4 * count),
    })
    assert.deepEqual(point, { at: point!.at, ...fourfold(some) })
    assert.deepEqual(await points(scene, 'hour'), [{ ...point, at: slotAt('hour', point!.at) }])
  },

  async 'late counts are added to their own minute and hour'(scene) {
    const now = await scene.now()
    await add(scene, { completed: 1 })
    await add(scene, { completed: 10 }, 61_000)
    await add(scene, { completed: 100 }, 3 * stepMs.hour)
    await add(scene, { completed: 1_000 }, 61_000)
    const ago = (step: HistoryStep, ms: number) => slotAt(step, now - ms)
    const told = (found: HistoryPoint[]) => found.map(({ at, completed }) => [at, completed])
    assert.deepEqual(told(await points(scene, 'minute')), [
      [ago('minute', 3 * stepMs.hour), 100],
      [ago('minute', 61_000), 1_010],
      [ago('minute', 0), 1],
    ])
    const hours = await points(scene, 'hour')
    assert.deepEqual(told(hours)[0], [ago('hour', 3 * stepMs.hour), 100])
    assert.equal(
      hours.reduce((sum, { completed }) => sum + completed, 0),
      1_111,
    )
  },

  async 'the latest gauges stay, and counts without gauges leave them'(scene) {
    const entry = { queue: scene.queue, agoMs: 0, counts: none }
    const latest = { lagMs: 3_600_000, waiting: 70_000, running: 0 }
    await scene.history.add([{ ...entry, gauges: { lagMs: 5, waiting: 6, running: 7 } }])
    await scene.history.add([{ ...entry, gauges: latest }])
    await add(scene, { failed: 1 })
    for (const step of ['minute', 'hour'] as const)
      assert.deepEqual(
        (await points(scene, step)).map(({ failed, gauges }) => ({ failed, gauges })),
        [{ failed: 1, gauges: latest }],
      )
  },

  async 'a span returns the points that begin in it, oldest first'(scene) {
    const minute = slotAt('minute', await scene.now())
    for (const ago of [0, 5, 3, 1, 2, 4]) await add(scene, { enqueued: ago + 1 }, ago * stepMs.minute)
    const from = async (fromAt: number, toAt: number) => {
      const [found] = await scene.history.read([scene.queue], { step: 'minute', fromAt, toAt })
      return found!.map(({ enqueued }) => enqueued)
    }
    assert.deepEqual(await from(minute - 3 * stepMs.minute, minute), [4, 3, 2])
    assert.deepEqual(await from(minute - 3 * stepMs.minute + 1, minute + 1), [3, 2, 1])
    assert.deepEqual(await from(minute + stepMs.minute, minute), [])
  },

  async 'queues are returned in order, each with its own points, and an unknown one with none'(scene) {
    await scene.history.add([
      { queue: 'b', agoMs: 0, counts: { ...none, started: 2 } },
      { queue: 'a', agoMs: 0, counts: { ...none, started: 1 } },
    ])
    const told = await scene.history.read(['a', 'none', 'b', 'a'], await spanOf(scene, 'hour', stepMs.hour))
    assert.deepEqual(
      told.map((of) => of.map(({ started }) => started)),
      [[1], [], [2], [1]],
    )
  },

  async 'minutes are kept for a week, and their hours for a year'(scene) {
    await add(scene, { dead: 1 })
    await scene.advance(historyKeptMs.minute - stepMs.minute)
    await add(scene, { dead: 2 })
    assert.deepEqual(
      (await points(scene, 'minute')).map(({ dead }) => dead),
      [1, 2],
    )
    await scene.advance(2 * stepMs.minute)
    assert.deepEqual(
      (await points(scene, 'minute')).map(({ dead }) => dead),
      [2],
    )
    assert.deepEqual(
      (await points(scene, 'hour')).map(({ dead }) => dead),
      [1, 2],
    )
    await scene.advance(historyKeptMs.hour - historyKeptMs.minute + stepMs.hour)
    await add(scene, { dead: 4 })
    assert.deepEqual(
      (await points(scene, 'hour')).map(({ dead }) => dead),
      [2, 4],
    )
  },

  async 'counts that are too late for minutes go into their hour only'(scene) {
    await add(scene, { cancelled: 3 }, historyKeptMs.minute + stepMs.hour)
    await add(scene, { cancelled: 4 }, historyKeptMs.hour + stepMs.hour)
    assert.deepEqual(await points(scene, 'minute'), [])
    assert.deepEqual(
      (await points(scene, 'hour')).map(({ cancelled }) => cancelled),
      [3],
    )
  },

  async 'sums grow beyond 32 bits'(scene) {
    for (const runMs of [4_294_967_295, 4_294_967_295, 2 ** 50]) await add(scene, { runMs })
    assert.equal((await points(scene, 'hour'))[0]?.runMs, 2 * 4_294_967_295 + 2 ** 50)
  },

  'a cleared queue keeps its history': plainCase([history, records], async (scene) => {
    await scene.add('a')
    await add(scene, { enqueued: 1 })
    await scene.records.clear(scene.queue)
    assert.equal((await points(scene, 'minute')).length, 1)
  }),

  async 'a closed store adds and reads nothing'(scene) {
    const other = await scene.harness.open()
    await other.close()
    const entry = { queue: scene.queue, agoMs: 0, counts: some }
    await assert.rejects(other.history!.add([entry]), { code: 'closed' })
    await assert.rejects(other.history!.read([scene.queue], { step: 'hour', fromAt: 0, toAt: 1 }), {
      code: 'closed',
    })
    assert.deepEqual(await points(scene, 'minute'), [])
  },
})
