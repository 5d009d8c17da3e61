/** Contract cases: the claims that a worker holds, and their end when the worker is gone. */

import assert from 'node:assert/strict'
import { UnknownQueueError } from '../../../core/errors.js'
import type { Claim } from '../../../stores/contract/claim.js'
import type { ClaimKey } from '../../../stores/contract/settle.js'
import type { WorkerRecord } from '../../../stores/contract/worker-registry.js'
import { plainCase, plainConcern, records, workers } from '../scenes/contract-case.js'
import type { Scene } from '../scenes/scene.js'

const place = { host: 'mill-1', boot: 'boot-1', pidns: '1', pid: 4_711, ticks: 17 }

export const holding = plainConcern('held claims', [workers], {
  async 'a held claim is told with what its beats said'(scene) {
    await scene.add({ id: 'a', task: 'resize' })
    const claim = await scene.claimOne({ worker: 'w1', alone: true })
    const startedAt = await scene.now()
    await scene.extend(claim, {
      beat: { startedMs: 0, ...place, progress: { fraction: 0.5, note: '½' } },
    })

    assert.deepEqual(await scene.workers.held('w1'), [
      {
        ...keyOf(claim),
        task: 'resize',
        alone: true,
        startedAt,
        ...place,
        progress: { fraction: 0.5, note: '½' },
      },
    ])
  },

  async 'of a claim that never beat only what is known is told'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ worker: 'w1' })

    assert.deepEqual(await scene.workers.held('w1'), [{ ...keyOf(claim), task: 'send-mail', alone: false }])
  },

  async 'a worker holds what it claimed and has not settled, oldest first, on every handle'(scene) {
    const other = await scene.harness.open()
    await scene.add('a', 'b', 'c', 'd', 'e')
    await scene.claim({ worker: 'w2', limit: 1 })
    const { claims } = await scene.claim({ worker: 'w1', limit: 2 })
    await scene.claim({ worker: 'w1', limit: 2 })
    await scene.end(claims[0]!, { kind: 'complete' })
    await scene.extend(claims[1]!, { leaseMs: 90_000 })

    const held = await other.workers!.held('w1')

    assert.deepEqual(
      held.map(({ id }) => id),
      ['c', 'd', 'e'],
    )
    assert.deepEqual(await scene.workers.held('nobody'), [])
  },

  async 'a worker’s claims in all queues are told'(scene) {
    await scene.openQueue({ name: 'other' })
    await scene.add('a')
    await scene.enqueue(['b'], { queue: 'other' })
    await scene.claimOne({ worker: 'w1' })
    await scene.claimOne({ worker: 'w1', queue: 'other' })

    assert.deepEqual(
      (await scene.workers.held('w1')).map(({ queue, id }) => [queue, id]),
      [
        [scene.queue, 'a'],
        ['other', 'b'],
      ],
    )
  },

  async 'a claim is held after its lease ended, until somebody finds that'(scene) {
    await scene.add('a')
    await scene.claimOne({ worker: 'w1', leaseMs: 1_000 })
    await scene.advance(60_000)
    assert.equal((await scene.workers.held('w1')).length, 1)
    await scene.claim({ limit: 0 })

    assert.deepEqual(await scene.workers.held('w1'), [])
  },

  async 'at most 1,000 held claims are told, the oldest'(scene) {
    for (let i = 0; i < 5; i++) {
      await scene.add(...Array.from({ length: 210 }, (_, n) => `job-${i}-${n}`))
      await scene.claim({ worker: 'w1', limit: 210 })
    }

    const held = await scene.workers.held('w1')

    assert.deepEqual([held.length, held[0]?.id, held[999]?.id], [1_000, 'job-0-0', 'job-4-159'])
  },

  async 'a gone worker’s claim ends at once as a crash, and is lost to it'(scene) {
    await scene.add({ id: 'a', task: 'resize' })
    const claim = await scene.claimOne({ worker: 'w1' })
    await scene.extend(claim, { beat: { startedMs: 0, host: 'h', pid: 1 } })

    assert.deepEqual(await scene.workers.gone([keyOf(claim)], 'w1'), {
      crashed: [{ queue: scene.queue, id: 'a', task: 'resize', worker: 'w1', charged: false, crashes: 0 }],
      buried: [],
    })

    const { state, suspect, worker, startedAt } = await scene.job('a')
    assert.deepEqual([state, suspect, worker, startedAt], ['ready', true, null, null])
    assert.equal((await scene.depth()).crashed, 1)
    assert.equal(await scene.settle(claim, { kind: 'complete' }), 'lost')
    assert.equal(await scene.extend(claim), 'lost')
    assert.deepEqual((await scene.claim({ worker: 'w2', alone: true })).crashed, [])
  },

  async 'a claim alone of a gone worker is charged, and buried when it was the last crash allowed'(scene) {
    await scene.openQueue({ maxCrashes: 2 })
    await scene.add({ id: 'a', task: 'resize' })
    const first = await scene.claimOne({ worker: 'w1', alone: true })
    const { crashed, buried } = await scene.workers.gone([keyOf(first)], 'w1')
    assert.deepEqual([crashed[0]?.charged, crashed[0]?.crashes, buried], [true, 1, []])
    const second = await scene.claimOne({ worker: 'w1', alone: true })

    const last = await scene.workers.gone([keyOf(second)], 'w1')

    const { fence } = second
    assert.deepEqual(last.buried, [{ queue: scene.queue, id: 'a', task: 'resize', reason: 'crashed', fence }])
    assert.deepEqual([last.crashed[0]?.crashes, last.crashed[0]?.charged], [2, true])
    const { state, reason, finishedAt } = await scene.job('a')
    assert.deepEqual([state, reason, finishedAt], ['dead', 'crashed', await scene.now()])
    assert.deepEqual((await scene.claim()).buried, [])
  },

  async 'how a gone worker died becomes the last error of its jobs, for their next claim and in the morgue'(scene) {
    await scene.openQueue({ maxCrashes: 1 })
    await scene.add('a')
    const died = 'ProcessDiedError: the worker process (7) exited with code 134.'
    await scene.workers.gone([keyOf(await scene.claimOne({ worker: 'w1' }))], 'w1', died)
    assert.equal((await scene.job('a')).error, died)
    const next = await scene.claimOne({ worker: 'w1', alone: true })
    assert.equal(next.error, died)

    await scene.workers.gone([keyOf(next)], 'w1', 'ProcessDiedError: the worker process (8) was killed by SIGSEGV.')

    const { state, error } = await scene.job('a')
    assert.deepEqual([state, error?.endsWith('(8) was killed by SIGSEGV.')], ['dead', true])
  },

  async 'crashes of a gone worker are told in the order of the claims that were named'(scene) {
    await scene.openQueue({ name: 'other' })
    await scene.add('a', 'b')
    await scene.enqueue(['c'], { queue: 'other' })
    const { claims } = await scene.claim({ worker: 'w1' })
    const c = await scene.claimOne({ worker: 'w1', queue: 'other' })

    const { crashed } = await scene.workers.gone([claims[1]!, c, claims[0]!].map(keyOf), 'w1')

    assert.deepEqual(
      crashed.map(({ id }) => id),
      ['b', 'c', 'a'],
    )
  },

  async 'claims that are not current, or another worker’s, are passed over and change nothing'(scene) {
    await scene.add('done', 'taken', 'mine', 'waiting')
    const done = await scene.claimOne({ worker: 'w1' })
    await scene.end(done, { kind: 'complete', result: { payload: '1' } })
    const taken = await scene.claimOne({ worker: 'w1' })
    await scene.end(taken, { kind: 'release', delayMs: 0 })
    await scene.claimOne({ worker: 'w1' })
    const mine = await scene.claimOne({ worker: 'w2' })
    const before = await scene.harness.dump()
    const others = [
      done,
      taken,
      mine,
      { ...mine, fence: mine.fence + 1 },
      { ...mine, id: 'never' },
      { ...mine, id: 'waiting' },
    ]

    assert.deepEqual(await scene.workers.gone(others.map(keyOf), 'w1'), { crashed: [], buried: [] })

    assert.deepEqual(await scene.harness.dump(), before)
  },

  async 'saying it again changes nothing, and so does naming a claim twice'(scene) {
    await scene.add('a')
    const claim = keyOf(await scene.claimOne({ worker: 'w1' }))
    assert.equal((await scene.workers.gone([claim, claim], 'w1')).crashed.length, 1)
    const before = await scene.harness.dump()

    assert.deepEqual(await scene.workers.gone([claim], 'w1'), { crashed: [], buried: [] })

    assert.deepEqual(await scene.harness.dump(), before)
  },

  async 'claims that are not named stay, and so does the worker’s record until it holds nothing'(scene) {
    await scene.workers.beat(record('w1'), 60_000)
    await scene.workers.beat(record('w2'), 60_000)
    await scene.add('a', 'b')
    const { claims } = await scene.claim({ worker: 'w1' })
    await scene.workers.gone([keyOf(claims[0]!)], 'w1')
    assert.deepEqual(await listed(scene), ['w1', 'w2'])
    assert.equal((await scene.job('b')).state, 'running')

    await scene.workers.gone([keyOf(claims[1]!)], 'w1')

    assert.deepEqual(await listed(scene), ['w2'])
  },

  async 'the record of a gone worker that holds nothing goes, be no claim named'(scene) {
    await scene.workers.beat(record('w1'), 60_000)
    await scene.workers.gone([], 'w1')
    await scene.workers.gone([], 'never')

    assert.deepEqual(await listed(scene), [])
  },

  'a job whose cancellation was asked for leaves with its worker': plainCase([workers, records], async (scene) => {
    await scene.add('a')
    const claim = await scene.claimOne({ worker: 'w1' })
    await scene.records.cancel(scene.queue, { ids: ['a'] }, 'stop')

    const { crashed } = await scene.workers.gone([keyOf(claim)], 'w1')

    assert.equal(crashed.length, 1)
    assert.deepEqual(await scene.states(), [])
  }),

  async 'an unknown queue is refused before anything has changed'(scene) {
    await scene.workers.beat(record('w1'), 60_000)
    await scene.add('a')
    const claim = keyOf(await scene.claimOne({ worker: 'w1' }))
    const before = await scene.harness.dump()

    await assert.rejects(scene.workers.gone([claim, { ...claim, queue: 'unknown' }], 'w1'), UnknownQueueError)

    assert.deepEqual(await scene.harness.dump(), before)
    assert.deepEqual(await listed(scene), ['w1'])
  },
})

function keyOf({ queue, id, fence }: Claim | ClaimKey): ClaimKey {
  return { queue, id, fence }
}

async function listed(scene: Scene): Promise<string[]> {
  return (await scene.workers.list()).map(({ id }) => id)
}

function record(id: string): WorkerRecord {
  return { id, ...place, queues: ['mail'], concurrency: 10, running: 0, startedAt: 1_700_000_000_000 }
}
