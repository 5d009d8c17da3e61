/** Contract cases: jobs that replace waiting jobs of the same id. */

import assert from 'node:assert/strict'
import {
  exactEnqueue,
  expires,
  fenced,
  groups,
  inOrder,
  plainCase,
  plainConcern,
  priority,
  records,
  tellsCrashes,
} from '../scenes/contract-case.js'

const ifWaiting = 'replace'

export const replacing = plainConcern('replacing', [exactEnqueue], {
  'a waiting job is replaced in all its fields, and keeps its creation time': plainCase(
    [exactEnqueue, records, priority, groups],
    async (scene) => {
      await scene.add({ id: 'a', payload: '1', meta: '{"by":"first"}', priority: 3, rememberMs: 1_000 })
      const { createdAt } = await scene.job('a')
      await scene.advance(500)

      const other = { task: 'resize', payload: '2', meta: '{"by":"second"}', priority: -1, group: 'x' }
      const answers = await scene.enqueue([{ id: 'a', ...other, rememberMs: 2_000, delayMs: 4_000, ifWaiting }])

      assert.deepEqual(answers, ['replaced'])
      const record = await scene.records.get(scene.queue, 'a')
      assert.deepEqual({ ...record, ...other }, record)
      assert.deepEqual(
        [record?.state, record?.createdAt, record?.updatedAt, record?.runAt],
        ['scheduled', createdAt, createdAt + 500, createdAt + 4_500],
      )
      assert.equal((await scene.job('a')).rememberMs, 2_000)
    },
  ),

  async 'a replacement with a delay puts the job off again: a debounce'(scene) {
    const call = (n: number) => scene.enqueue([{ id: 'a', payload: `${n}`, delayMs: 1_000, ifWaiting }])
    assert.deepEqual(await call(1), ['added'])
    for (const n of [2, 3, 4]) {
      await scene.advance(900)
      assert.deepEqual(await call(n), ['replaced'])
      assert.deepEqual(await scene.claimIds(), [])
    }
    await scene.advance(1_000)

    assert.equal((await scene.claimOne()).payload, '4')
  },

  'a replacement without a delay goes behind the ready jobs': plainCase([exactEnqueue, inOrder], async (scene) => {
    await scene.add('a', 'b')
    await scene.enqueue([{ id: 'a', ifWaiting }])

    assert.deepEqual(await scene.claimIds(), ['b', 'a'])
  }),

  async 'the claim of a replaced job has the new payload, and the creation time of the first'(scene) {
    await scene.add({ id: 'a', payload: '1' })
    const { createdAt } = await scene.job('a')
    await scene.advance(500)
    await scene.enqueue([{ id: 'a', payload: '2', ifWaiting }])

    const claim = await scene.claimOne()

    assert.deepEqual([claim.payload, claim.createdAt, claim.runAt], ['2', createdAt, createdAt + 500])
    await scene.end(claim, { kind: 'complete' })
    assert.deepEqual(await scene.states(), [])
  },

  'a running job is not replaced': plainCase([exactEnqueue, fenced], async (scene) => {
    await scene.add('a')
    const running = await scene.claimOne()

    assert.deepEqual(await scene.enqueue([{ id: 'a', payload: '2', ifWaiting }]), ['duplicate'])
    assert.equal((await scene.job('a')).payload, 'text:{"to":"a"}')
    await scene.end(running, { kind: 'complete' })
  }),

  async 'an ended job is forgotten by a replacement, with or without a kept result'(scene) {
    await scene.add({ id: 'a', rememberMs: 60_000 }, { id: 'b', rememberMs: 60_000 })
    const { claims } = await scene.claim()
    await scene.end(claims[0]!, { kind: 'complete' })
    await scene.end(claims[1]!, { kind: 'complete', result: { payload: '7' } })
    assert.deepEqual(await scene.enqueue(['a', 'b']), ['duplicate', 'duplicate'])

    const again = ['a', 'b'].map((id) => ({ id, payload: '2', ifWaiting }) as const)
    assert.deepEqual(await scene.enqueue(again), ['added', 'added'])
    assert.deepEqual(
      (await scene.claim()).claims.map(({ id, payload }) => `${id} ${payload}`),
      ['a 2', 'b 2'],
    )
  },

  'a dead job is replaced by a new one, and leaves the morgue': plainCase([exactEnqueue, records], async (scene) => {
    await scene.addDead('a')
    await scene.advance(500)
    const now = await scene.now()

    assert.deepEqual(await scene.enqueue([{ id: 'a', payload: '2', ifWaiting }]), ['replaced'])
    const { dead, ready, fresh } = await scene.depth()
    assert.deepEqual({ dead, ready, fresh }, { dead: 0, ready: 1, fresh: 1 })
    const { payload, attempt, crashes, createdAt, error } = await scene.claimOne()
    assert.deepEqual(
      { payload, attempt, crashes, createdAt, error },
      { payload: '2', attempt: 1, crashes: 0, createdAt: now, error: undefined },
    )
  }),

  'without a replacement, a dead job is left alone and named in the answer': plainCase(
    [exactEnqueue, records],
    async (scene) => {
      await scene.addDead('a')

      assert.deepEqual(await scene.enqueue(['a', 'b', 'a']), ['dead', 'added', 'dead'])
      assert.equal((await scene.depth()).dead, 1)
    },
  ),

  'the place of a dead job needs room in a queue with maxPending': plainCase([exactEnqueue, records], async (scene) => {
    await scene.openQueue({ maxPending: 2 })
    await scene.addDead('dead')
    await scene.add('a')
    const dead = { id: 'dead', payload: '2', ifWaiting } as const

    assert.deepEqual(await scene.enqueue([dead, 'b']), ['full', 'full'])
    assert.deepEqual(await scene.enqueue([dead, dead]), ['replaced', 'replaced'])
    assert.deepEqual(await scene.enqueue([dead, 'b']), ['full', 'full'])
    assert.deepEqual(await scene.enqueue([dead]), ['replaced'])
    assert.equal((await scene.depth()).ready, 2)
  }),

  async 'a longest delay keeps a job from being put off for ever, counted from the first enqueue'(scene) {
    const bounded = { id: 'a', delayMs: 1_000, atMostMs: 2_500, ifWaiting } as const
    await scene.enqueue([bounded])
    const first = await scene.now()
    for (const due of [1_900, 2_500]) {
      await scene.advance(900)
      assert.deepEqual(await scene.enqueue([bounded]), ['replaced'])
      assert.equal((await scene.job('a')).stamp, (first + due) * 1_000)
    }
    await scene.advance(900)
    assert.deepEqual(await scene.enqueue([bounded]), ['replaced'])

    assert.deepEqual(await scene.claimIds(), ['a'])
  },

  async 'a longest delay counts for the job that has it, not for a later one'(scene) {
    await scene.enqueue([{ id: 'a', delayMs: 1_000, atMostMs: 1_500, ifWaiting }])
    await scene.advance(900)
    await scene.enqueue([{ id: 'a', delayMs: 1_000, ifWaiting }])
    await scene.advance(900)
    assert.deepEqual(await scene.claimIds(), [])
    await scene.enqueue([{ id: 'a', delayMs: 1_000, atMostMs: 1_500, ifWaiting }])

    assert.deepEqual(await scene.claimIds(), ['a'])
  },

  async 'a missing or forgotten id is added'(scene) {
    await scene.add({ id: 'a', rememberMs: 1_000 })
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    await scene.advance(1_000)

    assert.deepEqual(
      await scene.enqueue([
        { id: 'a', ifWaiting },
        { id: 'b', ifWaiting },
      ]),
      ['added', 'added'],
    )
  },

  'a replaced job that failed or crashed starts over': plainCase([exactEnqueue, tellsCrashes], async (scene) => {
    await scene.addSuspects('a')
    await scene.add('b')
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 10_000, error: 'broken' })
    await scene.enqueue([
      { id: 'a', ifWaiting },
      { id: 'b', ifWaiting },
    ])

    const { suspects, retries, fresh } = await scene.depth()
    assert.deepEqual({ suspects, retries, fresh }, { suspects: 0, retries: 0, fresh: 2 })
    const { claims } = await scene.claim()
    assert.deepEqual(
      claims.map(({ id, attempt, crashes, error }) => ({ id, attempt, crashes, error })),
      ['a', 'b'].map((id) => ({ id, attempt: 1, crashes: 0, error: undefined })),
    )
  }),

  'checkpoint and log of an attempt are dropped when its job is replaced': plainCase(
    [exactEnqueue, records, tellsCrashes],
    async (scene) => {
      await scene.add('a')
      const claim = await scene.claimOne()
      await scene.extend(claim, { beat: { startedMs: 0, checkpoint: { payload: '7' }, log: 'half way' } })
      await scene.end(claim, { kind: 'retry', delayMs: 0 })
      await scene.enqueue([{ id: 'a', ifWaiting }])

      assert.equal((await scene.claimOne()).checkpoint, undefined)
      assert.equal((await scene.records.get(scene.queue, 'a'))?.log, undefined)
    },
  ),

  async 'the last of several replacements in one call counts'(scene) {
    const answers = await scene.enqueue([
      { id: 'a', payload: '1' },
      { id: 'a', payload: '2', ifWaiting },
      { id: 'a', payload: '3' },
      { id: 'b', payload: '4', ifWaiting },
      { id: 'a', payload: '5', delayMs: 1_000, ifWaiting },
    ])

    assert.deepEqual(answers, ['added', 'replaced', 'duplicate', 'added', 'replaced'])
    const jobs = (await scene.stored()).jobs.map(({ id, state, payload }) => `${id} ${state} ${payload}`)
    assert.deepEqual(jobs, ['a scheduled text:5', 'b ready text:4'])
    assert.deepEqual(await scene.claimIds(), ['b'])
  },

  async 'the calls of one trip apply in order'(scene) {
    const calls = [1, 2, 3].map((n) => ({
      callId: `trip-${n}`,
      queue: scene.queue,
      jobs: [{ id: 'a', task: 'send', payload: `${n}`, priority: 0, rememberMs: 0, ifWaiting } as const],
    }))

    assert.deepEqual(await scene.store.enqueue(calls), [['added'], ['replaced'], ['replaced']])
    assert.equal((await scene.claimOne()).payload, '3')
    assert.deepEqual(await scene.claimIds(), [])
  },

  async 'a repeated call does not replace again'(scene) {
    await scene.add({ id: 'a', payload: '1' })
    const [second, third] = [{ callId: 'second' }, { callId: 'third' }]
    await scene.enqueue([{ id: 'a', payload: '2', ifWaiting }], second)
    await scene.enqueue([{ id: 'a', payload: '3', ifWaiting }], third)

    assert.deepEqual(await scene.enqueue([{ id: 'a', payload: '2', ifWaiting }], second), ['replaced'])
    assert.equal((await scene.claimOne()).payload, '3')
  },

  async 'a replacement needs no room in a queue with maxPending, and a draining queue refuses it'(scene) {
    await scene.openQueue({ maxPending: 2 })
    await scene.add('a', 'b')
    const again = { id: 'a', payload: '2', ifWaiting } as const

    assert.deepEqual(await scene.enqueue([again]), ['replaced'])
    assert.deepEqual(await scene.enqueue([again, again, 'c']), ['full', 'full', 'full'])
    const { ready } = await scene.depth()
    assert.equal(ready, 2)
    if (scene.store.records === undefined) return
    await scene.records.drain(scene.queue)
    assert.deepEqual(await scene.enqueue([again]), ['draining'])
  },

  'a replacement also replaces the expiry': plainCase([exactEnqueue, expires], async (scene) => {
    await scene.add({ id: 'a', expiresMs: 1_000 }, { id: 'b' })
    await scene.enqueue([
      { id: 'a', ifWaiting },
      { id: 'b', expiresMs: 1_000, ifWaiting },
    ])
    await scene.advance(1_000)

    const { claims, expired = [] } = await scene.claim()

    assert.deepEqual([claims.map(({ id }) => id), expired.map(({ id }) => id)], [['a'], ['b']])
  }),

  'a replaced job moves from the lane of its group to that of the new one': plainCase(
    [exactEnqueue, groups],
    async (scene) => {
      await scene.add({ id: 'a', group: 'x' }, { id: 'b', group: 'x' }, { id: 'c', group: 'y' })
      await scene.enqueue([{ id: 'a', group: 'y', ifWaiting }])

      assert.deepEqual(await scene.claimIds(), ['b', 'c', 'a'])
    },
  ),
})
