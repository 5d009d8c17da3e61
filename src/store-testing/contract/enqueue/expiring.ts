/** Contract cases: waiting jobs whose time to begin is over. */

import assert from 'node:assert/strict'
import { upkeepLimit } from '../../../stores/rules/bounds.js'
import {
  expires,
  groups,
  limited,
  plainCase,
  plainConcern,
  priority,
  records,
  throttled,
} from '../scenes/contract-case.js'
import { soon } from '../scenes/scene.js'

export const expiring = plainConcern('expiring', [expires], {
  async 'a job that was not claimed in time is cancelled by the next claim, which reports it'(scene) {
    await scene.add({ id: 'code', task: 'send-code', expiresMs: 1_000 }, 'mail')
    await scene.advance(1_000)

    const { claims, expired } = await scene.claim()

    assert.deepEqual(expired, [{ queue: scene.queue, id: 'code', task: 'send-code' }])
    assert.deepEqual(
      claims.map(({ id }) => id),
      ['mail'],
    )
    assert.equal((await scene.depth()).expired, 1)
    assert.equal((await scene.claim()).expired, undefined)
  },

  async 'a job that expires is granted until its last millisecond'(scene) {
    await scene.add({ id: 'a', expiresMs: 1_000 })
    await scene.advance(999)

    assert.deepEqual(await scene.claimIds(), ['a'])
    assert.equal((await scene.depth()).expired, 0)
  },

  'a record says when its job expires, and after the end why it ended: `expired`': plainCase(
    [expires, records],
    async (scene) => {
      await scene.add({ id: 'a', expiresMs: 1_000 }, { id: 'b', delayMs: 500, expiresMs: 2_000 })
      const now = await scene.now()
      assert.equal((await scene.records.get(scene.queue, 'a'))?.expiresAt, now + 1_000)
      const { jobs } = await scene.records.list(scene.queue, { by: 'id', limit: 10 })
      assert.deepEqual(
        jobs.map(({ expiresAt }) => expiresAt),
        [now + 1_000, now + 2_000],
      )
      await scene.advance(1_000)
      await scene.claim({ limit: 0 })

      const record = await scene.records.get(scene.queue, 'a')
      assert.deepEqual([record?.state, record?.reason, record?.expiresAt], ['cancelled', 'expired', undefined])
    },
  ),

  async 'the id of an expired job is remembered like that of a cancelled one'(scene) {
    await scene.add({ id: 'a', expiresMs: 1_000 }, { id: 'b', expiresMs: 1_000, rememberMs: 90_000 })
    await scene.advance(1_000)
    await scene.claim({ limit: 0 })

    assert.deepEqual(await scene.enqueue(['a', 'b']), ['duplicate', 'duplicate'])
    await scene.advance(60_000)
    assert.deepEqual(await scene.enqueue(['a', 'b']), ['added', 'duplicate'])
  },

  'an expiry wakes those who wait for the job': plainCase([expires, records], async (scene) => {
    await scene.add({ id: 'a', expiresMs: 1_000 })
    const key = { queue: scene.queue, id: 'a' }
    const ended = scene.records.watch([key], 5_000, new AbortController().signal)
    await scene.advance(1_000)
    await scene.claim({ limit: 0 })

    assert.deepEqual(await soon(ended), [key])
  }),

  async 'a delayed job may expire after it is due, and not before'(scene) {
    await scene.add({ id: 'a', delayMs: 1_000, expiresMs: 2_000 }, { id: 'b', delayMs: 1_000, expiresMs: 5_000 })
    await scene.advance(2_000)

    const { claims, expired = [] } = await scene.claim()

    assert.deepEqual([claims.map(({ id }) => id), expired.map(({ id }) => id)], [['b'], ['a']])
  },

  async 'a claimed job still expires when it waits again: retried, released or crashed'(scene) {
    const ids = ['retried', 'for later', 'released', 'crashed']
    await scene.add(...ids.map((id) => ({ id, expiresMs: 1_000 })))
    const { claims } = await scene.claim({ leaseMs: 500 })
    await scene.end(claims[0]!, { kind: 'retry', delayMs: 100 })
    await scene.end(claims[1]!, { kind: 'retry', delayMs: 60_000 })
    await scene.end(claims[2]!, { kind: 'release', delayMs: 0 })
    assert.deepEqual((await scene.claim({ limit: 0 })).expired, undefined)
    await scene.advance(1_000)

    const { claims: given, expired = [] } = await scene.claim()

    assert.deepEqual(given, [])
    assert.deepEqual(expired.map(({ id }) => id).sort(), [...ids].sort())
    assert.deepEqual(await scene.claimIds({ alone: true }), [])
    assert.equal((await scene.depth()).expired, 4)
  },

  async 'a job that is retried before its expiry is granted again'(scene) {
    await scene.add({ id: 'a', expiresMs: 1_000 })
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 100 })
    await scene.advance(999)

    assert.deepEqual(await scene.claimIds(), ['a'])
  },

  async 'a running job does not expire, and ends as its claim says'(scene) {
    await scene.add({ id: 'a', expiresMs: 1_000 }, { id: 'b', expiresMs: 1_000 })
    const { claims } = await scene.claim()
    await scene.advance(2_000)
    const { expired } = await scene.claim()

    assert.equal(expired, undefined)
    await scene.end(claims[0]!, { kind: 'complete' })
    await scene.end(claims[1]!, { kind: 'bury', reason: 'no' })
    assert.equal((await scene.claim()).expired, undefined)
    assert.equal((await scene.depth()).expired, 0)
  },

  async 'every claim says when its job expires'(scene) {
    await scene.add({ id: 'a', expiresMs: 1_000 }, 'b')
    const at = (await scene.now()) + 1_000
    const { claims } = await scene.claim()
    assert.deepEqual(
      claims.map(({ expiresAt }) => expiresAt),
      [at, undefined],
    )
    await scene.end(claims[0]!, { kind: 'retry', delayMs: 0 })

    assert.equal((await scene.claimOne()).expiresAt, at)
  },

  'a record says when its job expires while it waits or runs, and not once it is dead': plainCase(
    [expires, records],
    async (scene) => {
      await scene.add({ id: 'a', expiresMs: 1_000 })
      const at = (await scene.now()) + 1_000
      const expiresAt = async () => (await scene.records.get(scene.queue, 'a'))?.expiresAt
      const claim = await scene.claimOne()
      assert.equal(await expiresAt(), at)
      await scene.end(claim, { kind: 'retry', delayMs: 0 })
      assert.equal(await expiresAt(), at)
      await scene.end(await scene.claimOne(), { kind: 'bury' })

      assert.equal(await expiresAt(), undefined)
    },
  ),

  'a job that was buried and revived does not expire any more; one that is run now still does': plainCase(
    [expires, records],
    async (scene) => {
      await scene.add({ id: 'a', expiresMs: 1_000 }, { id: 'b', delayMs: 500, expiresMs: 1_000 })
      await scene.records.bury(scene.queue, { ids: ['a'] })
      await scene.records.morgue.revive(scene.queue, { ids: ['a'] })
      await scene.records.runNow(scene.queue, { ids: ['b'] })
      await scene.advance(2_000)

      const { claims, expired = [] } = await scene.claim()

      assert.deepEqual([claims.map(({ id }) => id), expired.map(({ id }) => id)], [['a'], ['b']])
    },
  ),

  'a job that was cancelled or deleted before leaves nothing that expires': plainCase(
    [expires, records],
    async (scene) => {
      await scene.add({ id: 'a', expiresMs: 1_000 }, { id: 'b', expiresMs: 1_000 })
      await scene.records.cancel(scene.queue, { ids: ['a'] }, 'not wanted')
      await scene.records.delete(scene.queue, { ids: ['b'] })
      await scene.add('b')
      await scene.advance(2_000)

      const { claims, expired } = await scene.claim()

      assert.deepEqual([claims.map(({ id }) => id), expired], [['b'], undefined])
      assert.equal((await scene.records.get(scene.queue, 'a'))?.reason, 'not wanted')
    },
  ),

  async 'if more jobs expire than one call ends, none is granted before all have ended'(scene) {
    const many = Array.from({ length: upkeepLimit + 1 }, (_, i) => ({ id: `code-${i}`, expiresMs: 1_000 }))
    await scene.add(...many, 'mail')
    await scene.advance(1_000)

    const first = await scene.claim()
    assert.deepEqual([first.claims, first.expired?.length, first.more], [[], upkeepLimit, true])
    const second = await scene.claim()
    assert.deepEqual([second.claims.map(({ id }) => id), second.expired?.length], [['mail'], 1])
    assert.equal((await scene.depth()).expired, upkeepLimit + 1)
  },

  async 'expired jobs end in the order of their expiry, then of arrival'(scene) {
    await scene.add({ id: 'a', expiresMs: 3_000 }, { id: 'b', delayMs: 500, expiresMs: 1_000 })
    await scene.add({ id: 'c', expiresMs: 1_000 })
    await scene.advance(5_000)

    const { expired } = await scene.claim({ limit: 0 })

    assert.deepEqual(
      expired?.map(({ id }) => id),
      ['b', 'c', 'a'],
    )
  },

  'jobs expire in a paused queue too, at the next claim': plainCase([expires, records], async (scene) => {
    await scene.add({ id: 'a', expiresMs: 1_000 })
    await scene.records.pause(scene.queue)
    await scene.advance(1_000)

    const { expired, waits } = await scene.claim()

    assert.deepEqual([expired?.length, waits[0]?.reason], [1, 'paused'])
  }),

  'jobs expire in any place: behind others, in a lane, with a priority': plainCase(
    [expires, priority, groups],
    async (scene) => {
      await scene.add({ id: 'a' }, { id: 'b', expiresMs: 1_000 }, { id: 'c', expiresMs: 1_000, priority: 3 })
      await scene.add({ id: 'd', expiresMs: 1_000, group: 'x' }, { id: 'e', group: 'x' }, { id: 'f' })
      await scene.advance(1_000)

      const { claims, expired = [] } = await scene.claim()

      assert.deepEqual(
        expired.map(({ id }) => id),
        ['b', 'c', 'd'],
      )
      assert.deepEqual(claims.map(({ id }) => id).sort(), ['a', 'e', 'f'])
      assert.equal((await scene.depth()).ready, 0)
    },
  ),

  'an expired job takes no permit of a throttle': plainCase([expires, throttled], async (scene) => {
    const rules = [{ limit: 1, windowMs: 60_000, moderate: false }]
    await scene.openQueue({ throttle: { scope: scene.queue, by: 'queue', rules } })
    await scene.add({ id: 'a', expiresMs: 1_000 }, 'b')
    await scene.advance(1_000)

    assert.deepEqual(await scene.claimIds(), ['b'])
  }),

  'an expired job makes no room among running jobs, and takes none of it': plainCase(
    [expires, limited],
    async (scene) => {
      await scene.openQueue({ maxRunning: 1 })
      await scene.add('a', { id: 'b', expiresMs: 1_000 }, 'c')
      const claim = await scene.claimOne()
      await scene.advance(1_000)

      const full = await scene.claim()
      assert.deepEqual([full.claims, full.expired?.length], [[], 1])
      await scene.end(claim, { kind: 'complete' })
      assert.deepEqual(await scene.claimIds(), ['c'])
    },
  ),

  async 'an expired job makes room in a queue with maxPending'(scene) {
    await scene.openQueue({ maxPending: 1 })
    await scene.add({ id: 'a', expiresMs: 1_000 })
    await scene.advance(1_000)
    assert.deepEqual(await scene.enqueue(['b']), ['full'])
    await scene.claim({ limit: 0 })

    assert.deepEqual(await scene.enqueue(['b']), ['added'])
  },
})
