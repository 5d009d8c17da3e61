/** Contract cases: the registry of workers. */

import assert from 'node:assert/strict'
import type { WorkerRecord } from '../../../stores/contract/worker-registry.js'
import { plainConcern, workers } from '../scenes/contract-case.js'

const worker: WorkerRecord = {
  id: 'worker-1',
  host: 'mill-1',
  boot: 'boot-1',
  pidns: '1',
  pid: 4_711,
  ticks: 17,
  queues: ['mail', 'video'],
  concurrency: 10,
  running: 3,
  startedAt: 1_700_000_000_000,
  state: 'running',
  version: '1.2.3',
  selector: 'lag',
  tasks: 7,
  rssBytes: 123_456_789,
  loopDelayMs: 12.5,
}

export const workersRegistry = plainConcern('registry of workers', [workers], {
  async 'a worker is listed as its heartbeat describes it, with when it was seen'(scene) {
    await scene.workers.beat(worker, 10_000)

    assert.deepEqual(await scene.workers.list(), [{ ...worker, seenAt: await scene.now(), silentMs: 0 }])
  },

  async 'a record lapses ttlMs after the last heartbeat, and not a millisecond sooner'(scene) {
    await scene.workers.beat(worker, 10_000)
    await scene.advance(9_999)
    assert.equal((await scene.workers.list()).length, 1)
    await scene.advance(1)
    assert.deepEqual(await scene.workers.list(), [])
  },

  async 'a heartbeat renews the record and replaces it as a whole'(scene) {
    await scene.workers.beat(worker, 10_000)
    await scene.advance(9_000)
    await scene.workers.beat({ ...worker, running: 0, queues: ['mail'] }, 10_000)
    await scene.advance(9_000)

    const [listed] = await scene.workers.list()

    assert.deepEqual([listed?.running, listed?.queues], [0, ['mail']])
    assert.equal(listed?.seenAt, (await scene.now()) - 9_000)
    assert.equal(listed?.silentMs, 9_000)
  },

  async 'workers are listed by id, on every handle'(scene) {
    const other = await scene.harness.open()
    for (const id of ['b', 'c', 'a']) await scene.workers.beat({ ...worker, id }, 10_000)

    assert.deepEqual(
      (await other.workers!.list()).map(({ id }) => id),
      ['a', 'b', 'c'],
    )
  },

  async 'a signal is returned with every heartbeat of its worker until that is removed, the latest of several'(scene) {
    const other = (await scene.harness.open()).workers!
    assert.equal(await scene.workers.beat(worker, 10_000), undefined)
    assert.equal(await other.signal('worker-1', 'recycle'), true)
    assert.equal(await scene.workers.beat({ ...worker, running: 4 }, 10_000), 'recycle')
    assert.equal(await scene.workers.beat({ ...worker, id: 'worker-2' }, 10_000), undefined)
    assert.equal(await other.signal('worker-1', 'stop'), true)
    assert.equal(await scene.workers.beat(worker, 10_000), 'stop')
    assert.deepEqual(
      (await scene.workers.list()).map(({ id, running }) => [id, running]),
      [
        ['worker-1', 3],
        ['worker-2', 3],
      ],
    )
    await scene.workers.remove('worker-1')
    assert.equal(await scene.workers.beat(worker, 10_000), undefined)
  },

  async 'a signal to a missing or lapsed worker is ignored'(scene) {
    assert.equal(await scene.workers.signal('worker-1', 'stop'), false)
    await scene.workers.beat(worker, 10_000)
    await scene.workers.signal('worker-1', 'stop')
    await scene.advance(10_000)
    assert.equal(await scene.workers.signal('worker-1', 'stop'), false)
    assert.equal(await scene.workers.beat(worker, 10_000), undefined)
  },

  async 'a removed worker is not listed, and removing a missing one is harmless'(scene) {
    await scene.workers.beat(worker, 10_000)
    await scene.workers.remove('worker-1')
    await scene.workers.remove('worker-1')

    assert.deepEqual(await scene.workers.list(), [])
  },
})
