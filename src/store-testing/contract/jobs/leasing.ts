/** Contract cases: leases, renewed and ended. */

import assert from 'node:assert/strict'
import type { Store } from '../../../stores/contract/store.js'
import { auditBreaches } from '../../harness/store-audit.js'
import { fenced, plainCase, plainConcern, records, tellsCrashes } from '../scenes/contract-case.js'

export const leasing = plainConcern('leasing', [], {
  async 'a lease holds for its whole time and not a millisecond longer'(scene) {
    await scene.add('a')
    await scene.claimOne({ leaseMs: 5_000 })

    await scene.advance(4_999)
    assert.deepEqual(await scene.claimIds({ alone: true }), [])
    await scene.advance(1)
    assert.deepEqual(await scene.claimIds({ alone: true }), ['a'])
  },

  async 'a settle is accepted after its lease ended if nobody else has the job'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ leaseMs: 1_000 })
    await scene.advance(60_000)

    assert.equal(await scene.settle(claim, { kind: 'complete' }), 'ok')
    assert.deepEqual((await scene.claim({ alone: true })).claims, [])
    assert.equal((await scene.depth()).crashed, 0)
  },

  'a lease that ended may be renewed if nobody else has the job': plainCase([fenced], async (scene) => {
    await scene.add('a')
    const claim = await scene.claimOne({ leaseMs: 1_000 })
    await scene.advance(5_000)

    assert.equal(await scene.extend(claim, { leaseMs: 1_000 }), 'ok')
    await scene.advance(999)
    assert.deepEqual(await scene.claimIds({ alone: true }), [])
  }),

  'after recovery, even without a new claim, the old claim is lost': plainCase([fenced], async (scene) => {
    await scene.add('a')
    const claim = await scene.claimOne({ leaseMs: 1_000 })
    await scene.advance(1_000)
    await scene.claim({ limit: 0 })

    assert.equal(await scene.settle(claim, { kind: 'complete' }), 'lost')
    assert.equal(await scene.extend(claim), 'lost')
    assert.deepEqual(await scene.states(), ['a ready'])
  }),

  'a claim of a job that another has is lost: it changes nothing': plainCase([fenced], async (scene) => {
    await scene.add('a')
    const old = await scene.claimOne({ leaseMs: 1_000 })
    await scene.advance(1_000)
    await scene.claimOne({ worker: 'worker-2', alone: true })
    const before = await scene.harness.dump()

    for (const settlement of [
      { kind: 'complete' },
      { kind: 'retry', delayMs: 0 },
      { kind: 'release', delayMs: 0 },
      { kind: 'bury' },
      { kind: 'cancel' },
    ] as const) {
      assert.equal(await scene.settle(old, settlement), 'lost')
    }
    assert.equal(await scene.extend(old, { leaseMs: 90_000, beat: { startedMs: 0, pid: 1 } }), 'lost')
    assert.deepEqual(await scene.harness.dump(), before)
  }),

  async 'extend renews the lease from now'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ leaseMs: 5_000 })
    await scene.advance(4_000)
    assert.equal(await scene.extend(claim, { leaseMs: 5_000 }), 'ok')

    assert.equal((await scene.job('a')).claim?.leaseMs, 5_000)
  },

  async 'a renewed lease holds for its whole time and not a millisecond longer'(scene) {
    await scene.add('a', 'b')
    const [renewed, other] = (await scene.claim({ limit: 2, leaseMs: 1_000 })).claims
    await scene.extend(renewed!, { leaseMs: 5_000 })
    await scene.advance(4_999)
    assert.deepEqual(await scene.claimIds({ alone: true }), [other!.id])
    await scene.advance(1)
    assert.deepEqual(await scene.claimIds({ alone: true }), [renewed!.id])
  },

  async 'extend never shortens a lease'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ leaseMs: 60_000 })

    assert.equal(await scene.extend(claim, { leaseMs: 1_000 }), 'ok')

    assert.equal((await scene.job('a')).claim?.leaseMs, 60_000)
  },

  'extend answers each item separately, in order': plainCase([fenced], async (scene) => {
    await scene.add('a', 'b')
    const { claims } = await scene.claim()
    const [a, b] = claims.map(({ queue, id, fence }) => ({ queue, id, fence, leaseMs: 60_000 }))

    const answers = await scene.store.extend([{ ...b!, fence: b!.fence - 1 }, a!, { ...a!, id: 'gone' }])

    assert.deepEqual(answers, ['lost', 'ok', 'lost'])
    assert.equal((await scene.job('a')).claim?.leaseMs, 60_000)
    assert.equal((await scene.job('b')).claim?.leaseMs, 30_000)
  }),

  async 'the first heartbeat that says how long ago the handler began sets startedAt, and later ones keep it'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.advance(10)
    const startedAt = (await scene.now()) - 7
    await scene.extend(claim, { beat: { startedMs: 7.9 } })
    await scene.advance(10)
    await scene.extend(claim, { beat: { startedMs: 0 } })

    const job = await scene.job('a')

    assert.deepEqual([job.startedAt, job.updatedAt], [startedAt, startedAt + 17])
  },

  async 'a heartbeat reports process and progress, and keeps what it omits'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.extend(claim, {
      beat: {
        host: 'mill-1',
        boot: 'boot-1',
        pidns: '402',
        pid: 123_456,
        ticks: 18,
        progress: { fraction: 0.25, note: '¼' },
      },
    })
    await scene.extend(claim, { beat: { pid: 7 } })
    await scene.extend(claim)

    const { host, boot, pidns, pid, ticks, progress, startedAt } = await scene.job('a')

    assert.deepEqual(
      { host, boot, pidns, pid, ticks, progress, startedAt },
      {
        host: 'mill-1',
        boot: 'boot-1',
        pidns: '402',
        pid: 7,
        ticks: 18,
        progress: { fraction: 0.25, note: '¼' },
        startedAt: null,
      },
    )
  },

  async 'progress is replaced as a whole'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.extend(claim, { beat: { progress: { fraction: 0.5, note: 'half' } } })
    await scene.extend(claim, { beat: { progress: { fraction: 0.75 } } })

    assert.deepEqual((await scene.job('a')).progress, { fraction: 0.75 })
  },

  async 'a new claim starts without the heartbeats of the previous one'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ leaseMs: 1_000 })
    await scene.extend(claim, {
      leaseMs: 1_000,
      beat: { startedMs: 0, host: 'h', boot: 'b', pidns: '1', pid: 1, ticks: 1, progress: { fraction: 1 } },
    })
    await scene.advance(1_000)
    await scene.claimOne({ worker: 'worker-2', alone: true })

    const { startedAt, host, boot, pidns, pid, ticks, progress, worker } = await scene.job('a')

    assert.deepEqual([startedAt, host, boot, pidns, pid, ticks, progress], Array(7).fill(null))
    assert.equal(worker, 'worker-2')
  },

  'recovery is limited to 100 a call, and more says that there are others': plainCase([tellsCrashes], async (scene) => {
    await scene.add(...Array.from({ length: 150 }, (_, i) => `job-${i}`))
    await scene.claim({ limit: 150, leaseMs: 1_000 })
    await scene.advance(1_000)

    const first = await scene.claim({ limit: 250 })
    const second = await scene.claim({ limit: 250 })

    assert.deepEqual([first.crashed.length, first.more], [100, true])
    assert.deepEqual([second.crashed.length, second.more], [50, false])
  }),

  async 'leases are recovered in the order in which they ended'(scene) {
    await scene.add(...Array.from({ length: 120 }, (_, i) => `job-${i}`))
    await scene.claim({ limit: 60, leaseMs: 2_000 })
    await scene.claim({ limit: 60, leaseMs: 1_000 })
    await scene.advance(5_000)

    await scene.claim({ limit: 0 })

    const { jobs } = await scene.stored()
    const running = jobs.filter(({ state }) => state === 'running').map(({ id }) => Number(id.slice(4)))
    assert.equal(running.length, 20)
    assert.ok(Math.max(...running) < 60, 'those with the later end are left')
  },

  'a paused queue still recovers and promotes': plainCase([records], async (scene) => {
    await scene.add('a', { id: 'b', delayMs: 500 })
    await scene.claimOne({ leaseMs: 1_000 })
    await scene.records.pause(scene.queue)
    await scene.advance(1_000)

    await scene.claim()

    assert.deepEqual(await scene.states(), ['a ready', 'b ready'])
  }),

  async 'concurrent handles complete every job once, and the audit breaks no rule'(scene) {
    const handles = [scene.store, await scene.harness.open(), await scene.harness.open()]
    await scene.add(...Array.from({ length: 120 }, (_, i) => `job-${i}`))
    const from = [{ queue: scene.queue, limit: 4 }]
    const work = async (store: Store, worker: string) => {
      for (;;) {
        const { claims } = await store.claim(from, { worker, leaseMs: 30_000 })
        if (claims.length === 0) return
        const answers = await store.settle(
          claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' })),
        )
        assert.ok(answers.every((answer) => answer === 'ok'))
      }
    }

    await Promise.all([...handles, ...handles].map((store, i) => work(store, `worker-${i}`)))

    assert.deepEqual(auditBreaches(await scene.harness.audit()), [])
    const { processed, ready, running } = await scene.depth()
    assert.deepEqual([processed, ready, running], [120, 0, 0])
  },

  async 'the audit lists every claim, its end and its fence'(scene) {
    await scene.add('a')
    const first = await scene.claimOne({ leaseMs: 1_000 })
    await scene.advance(1_000)
    const second = await scene.claimOne({ worker: 'worker-2', alone: true })
    await scene.end(second, { kind: 'complete' })

    const entries = (await scene.harness.audit()).map(({ kind, fence, worker }) => [kind, fence, worker])

    assert.deepEqual(entries, [
      ['enqueue', 0, null],
      ['claim', first.fence, 'worker-1'],
      ['requeue', first.fence, 'worker-1'],
      ['claim', second.fence, 'worker-2'],
      ['leave', second.fence, 'worker-2'],
    ])
  },
})
