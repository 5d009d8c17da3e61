/**
 * Contract cases: the claims that a worker holds, their end when the worker is gone, and their adoption, by which another
 * worker takes over the running jobs of a dead one.
 */

import assert from 'node:assert/strict'
import { UnknownQueueError } from '../../../core/errors.js'
import type { Claim } from '../../../stores/contract/claim.js'
import type { ClaimKey } from '../../../stores/contract/settle.js'
import type { WorkerRecord } from '../../../stores/contract/worker-registry.js'
import { orderedCase, plainCase, plainConcern, records, workers } from '../scenes/contract-case.js'
import type { Scene } from '../scenes/scene.js'

const place = { host: 'mill-1', boot: 'boot-1', pidns: '1', pid: 4_711, ticks: 17 }

export const holding = plainConcern('held claims', [workers], {
  async 'a held claim is listed with what its heartbeats reported'(scene) {
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

  async 'a claim without heartbeats is listed without run details'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ worker: 'w1' })

    assert.deepEqual(await scene.workers.held('w1'), [{ ...keyOf(claim), task: 'send-mail', alone: false }])
  },

  async 'a worker holds its claimed and unsettled jobs, oldest first, on every handle'(scene) {
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

  async 'the claims of a worker in all queues are listed'(scene) {
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

  async 'all held claims are listed, however many they are, the oldest first'(scene) {
    for (let i = 0; i < 5; i++) {
      await scene.add(...Array.from({ length: 210 }, (_, n) => `job-${i}-${n}`))
      await scene.claim({ worker: 'w1', limit: 210 })
    }

    const held = await scene.workers.held('w1')

    assert.deepEqual([held.length, held[0]?.id, held.at(-1)?.id], [1_050, 'job-0-0', 'job-4-209'])
  },

  async 'a claim of a gone worker ends at once as a crash, and is lost to it'(scene) {
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

  async 'a claim alone of a gone worker is charged, and buried after the last allowed crash'(scene) {
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

  async 'the death of a worker becomes the last error of its jobs, for their next claim and in the morgue'(scene) {
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

  async 'crashes of a gone worker are reported in the order of the named claims'(scene) {
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

  async 'superseded claims, and those of other workers, are skipped unchanged'(scene) {
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

  async 'a repeated call changes nothing, and neither does naming a claim twice'(scene) {
    await scene.add('a')
    const claim = keyOf(await scene.claimOne({ worker: 'w1' }))
    assert.equal((await scene.workers.gone([claim, claim], 'w1')).crashed.length, 1)
    const before = await scene.harness.dump()

    assert.deepEqual(await scene.workers.gone([claim], 'w1'), { crashed: [], buried: [] })

    assert.deepEqual(await scene.harness.dump(), before)
  },

  async 'claims that are not named stay, and so does the record of the worker until it holds nothing'(scene) {
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

  async 'the record of a gone worker that holds nothing is deleted, even if no claim is named'(scene) {
    await scene.workers.beat(record('w1'), 60_000)
    await scene.workers.gone([], 'w1')
    await scene.workers.gone([], 'never')

    assert.deepEqual(await listed(scene), [])
  },

  'a job with a requested cancellation ends with its worker': plainCase([workers, records], async (scene) => {
    await scene.add('a')
    const claim = await scene.claimOne({ worker: 'w1' })
    await scene.records.cancel(scene.queue, { ids: ['a'] }, 'stop')

    const { crashed } = await scene.workers.gone([keyOf(claim)], 'w1')

    assert.equal(crashed.length, 1)
    assert.deepEqual(await scene.states(), [])
  }),

  async 'an unknown queue is refused before anything changes'(scene) {
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

export const adopting = plainConcern('adoption', [workers], {
  async 'an adopted claim is held by its adopter, with the same fence, lease and heartbeats'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ worker: 'dead', alone: true })
    const startedAt = await scene.now()
    const process = { host: 'mill-1', boot: 'boot-1', pidns: '7', pid: 4_711, ticks: 17 }
    await scene.extend(claim, { beat: { startedMs: 0, ...process, progress: { fraction: 0.5 } } })
    await scene.advance(10_000)
    const before = await scene.job('a')

    assert.equal(await scene.workers.adopt(claim, 'dead', 'heir'), true)
    assert.deepEqual(await scene.workers.held('dead'), [])
    const { queue, id, fence } = claim
    assert.deepEqual(await scene.workers.held('heir'), [
      { queue, id, fence, task: 'send-mail', alone: true, startedAt, ...process, progress: { fraction: 0.5 } },
    ])
    assert.deepEqual(await scene.job('a'), { ...before, worker: 'heir' })
  },

  async 'if several adopt a claim, one succeeds'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ worker: 'dead' })
    const heirs = ['heir-1', 'heir-2', 'heir-3']
    const other = await scene.harness.open()
    const told = await Promise.all(
      heirs.map((heir, i) => (i % 2 === 0 ? scene.store : other).workers!.adopt(claim, 'dead', heir)),
    )

    assert.equal(told.filter(Boolean).length, 1)
    assert.equal((await scene.workers.held(heirs[told.indexOf(true)]!)).length, 1)
  },

  async 'nobody can adopt from a worker that does not hold the claim, nor a settled or superseded claim'(scene) {
    await scene.add('a', 'b')
    const a = await scene.claimOne({ worker: 'dead', leaseMs: 1_000 })
    const b = await scene.claimOne({ worker: 'dead' })
    assert.equal(await scene.workers.adopt(a, 'somebody', 'heir'), false)
    await scene.end(b, { kind: 'complete' })
    assert.equal(await scene.workers.adopt(b, 'dead', 'heir'), false)
    await scene.advance(1_000)
    await scene.claimOne({ worker: 'dead', alone: true })

    assert.equal(await scene.workers.adopt(a, 'dead', 'heir'), false)
    assert.deepEqual(await scene.workers.held('heir'), [])
  },

  async 'the runner keeps its job when another worker adopts the claim'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ worker: 'dead', leaseMs: 1_000 })
    await scene.workers.adopt(claim, 'dead', 'heir')
    assert.equal(await scene.extend(claim, { leaseMs: 30_000 }), 'ok')
    await scene.advance(20_000)

    await scene.end(claim, { kind: 'complete' })
  },

  async 'an adopted claim does not end with its earlier worker, but with the new one'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ worker: 'dead' })
    await scene.workers.adopt(claim, 'dead', 'heir')
    assert.deepEqual((await scene.workers.gone([claim], 'dead')).crashed, [])

    const { crashed } = await scene.workers.gone([claim], 'heir')
    assert.deepEqual(
      crashed.map(({ id, worker }) => [id, worker]),
      [['a', 'heir']],
    )
  },

  'a lease that ended without recovery can be adopted too, and a cancelled job stays cancelled': plainCase(
    [workers, records],
    async (scene) => {
      await scene.add('a')
      const claim = await scene.claimOne({ worker: 'dead', leaseMs: 1_000 })
      await scene.records.cancel(scene.queue, { ids: ['a'] })
      await scene.advance(5_000)

      assert.equal(await scene.workers.adopt(claim, 'dead', 'heir'), true)
      assert.equal(await scene.extend(claim), 'cancel')
    },
  ),

  'claims of an ordered queue can be adopted too': orderedCase([workers], async (scene) => {
    await scene.push('a', 'v1')
    const claim = await scene.claimOne({ worker: 'dead' })

    assert.equal(await scene.workers.adopt(claim, 'dead', 'heir'), true)
    assert.equal((await scene.live('a')).worker, 'heir')
    await scene.end(claim, { kind: 'complete' })
  }),

  async 'a claim of a missing queue is refused'(scene) {
    const claim = { queue: 'nowhere', id: 'a', fence: 1 }
    await assert.rejects(scene.workers.adopt(claim, 'dead', 'heir'), UnknownQueueError)
  },
})
