/** Contract cases: suspects, the crashed jobs that only claims made alone receive. */

import assert from 'node:assert/strict'
import { pagesOf } from '../../../core/values/pages.js'
import type { Settlement } from '../../sequences/command.js'
import { exactDepth, plainCase, plainConcern, priority, records, tellsCrashes } from '../scenes/contract-case.js'

export const suspects = plainConcern('suspects', [tellsCrashes], {
  async 'a crashed job is ready and suspect'(scene) {
    await scene.addSuspects('a')

    const { state, suspect, worker, claim } = await scene.job('a')

    assert.deepEqual([state, suspect, worker, claim], ['ready', true, null, null])
  },

  async 'a job that never crashed is not suspect, even if its claim is alone'(scene) {
    await scene.add('a')
    assert.equal((await scene.job('a')).suspect, false)
    await scene.claimOne({ alone: true })
    assert.equal((await scene.job('a')).suspect, false)
  },

  async 'a claim in company is never granted a suspect'(scene) {
    await scene.addSuspects('a')
    const { claims, more } = await scene.claim()
    assert.deepEqual([claims, more], [[], false])
    await scene.add('b')

    assert.deepEqual(await scene.claimIds(), ['b'])
    assert.deepEqual(await scene.states(), ['a ready', 'b running'])
  },

  async 'a claim alone is granted a suspect before any other job'(scene) {
    await scene.add('older')
    const older = await scene.claimOne()
    await scene.addSuspects('a')
    await scene.end(older, { kind: 'release', delayMs: 0 })

    assert.deepEqual(await scene.claimIds({ alone: true }), ['a'])
    assert.deepEqual(await scene.claimIds({ alone: true }), ['older'])
  },

  'a suspect comes before jobs of a higher priority': plainCase([tellsCrashes, priority], async (scene) => {
    await scene.addSuspects({ id: 'a', priority: -5 })
    await scene.add({ id: 'b', priority: 5 })

    assert.deepEqual(await scene.claimIds({ alone: true }), ['a'])
  }),

  async 'a claim alone takes one suspect, and none with a limit of 0'(scene) {
    await scene.addSuspects('a', 'b')

    assert.deepEqual(await scene.claimIds({ alone: true, limit: 0 }), [])
    assert.deepEqual(await scene.claimIds({ alone: true, limit: 10 }), ['a'])
  },

  async 'suspects are in their old places, whenever they crashed'(scene) {
    await scene.add('a', 'b', 'c')
    await scene.claim({ limit: 1, leaseMs: 3_000 })
    await scene.claim({ limit: 2, leaseMs: 1_000 })
    await scene.advance(1_000)
    await scene.claim({ limit: 0 })
    await scene.advance(2_000)

    const ids = [await scene.claimOne({ alone: true }), await scene.claimOne({ alone: true })].map(({ id }) => id)

    assert.deepEqual(ids, ['a', 'b'])
  },

  async 'the last of a lifo queue’s suspects comes first'(scene) {
    await scene.openQueue({ name: 'stack', order: 'lifo' })
    await scene.enqueue(['a', 'b'], { queue: 'stack' })
    await scene.claim({ queue: 'stack', leaseMs: 1_000 })
    await scene.advance(1_000)

    assert.deepEqual(await scene.claimIds({ queue: 'stack', alone: true }), ['b'])
  },

  'suspects of a higher priority come first': plainCase([tellsCrashes, priority], async (scene) => {
    await scene.addSuspects({ id: 'low', priority: 1 }, { id: 'high', priority: 2 })

    assert.deepEqual(await scene.claimIds({ alone: true }), ['high'])
  }),

  async 'a suspect stays one while it runs and when it crashes again'(scene) {
    await scene.addSuspects('a')
    await scene.claimOne({ alone: true, leaseMs: 1_000 })
    const running = await scene.job('a')
    assert.deepEqual([running.state, running.suspect], ['running', true])
    await scene.advance(1_000)

    assert.deepEqual(await scene.claimIds(), [])
    assert.equal((await scene.job('a')).suspect, true)
    assert.deepEqual(await scene.claimIds({ alone: true }), ['a'])
  },

  async 'a release without delay keeps a suspect suspect, in its old place'(scene) {
    await scene.addSuspects('a', 'b')
    await scene.end(await scene.claimOne({ alone: true }), { kind: 'release', delayMs: 0 })

    assert.equal((await scene.job('a')).suspect, true)
    assert.deepEqual(await scene.claimIds(), [])
    assert.deepEqual(await scene.claimIds({ alone: true }), ['a'])
  },

  async 'any other way back into the queue makes a suspect an ordinary job'(scene) {
    const ways: Settlement[] = [
      { kind: 'retry', delayMs: 0 },
      { kind: 'retry', delayMs: 1_000 },
      { kind: 'release', delayMs: 1_000 },
    ]
    for (const way of ways) {
      await scene.addSuspects('a')
      await scene.end(await scene.claimOne({ alone: true }), way)
      assert.equal((await scene.job('a')).suspect, false, way.kind)
      await scene.advance(1_000)

      const claim = await scene.claimOne()
      assert.equal((await scene.job('a')).suspect, false, way.kind)
      await scene.end(claim, { kind: 'complete' })
    }
  },

  async 'an ended suspect is no longer one'(scene) {
    await scene.addSuspects('done', 'dead', 'last')
    await scene.end(await scene.claimOne({ alone: true }), { kind: 'complete', result: { payload: '1' } })
    await scene.end(await scene.claimOne({ alone: true }), { kind: 'bury' })
    await scene.end(await scene.claimOne({ alone: true }), { kind: 'retry', delayMs: 0, last: true })

    const { jobs } = await scene.stored()

    assert.deepEqual(
      jobs.map(({ id, suspect }) => [id, suspect]),
      [
        ['dead', false],
        ['done', false],
        ['last', false],
      ],
    )
  },

  async 'a new job with the id of a suspect is not suspect'(scene) {
    await scene.addSuspects('a')
    await scene.end(await scene.claimOne({ alone: true }), { kind: 'complete' })
    await scene.add('a')

    assert.equal((await scene.job('a')).suspect, false)
    assert.deepEqual(await scene.claimIds(), ['a'])
  },

  'a failure from outside makes a suspect an ordinary job': plainCase([tellsCrashes, records], async (scene) => {
    await scene.addSuspects('a')
    await scene.claimOne({ alone: true })
    await scene.records.fail(scene.queue, 'a', { delayMs: 0, reason: 'by hand' })

    assert.equal((await scene.job('a')).suspect, false)
    assert.deepEqual(await scene.claimIds(), ['a'])
  }),

  'a suspect that was buried and revived is an ordinary job without a crash': plainCase(
    [tellsCrashes, records],
    async (scene) => {
      await scene.addSuspects('a')
      await scene.claimOne({ alone: true, leaseMs: 1_000 })
      await scene.advance(1_000)
      await scene.claim({ limit: 0 })
      await scene.records.bury(scene.queue, { ids: ['a'] })
      const { state, suspect } = await scene.job('a')
      assert.deepEqual([state, suspect], ['dead', false])

      await scene.records.morgue.revive(scene.queue, 'all')

      const { id, crashes } = await scene.claimOne()
      assert.deepEqual([id, crashes], ['a', 0])
    },
  ),

  'a record shows that its job is suspect while it waits and runs': plainCase(
    [tellsCrashes, records],
    async (scene) => {
      const told = async () => (await scene.records.get(scene.queue, 'a'))?.suspect
      await scene.add('a')
      assert.equal(await told(), undefined)
      await scene.claimOne({ leaseMs: 1_000 })
      await scene.advance(1_000)
      await scene.claim({ limit: 0 })
      assert.equal(await told(), true)
      const claim = await scene.claimOne({ alone: true })
      assert.equal(await told(), true)
      await scene.end(claim, { kind: 'retry', delayMs: 60_000 })
      assert.equal(await told(), undefined)
    },
  ),

  'suspects count as ready jobs, and separately while they wait': plainCase(
    [tellsCrashes, exactDepth],
    async (scene) => {
      await scene.addSuspects('a', 'b', 'c')
      await scene.claimOne({ alone: true })
      await scene.add('d')

      const { ready, suspects, running, fresh, retries } = await scene.depth()

      assert.deepEqual(
        { ready, suspects, running, fresh, retries },
        { ready: 3, suspects: 2, running: 1, fresh: 3, retries: 0 },
      )
    },
  ),

  'a suspect that failed before counts as a retry': plainCase([tellsCrashes, exactDepth, records], async (scene) => {
    await scene.add('a')
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0 })
    await scene.claimOne({ leaseMs: 1_000 })
    await scene.advance(1_000)
    await scene.claim({ limit: 0 })

    const { fresh, retries, suspects } = await scene.depth()

    assert.deepEqual([fresh, retries, suspects], [0, 1, 1])
    assert.deepEqual(
      (await scene.records.list(scene.queue, { by: 'retry', limit: 10 })).jobs.map(({ id }) => id),
      ['a'],
    )
  }),

  async 'a suspect causes lag, and is no head'(scene) {
    await scene.addSuspects('a')
    await scene.advance(4_000)

    assert.equal((await scene.depth()).lagMs, 5_000)
    assert.deepEqual((await scene.claim({ heads: true })).heads, [{ queue: scene.queue }])
  },

  'suspects take up room like other waiting jobs': plainCase([tellsCrashes, exactDepth], async (scene) => {
    await scene.openQueue({ maxPending: 2 })
    await scene.addSuspects('a', 'b')

    assert.deepEqual(await scene.enqueue(['c']), ['full'])
  }),

  'a list by time has suspects among the ready jobs, behind the others': plainCase(
    [tellsCrashes, records],
    async (scene) => {
      await scene.addSuspects('a', 'b')
      await scene.add('c', { id: 'd', delayMs: 60_000 })
      const ids: string[] = []
      for await (const page of pagesOf((from) => scene.records.list(scene.queue, { by: 'time', limit: 1, ...from })))
        ids.push(...page.jobs.map(({ id }) => id))

      assert.deepEqual(ids, ['c', 'a', 'b', 'd'])
      const { jobs } = await scene.records.list(scene.queue, { by: 'time', state: 'ready', limit: 10 })
      assert.deepEqual(
        jobs.map(({ id, suspect }) => [id, suspect]),
        [
          ['c', undefined],
          ['a', true],
          ['b', true],
        ],
      )
    },
  ),

  'administration treats suspects as ready jobs': plainCase([tellsCrashes, records, exactDepth], async (scene) => {
    await scene.addSuspects('a', 'b', 'c', 'd')
    const one = { changed: 1, more: false }

    assert.deepEqual(await scene.records.cancel(scene.queue, { ids: ['a'] }), one)
    assert.deepEqual(await scene.records.delete(scene.queue, { ids: ['b'] }), one)
    assert.deepEqual(await scene.records.bury(scene.queue, { ids: ['c'] }), one)
    assert.deepEqual(await scene.records.runNow(scene.queue, { ids: ['d'] }), { changed: 0, more: false })
    assert.deepEqual(await scene.states(), ['c dead', 'd ready'])
    assert.deepEqual(await scene.records.clear(scene.queue), { changed: 2, more: false })
    assert.equal((await scene.depth()).suspects, 0)
  }),

  'a step over all ready jobs takes suspects last': plainCase([tellsCrashes, records], async (scene) => {
    await scene.addSuspects('a')
    for (let i = 0; i < 4; i++) await scene.add(...Array.from({ length: 250 }, (_, n) => `job-${i}-${n}`))

    assert.deepEqual(await scene.records.bury(scene.queue, 'all'), { changed: 1_000, more: true })

    assert.equal((await scene.job('a')).state, 'ready')
    assert.deepEqual(await scene.records.bury(scene.queue, 'all'), { changed: 1, more: false })
  }),
})
