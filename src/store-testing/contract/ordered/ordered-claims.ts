/** Contract cases: claims on an ordered queue. */

import assert from 'node:assert/strict'
import { slicesOf } from '../../../core/values/pages.js'
import { orderedCase, orderedConcern, workers } from '../scenes/contract-case.js'
import { handed, scored, stampAt } from '../scenes/ordered-scene.js'

export const orderedClaims = orderedConcern('claiming of an ordered queue', [], {
  async 'rule 4: a claim takes all payloads of an id; retry count and time stay with it'(scene) {
    await scene.pushAll('a', ['v0', 'v1'])
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 5_000, error: 'the first' })
    const due = (await scene.now()) + 5_000
    await scene.push('a', 'v2')
    await scene.advance(60_000)

    const { payloads, hasMore, attempt, crashes, runAt, error, task, priority } = await scene.claimOne()

    assert.deepEqual(
      payloads?.map(({ payload }) => payload),
      ['v0', 'v1', 'v2'],
    )
    assert.deepEqual(
      { hasMore, attempt, crashes, runAt, error, task, priority },
      {
        ...{
          hasMore: undefined,
          attempt: 2,
          crashes: 0,
          runAt: due,
          error: 'the first',
          task: 'send-mail',
          priority: 0,
        },
      },
    )
    const { state, stamp, successor } = await scene.live('a')
    assert.deepEqual({ state, stamp, successor }, { state: 'running', stamp: stampAt(due), successor: null })
  },

  async 'once a claim has a job, nothing is said of a shard that is not there'(scene) {
    await scene.openQueue({ name: 'other' })
    await scene.push('a', 'v0')

    const from = [
      { queue: scene.queue, limit: 2 },
      { queue: 'other', shard: 5, limit: 2 },
    ]
    const { claims, waits } = await scene.claim({ from })

    const ofOther = waits.filter(({ queue }) => queue === 'other')
    assert.deepEqual([claims.map(({ id }) => id), ofOther], [['a'], []])
  },

  async 'one claim takes as many ids as the store allows, in order'(scene) {
    const { maxBatch, maxClaim } = scene.store.traits
    const ids = Array.from({ length: maxClaim + 1 }, (_, i) => `id-${i}`)
    for (const some of slicesOf(ids, maxBatch)) await scene.add(...some)

    const { claims, more } = await scene.claim({ limit: maxClaim })

    assert.deepEqual([claims.map(({ id }) => id), more], [ids.slice(0, -1), true])
  },

  async 'an id never runs twice at once, however many claim it'(scene) {
    await scene.pushAll('a', ['v0', 'v1', 'v2'])
    const handles = await Promise.all([scene.harness.open(), scene.harness.open()])
    const from = [{ queue: scene.queue, limit: 20, maxPayloads: 1 }]
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) => handles[i % 2]!.claim(from, { worker: `worker-${i}`, leaseMs: 30_000 })),
    )
    assert.equal(answers.flatMap(({ claims }) => claims).length, 1)
  },

  async 'maxPayloads hands over the oldest payloads; the rest waits, and the claim says that there are more'(scene) {
    await scene.pushAll('a', ['v0', 'v1', 'v2'])
    const claim = await scene.take(2)
    assert.deepEqual([handed(claim), claim.hasMore], [['v0', 'v1'], true])
    assert.deepEqual(await scene.told(), ['a running: v0 v1 + v2'])
  },

  async 'the rest after maxPayloads is due at once when the claim completes, with attempt 1 and the age of its job'(
    scene,
  ) {
    const createdAt = await scene.now()
    await scene.pushAll('a', ['v0', 'v1', 'v2'])
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, error: 'the first' })
    await scene.advance(7_000)
    const claim = await scene.take(1)
    const claimedAt = await scene.now()
    await scene.advance(1_000)
    await scene.end(claim, { kind: 'complete' })

    const next = await scene.live('a')
    assert.deepEqual(
      [next.state, next.attempt, next.crashes, next.error, next.createdAt, Math.floor(next.stamp / 1_000)],
      ['ready', 1, 0, null, createdAt, claimedAt],
    )
    assert.deepEqual(handed(await scene.take(1)), ['v1'])
  },

  async 'the rest after maxPayloads is merged with the claimed payloads when the claim fails'(scene) {
    await scene.pushAll('a', ['v0', 'v1', 'v2'])
    const claim = await scene.take(1)
    await scene.push('a', 'v-1', { score: -1 })
    await scene.end(claim, { kind: 'retry', delayMs: 0 })
    const { payloads, attempt } = await scene.live('a')
    assert.deepEqual([scored(payloads), attempt], [['v-1 -1', 'v0 0', 'v1 1', 'v2 2'], 2])
  },

  async 'new payloads join the rest after maxPayloads, and take its time'(scene) {
    await scene.pushAll('a', ['v0', 'v1'])
    const claim = await scene.take(1)
    await scene.push('a', 'v9', { score: 9, delayMs: 60_000 })
    assert.deepEqual(await scene.told(), ['a running: v0 + v1 v9'])
    await scene.end(claim, { kind: 'complete' })
    assert.deepEqual(await scene.told(), ['a ready: v1 v9'])
  },

  async 'without maxPayloads, with a larger one, and with Infinity all payloads are handed over'(scene) {
    for (const maxPayloads of [undefined, 3, 4, Number.POSITIVE_INFINITY]) {
      await scene.pushAll('a', ['v0', 'v1', 'v2'])
      const bound = maxPayloads === undefined ? {} : { maxPayloads }
      const claim = await scene.claimOne({ from: [{ queue: scene.queue, limit: 1, ...bound }] })
      assert.deepEqual([handed(claim), claim.hasMore], [['v0', 'v1', 'v2'], undefined])
      await scene.end(claim, { kind: 'complete' })
    }
  },

  async 'scores are returned to the last bit, and payloads are in order'(scene) {
    const scores = [
      ...[-Number.MAX_VALUE, -1e-17, -5e-324, 0, 5e-324, 1e-300, 1e-17, 2 ** -53, 0.1 + 0.2],
      ...[1 - 2 ** -53, 1, 1 + 2 ** -52, 2 - 2 ** -52, 2 ** 53 + 2, Number.MAX_VALUE],
    ]
    for (const score of [...scores].reverse()) await scene.push('a', `${score}`, { score })
    await scene.push('b', 'v', { score: -0 })

    // Each payload also keeps its place after a claim that took only some.
    await scene.end(await scene.take(3), { kind: 'retry', delayMs: 0 })
    const { claims } = await scene.claim({ limit: 2 })

    const [b, a] = claims
    assert.deepEqual(
      [a, b].map((claim) => claim!.payloads!.map(({ score }) => score)),
      [scores, [0]],
    )
  },

  async 'maxPayloads applies to each id of a batch'(scene) {
    await scene.pushAll('a', ['v0', 'v1'])
    await scene.pushAll('b', ['v0', 'v1'])
    const { claims } = await scene.claim({ from: [{ queue: scene.queue, limit: 5, maxPayloads: 1 }] })
    assert.deepEqual(claims.map(handed), [['v0'], ['v0']])
  },

  async 'jobs are granted by their time, and at the same time by the bytes of their id'(scene) {
    const now = await scene.now()
    const later = ['\u{1f388}', 'z', '\uffee', 'É', 'A', 'ab', 'a']
    for (const id of later) await scene.push(id, 'v', { runAt: now - 1_000 })
    await scene.push('first', 'v', { runAt: now - 2_000 })
    await scene.push('last', 'v')
    assert.deepEqual(await scene.claimIds(), ['first', 'A', 'a', 'ab', 'z', 'É', '\uffee', '\u{1f388}', 'last'])
  },

  async 'a job is never granted early, and at its time to the millisecond'(scene) {
    await scene.push('a', 'v', { delayMs: 5_000 })
    await scene.advance(4_999)
    const { waits } = await scene.claim()
    assert.deepEqual(waits, [{ queue: scene.queue, shard: 0, reason: 'scheduled', forMs: 1, lead: true }])
    await scene.advance(1)
    assert.deepEqual(await scene.claimIds(), ['a'])
  },

  async 'a claim by shard is granted only that shard'(scene) {
    await scene.openQueue({ name: 'wide', shards: 2 })
    await scene.enqueue(['a', 'b', 'd', 'e'], { queue: 'wide' })
    const of = (shard: number) => scene.claimIds({ from: [{ queue: 'wide', shard, limit: 10 }] })
    assert.deepEqual(await of(1), ['a', 'b'])
    assert.deepEqual(await of(1), [])
    assert.deepEqual(await of(0), ['d', 'e'])
  },

  async 'adjacent shards in a claim are one queue: the limit is filled from one after the other'(scene) {
    await scene.openQueue({ name: 'wide', shards: 2 })
    await scene.enqueue(['a', 'b', 'd', 'e'], { queue: 'wide' })
    const from = [1, 0].map((shard) => ({ queue: 'wide', shard, limit: 3 }))
    assert.deepEqual(await scene.claimIds({ from }), ['a', 'b', 'd'])
    assert.deepEqual(await scene.claimIds({ from: [{ queue: 'wide', limit: 3 }] }), ['e'])
  },

  async 'a claim without a shard asks all of them, from the first on'(scene) {
    await scene.openQueue({ name: 'wide', shards: 2 })
    await scene.enqueue(['a', 'b', 'd', 'e'], { queue: 'wide' })
    const claimed = await scene.claim({ queue: 'wide', limit: 3 })
    assert.deepEqual([claimed.claims.map(({ id }) => id), claimed.more], [['d', 'e', 'a'], true])
  },

  async 'only the first queue with something to grant grants, ordered or plain'(scene) {
    await scene.openQueue({ name: 'plain', kind: 'plain' })
    await scene.push('a', 'v')
    await scene.enqueue(['b'], { queue: 'plain' })
    const from = ['orders', 'plain', 'orders'].map((queue) => ({ queue, limit: 5 }))
    const first = await scene.claim({ from })
    assert.deepEqual([first.queue, first.claims.map(({ id }) => id)], ['orders', ['a']])
    const second = await scene.claim({ from })
    assert.deepEqual([second.queue, second.claims.map(({ id }) => id)], ['plain', ['b']])
  },

  async 'a missing shard is empty'(scene) {
    await scene.push('a', 'v')
    const { claims, waits } = await scene.claim({ from: [{ queue: scene.queue, shard: 7, limit: 1 }] })
    assert.deepEqual([claims, waits], [[], [{ queue: scene.queue, shard: 7, reason: 'empty' }]])
  },

  async 'a claim alone takes one job of all shards'(scene) {
    await scene.openQueue({ name: 'wide', shards: 2 })
    await scene.enqueue(['a', 'd'], { queue: 'wide' })
    assert.deepEqual(await scene.claimIds({ queue: 'wide', alone: true }), ['d'])
  },

  async 'the ages of the oldest ready jobs are returned shard by shard'(scene) {
    await scene.openQueue({ name: 'wide', shards: 3 })
    const now = await scene.now()
    await scene.enqueue(
      [
        { id: 'a', runAt: now - 4_000 },
        { id: 'b', runAt: now - 9_000 },
      ],
      { queue: 'wide' },
    )
    const { heads } = await scene.claim({ from: [{ queue: 'wide', limit: 0 }], heads: true })
    assert.deepEqual(heads, [
      { queue: 'wide', shard: 0, ageMs: 4_000 },
      { queue: 'wide', shard: 1 },
      { queue: 'wide', shard: 2, ageMs: 9_000 },
    ])
  },

  async 'every claim of an id has a greater fence than the previous one'(scene) {
    await scene.push('a', 'v')
    let last = 0
    for (let i = 0; i < 4; i++) {
      const claim = await scene.claimOne()
      assert.ok(claim.fence > last)
      last = claim.fence
      await scene.push('a', `v${i}`)
      await scene.end(claim, i % 2 === 0 ? { kind: 'complete' } : { kind: 'retry', delayMs: 0 })
    }
  },

  'the death of a worker becomes the error of the buried payload, and not of the rest': orderedCase(
    [workers],
    async (scene) => {
      await scene.openQueue({ maxCrashes: 1 })
      await scene.pushAll('a', ['v0', 'v1'])
      const { queue, id, fence } = await scene.take(Number.POSITIVE_INFINITY, { alone: true })
      await scene.workers.gone([{ queue, id, fence }], 'worker-1', 'exited with code 134')

      assert.deepEqual([(await scene.dead('a')).error, (await scene.live('a')).error], ['exited with code 134', null])
    },
  ),
})
