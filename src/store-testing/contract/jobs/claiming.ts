/** Contract cases: claiming. */

import assert from 'node:assert/strict'
import { slicesOf } from '../../../core/values/pages.js'
import { fenced, inOrder, plainCase, plainConcern, priority } from '../scenes/contract-case.js'

export const claiming = plainConcern('claiming', [], {
  async 'a claim carries what the handler needs'(scene) {
    const now = await scene.now()
    await scene.add({ id: 'a', task: 'resize', payload: '[1]', meta: '{}', codec: 'my', priority: 0 })

    const { fence, ...claim } = await scene.claimOne()

    assert.deepEqual(claim, {
      queue: scene.queue,
      id: 'a',
      task: 'resize',
      payload: '[1]',
      meta: '{}',
      codec: 'my',
      priority: 0,
      attempt: 1,
      crashes: 0,
      createdAt: now,
      runAt: now,
    })
    assert.ok(Number.isSafeInteger(fence) && fence > 0)
  },

  async 'a claim without queues gets no job, only the time'(scene) {
    const { now, ...answer } = await scene.claim({ from: [], heads: true })
    assert.equal(now, await scene.now())
    assert.deepEqual(answer, { claims: [], crashed: [], buried: [], waits: [], heads: [], more: false })
  },

  async 'a claimed job is running, held by the worker for the lease'(scene) {
    await scene.add('a')
    const { fence } = await scene.claimOne({ worker: 'worker-7', leaseMs: 12_000 })

    const { state, worker, claim, startedAt } = await scene.job('a')

    assert.deepEqual(
      { state, worker, claim, startedAt },
      {
        state: 'running',
        worker: 'worker-7',
        claim: { fence, leaseMs: 12_000, alone: false, cancelRequested: false },
        startedAt: null,
      },
    )
  },

  'one claim takes as many jobs as the store allows, in order, and each can be settled': plainCase(
    [inOrder],
    async (scene) => {
      const { maxBatch, maxClaim } = scene.store.traits
      const ids = Array.from({ length: maxClaim + 1 }, (_, i) => `job-${i}`)
      for (const some of slicesOf(ids, maxBatch)) await scene.add(...some)

      const { claims, more } = await scene.claim({ limit: maxClaim })

      assert.deepEqual([claims.map(({ id }) => id), more], [ids.slice(0, -1), true])
      for (const some of slicesOf(claims, maxBatch)) {
        const items = some.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const }))
        assert.deepEqual(new Set(await scene.store.settle(items)), new Set(['ok']))
      }
      assert.deepEqual(await scene.states(), [`job-${maxClaim} ready`])
    },
  ),

  'jobs of equal priority come first in, first out': plainCase([inOrder], async (scene) => {
    await scene.add('b')
    await scene.add('c')
    await scene.add('a')

    assert.deepEqual(await scene.claimIds(), ['b', 'c', 'a'])
  }),

  'first in is first out within one call and one millisecond': plainCase([inOrder], async (scene) => {
    await scene.add('c', 'a')
    await scene.add('b', 'd')

    assert.deepEqual(await scene.claimIds(), ['c', 'a', 'b', 'd'])
  }),

  'a lifo queue grants the last first': plainCase([inOrder], async (scene) => {
    await scene.openQueue({ name: 'stack', order: 'lifo' })
    await scene.enqueue(['a', 'b'], { queue: 'stack' })
    await scene.enqueue(['c'], { queue: 'stack' })

    assert.deepEqual(await scene.claimIds({ queue: 'stack' }), ['c', 'b', 'a'])
  }),

  'higher priorities come first, in arrival order within one': plainCase([priority], async (scene) => {
    await scene.add({ id: 'low', priority: -32_768 }, { id: 'five', priority: 5 }, 'none')
    await scene.add({ id: 'ten', priority: 10 }, { id: 'five too', priority: 5 }, { id: 'top', priority: 32_767 })

    assert.deepEqual(await scene.claimIds(), ['top', 'ten', 'five', 'five too', 'none', 'low'])
  }),

  'priority counts more than the order of a lifo queue': plainCase([priority], async (scene) => {
    await scene.openQueue({ name: 'stack', order: 'lifo' })
    await scene.enqueue([{ id: 'high', priority: 1 }, 'a', 'b'], { queue: 'stack' })

    assert.deepEqual(await scene.claimIds({ queue: 'stack' }), ['high', 'b', 'a'])
  }),

  async 'a claim takes at most its limit'(scene) {
    await scene.add('a', 'b', 'c')

    const taken = [await scene.claimIds({ limit: 2 }), await scene.claimIds({ limit: 2 })]

    assert.deepEqual(
      taken.map((ids) => ids.length),
      [2, 1],
    )
    assert.deepEqual(taken.flat().sort(), ['a', 'b', 'c'])
  },

  async 'no job is claimed twice by two handles at once'(scene) {
    const handles = [scene.store, await scene.harness.open(), await scene.harness.open()]
    const ids = Array.from({ length: 60 }, (_, i) => `job-${String(i).padStart(2, '0')}`)
    await scene.add(...ids)

    const taken = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        handles[i % 3]!.claim([{ queue: scene.queue, limit: 5 }], { worker: `w${i % 3}`, leaseMs: 30_000 }),
      ),
    )

    assert.deepEqual(taken.flatMap(({ claims }) => claims.map(({ id }) => id)).sort(), ids, 'each job exactly once')
    const fences = taken.map(({ claims }) => claims[0]!.fence)
    if (scene.store.traits.fenced) assert.equal(new Set(fences).size, 12, 'each call has a fence of its own')
  },

  'all jobs of a call have one fence, and the next call has a greater one': plainCase([fenced], async (scene) => {
    await scene.add('a', 'b', 'c')
    const { claims } = await scene.claim({ limit: 2 })
    const next = await scene.claimOne()

    assert.equal(claims[0]!.fence, claims[1]!.fence)
    assert.ok(next.fence > claims[0]!.fence)
  }),

  async 'fences grow over releases, retries, expired leases and new jobs of the same id'(scene) {
    await scene.add('a')
    const fences: number[] = []
    const next = async () => {
      const claim = await scene.claimOne({ leaseMs: 1_000, alone: true })
      fences.push(claim.fence)
      return claim
    }
    await scene.end(await next(), { kind: 'release', delayMs: 0 })
    await scene.end(await next(), { kind: 'retry', delayMs: 0 })
    await next()
    await scene.advance(1_000)
    await scene.end(await next(), { kind: 'complete' })
    await scene.add('a')
    await next()

    assert.deepEqual(
      fences,
      [...new Set(fences)].sort((a, b) => a - b),
    )
  },

  async 'only the first queue in the given order with a ready job grants'(scene) {
    await scene.openQueue({ name: 'second' })
    await scene.openQueue({ name: 'third' })
    await scene.enqueue(['s'], { queue: 'second' })
    await scene.enqueue(['t'], { queue: 'third' })
    const from = [scene.queue, 'third', 'second'].map((queue) => ({ queue, limit: 1 }))

    const claimed = await scene.claim({ from })

    assert.equal(claimed.queue, 'third')
    assert.deepEqual(
      claimed.claims.map(({ queue, id }) => [queue, id]),
      [['third', 't']],
    )
    assert.deepEqual(
      claimed.waits.map(({ queue, reason }) => [queue, reason]),
      [[scene.queue, 'empty']],
    )
    assert.equal((await scene.depth('second')).ready, 1)
  },

  async 'one call can ask sixteen queues'(scene) {
    const names = Array.from({ length: 16 }, (_, i) => `q${i}`)
    for (const name of names) await scene.openQueue({ name })
    await scene.enqueue(['a'], { queue: 'q15' })

    const claimed = await scene.claim({ from: names.map((queue) => ({ queue, limit: 1 })) })

    assert.equal(claimed.queue, 'q15')
    assert.deepEqual(
      claimed.waits.map(({ queue }) => queue),
      names.slice(0, 15),
    )
  },

  async 'a lease given for a queue applies to its jobs instead of that of the call'(scene) {
    await scene.add('a')
    await scene.claim({ from: [{ queue: scene.queue, limit: 1, leaseMs: 90_000 }], leaseMs: 1_000 })

    assert.equal((await scene.job('a')).claim?.leaseMs, 90_000)
  },

  async 'a claim that grants nothing names no queue'(scene) {
    const claimed = await scene.claim()

    assert.deepEqual(claimed, {
      now: await scene.now(),
      claims: [],
      crashed: [],
      buried: [],
      waits: [{ queue: scene.queue, reason: 'empty' }],
      more: false,
    })
  },

  async 'a scheduled job is never claimed early, and is claimed on time'(scene) {
    await scene.add({ id: 'a', delayMs: 5_000 })
    assert.equal((await scene.job('a')).state, 'scheduled')

    await scene.advance(4_999)
    assert.deepEqual(await scene.claimIds(), [])
    await scene.advance(1)
    assert.deepEqual(await scene.claimIds(), ['a'])
  },

  async 'a runAt is an absolute instant of the store’s clock'(scene) {
    const runAt = (await scene.now()) + 5_000
    await scene.add({ id: 'a', runAt })

    await scene.advance(4_999)
    assert.deepEqual(await scene.claimIds(), [])
    await scene.advance(1)
    assert.equal((await scene.claimOne()).runAt, runAt)
  },

  'a runAt in the past is ready at once, behind all ready jobs': plainCase([inOrder], async (scene) => {
    const now = await scene.now()
    await scene.add('a')
    await scene.add({ id: 'b', runAt: now - 1_000 }, { id: 'c', runAt: now - 2_000 }, { id: 'd', runAt: 0 })

    const { claims } = await scene.claim()

    assert.deepEqual(
      claims.map(({ id, runAt }) => [id, runAt - now]),
      [
        ['a', 0],
        ['b', 0],
        ['c', 0],
        ['d', 0],
      ],
    )
  }),

  async 'a job due at this very instant is ready'(scene) {
    await scene.add({ id: 'a', runAt: await scene.now() }, { id: 'b', delayMs: 0 })

    assert.deepEqual(await scene.states(), ['a ready', 'b ready'])
  },

  'due jobs are in the order of their due times, before later arrivals': plainCase([inOrder], async (scene) => {
    await scene.add({ id: 'late', delayMs: 3_000 }, { id: 'soon', delayMs: 1_000 })
    await scene.advance(2_000)
    await scene.add('between')
    await scene.advance(2_000)
    await scene.add('last')

    assert.deepEqual(await scene.claimIds(), ['soon', 'between', 'late', 'last'])
  }),

  'jobs due at the same instant are in the order of their enqueues': plainCase([inOrder], async (scene) => {
    const runAt = (await scene.now()) + 1_000
    await scene.add({ id: 'b', runAt }, { id: 'c', delayMs: 1_000 })
    await scene.add({ id: 'a', runAt })
    await scene.advance(1_000)

    assert.deepEqual(await scene.claimIds(), ['b', 'c', 'a'])
  }),
})
