/** Contract cases: pushes into an ordered queue, and how they merge. */

import assert from 'node:assert/strict'
import { orderedCase, orderedConcern, records } from '../scenes/contract-case.js'
import { handed, scored, stampAt } from '../scenes/ordered-scene.js'

export const orderedMerging = orderedConcern('merging in an ordered queue', [], {
  async 'rule 1: a payload for an absent id makes a job, due as requested, that never failed'(scene) {
    const now = await scene.now()

    assert.equal(await scene.push('a', 'v1', { score: 1, delayMs: 5_000 }), 'added')

    const { state, payloads, attempt, crashes, stamp, createdAt, error } = await scene.live('a')
    assert.deepEqual(scored(payloads), ['v1 1'])
    assert.deepEqual(
      { state, attempt, crashes, stamp, createdAt, error },
      { state: 'scheduled', attempt: 1, crashes: 0, stamp: stampAt(now + 5_000), createdAt: now, error: null },
    )
  },

  async "rule 2: a payload merged into a waiting job changes only its payloads; with 'distinct' the lower score stays, and retry count and time too"(
    scene,
  ) {
    await scene.openQueue({ merge: 'distinct' })
    await scene.push('1', 'v1', { score: 1 })
    await scene.push('1', 'v2', { score: 2 })
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 20_000, error: 'the first' })
    const before = await scene.live('1')
    await scene.advance(1_000)

    const pushed = await scene.enqueue([
      { id: '1', payload: 'v2', score: 3, delayMs: 2_000 },
      { id: '1', payload: 'v3', score: 4, delayMs: 2_000 },
    ])

    assert.deepEqual(pushed, ['merged', 'merged'])
    const after = await scene.live('1')
    assert.deepEqual(scored(after.payloads), ['v1 1', 'v2 2', 'v3 4'])
    assert.equal(after.attempt, 2)
    assert.deepEqual({ ...after, payloads: before.payloads }, before)
  },

  async 'payloads are handed over from the lowest score to the highest, whenever they arrived'(scene) {
    await scene.push('a', 'v2', { score: 11 })
    await scene.push('a', 'v1', { score: 1 })
    await scene.push('a', 'v0', { score: -2.5 })
    assert.deepEqual(handed(await scene.claimOne()), ['v0', 'v1', 'v2'])
  },

  async 'payloads with the same score are handed over in the order of arrival'(scene) {
    for (const payload of ['z', 'a', 'm']) await scene.push('a', payload, { score: 7 })
    await scene.push('a', 'z', { score: 7 })
    assert.deepEqual(handed(await scene.claimOne()), ['z', 'a', 'm'])
  },

  async 'scores are kept to the last digit'(scene) {
    const given = [-1.5, 0, 0.1 + 0.2, 1_704_067_200_000.123, 2 ** 53 - 1, 1e300]
    await scene.enqueue(given.map((score) => ({ id: 'a', payload: `v${score}`, score })))
    assert.deepEqual(
      (await scene.claimOne()).payloads?.map(({ score }) => score),
      given,
    )
  },

  async 'each payload has its own codec and meta'(scene) {
    await scene.push('a', 'v1', { score: 1, meta: Uint8Array.of(0, 255), codec: 'raw' })
    await scene.push('a', 'v2', { score: 2, meta: 'm2' })
    const { payloads, payload, meta, codec } = await scene.claimOne()
    assert.deepEqual(
      payloads?.map(({ meta: of, ...rest }) => ({ ...rest, meta: [...Buffer.from(of!)] })),
      [
        { score: 1, payload: 'v1', codec: 'raw', meta: [0, 255] },
        { score: 2, payload: 'v2', meta: [...Buffer.from('m2')] },
      ],
    )
    assert.deepEqual([payload, meta, codec], ['', undefined, undefined])
  },

  async 'rule 3: payloads that arrive while their id runs wait next to it, due when the first of them is'(scene) {
    await scene.push('a', 'v1', { score: 1 })
    const claim = await scene.claimOne()
    await scene.advance(1_000)
    const now = await scene.now()

    assert.equal(await scene.push('a', 'v3', { score: 3, delayMs: 60_000 }), 'merged')
    assert.equal(await scene.push('a', 'v2', { score: 2 }), 'merged')

    const running = await scene.live('a')
    assert.deepEqual(scored(running.payloads), ['v1 1'])
    assert.deepEqual(scored(running.successor!.payloads), ['v2 2', 'v3 3'])
    assert.deepEqual([running.successor!.stamp, running.successor!.createdAt], [stampAt(now + 60_000), now])

    await scene.end(claim, { kind: 'complete' })
    const { state, stamp, attempt, createdAt } = await scene.live('a')
    assert.deepEqual(
      { state, stamp, attempt, createdAt },
      {
        ...{ state: 'scheduled', stamp: stampAt(now + 60_000), attempt: 1, createdAt: now },
      },
    )
  },

  async 'payloads waiting next to a running job are granted to nobody before its claim has ended'(scene) {
    await scene.push('a', 'v1')
    const claim = await scene.claimOne()
    await scene.push('a', 'v2')
    assert.deepEqual(await scene.claimIds(), [])
    assert.deepEqual(await scene.claimIds({ alone: true }), [])
    await scene.end(claim, { kind: 'complete' })
    assert.deepEqual(handed(await scene.claimOne()), ['v2'])
  },

  async 'rule 10: a payload without a score gets the time in ms, strictly growing, even within one call'(scene) {
    const now = await scene.now()
    await scene.enqueue(['v1', 'v2', 'v3'].map((payload) => ({ id: 'a', payload })))
    await scene.push('a', 'v4')
    await scene.push('b', 'v5')
    const payloads = [...(await scene.live('a')).payloads!, ...(await scene.live('b')).payloads!]
    const given = payloads.map(({ score }) => score)
    assert.deepEqual(
      payloads.map(({ payload }) => payload),
      ['v1', 'v2', 'v3', 'v4', 'v5'].map((v) => `text:${v}`),
    )
    assert.deepEqual(
      given,
      [...new Set(given)].sort((a, b) => a - b),
    )
    assert.ok(
      given.every((score) => score >= now && score < now + 1),
      'scores are ms since 1970',
    )
  },

  async 'a job without a time is ready at once, however many payloads came in the same millisecond'(scene) {
    for (let from = 0; from < 1_250; from += 250) {
      const payloads = Array.from({ length: 250 }, (_, i) => ({ id: 'a', payload: `v${from + i}` }))
      await scene.enqueue(payloads)
    }
    await scene.push('b', 'v')
    assert.deepEqual(await scene.claimIds(), ['a', 'b'])
  },

  async 'a delayed job has the time of its push as its score'(scene) {
    const now = await scene.now()
    await scene.push('a', 'v1', { delayMs: 60_000 })
    assert.deepEqual(scored((await scene.live('a')).payloads), [`v1 ${now}`])
  },

  async 'a call answers for each payload, in whatever order the shards are asked'(scene) {
    await scene.openQueue({ name: 'wide', shards: 3 })
    const ids = ['a', 'b', 'a', 'd', 'b', 'e', 'a']
    const pushed = await scene.enqueue(
      ids.map((id, i) => ({ id, payload: `v${i}` })),
      { queue: 'wide' },
    )
    assert.deepEqual(pushed, ['added', 'added', 'merged', 'added', 'merged', 'added', 'merged'])
  },

  async 'simultaneous pushes of many handles merge into one job that has them all'(scene) {
    const handles = await Promise.all([scene.harness.open(), scene.harness.open()])
    const job = { id: 'a', task: 'sync', priority: 0, rememberMs: 0 }
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        handles[i % 2]!.enqueue([
          { callId: `push-${i}`, queue: scene.queue, jobs: [{ ...job, payload: `v${i}`, score: i }] },
        ]),
      ),
    )
    assert.equal(answers.flat(2).filter((answer) => answer === 'added').length, 1)
    assert.equal(answers.flat(2).filter((answer) => answer === 'merged').length, 19)
    assert.equal((await scene.claimOne()).payloads?.length, 20)
  },

  async 'a repeated push gets its first answer and is not carried out again, even if its payload is finished'(scene) {
    const send = () => scene.enqueue([{ id: 'a', payload: 'v1' }], { callId: 'once' })
    assert.deepEqual(await send(), ['added'])
    assert.deepEqual(await send(), ['added'])
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    assert.deepEqual(await send(), ['added'])
    assert.deepEqual(await scene.told(), [])
  },

  async 'a repeated call over several shards is answered in every one of them'(scene) {
    await scene.openQueue({ name: 'wide', shards: 3 })
    const jobs = ['a', 'd', 'b', 'a'].map((id, i) => ({ id, payload: `v${i}` }))
    const send = () => scene.enqueue(jobs, { callId: 'once', queue: 'wide' })
    const first = await send()
    for (const claim of (await scene.claim({ queue: 'wide' })).claims) await scene.end(claim, { kind: 'complete' })
    assert.deepEqual(await send(), first)
    assert.deepEqual(await scene.told('wide'), [])
  },

  async 'an ended id is not remembered: it can come again at once'(scene) {
    for (const kind of ['complete', 'cancel'] as const) {
      assert.equal(await scene.push('a', 'v1'), 'added')
      await scene.end(await scene.claimOne(), { kind })
    }
    assert.deepEqual(await scene.rememberedIds(), [])
    assert.equal(await scene.push('a', 'v1'), 'added')
  },

  async "merge 'latest': only the waiting payload with the highest score is kept"(scene) {
    await scene.openQueue({ merge: 'latest' })
    await scene.push('a', 'v5', { score: 5 })
    assert.equal(await scene.push('a', 'v3', { score: 3 }), 'merged')
    assert.deepEqual(scored((await scene.live('a')).payloads), ['v5 5'])
    assert.equal(await scene.push('a', 'v7', { score: 7 }), 'merged')
    assert.deepEqual(scored((await scene.live('a')).payloads), ['v7 7'])
  },

  async "merge 'latest': after a failure the later of the claimed and the waiting payload goes on"(scene) {
    await scene.openQueue({ merge: 'latest' })
    await scene.push('a', 'v1', { score: 1 })
    const first = await scene.claimOne()
    await scene.push('a', 'v2', { score: 2 })
    assert.deepEqual(await scene.told(), ['a running: v1 + v2'])
    await scene.end(first, { kind: 'retry', delayMs: 0 })
    const second = await scene.claimOne()
    assert.deepEqual([handed(second), second.attempt], [['v2'], 2])
    await scene.push('a', 'v0', { score: 0 })
    await scene.end(second, { kind: 'retry', delayMs: 0 })
    assert.deepEqual(handed(await scene.claimOne()), ['v2'])
  },

  async 'an open without merge leaves it unchanged, and one with it changes it'(scene) {
    const merge = async () => (await scene.stored()).merge
    assert.equal(await merge(), 'all')
    await scene.openQueue({ merge: 'latest' })
    await scene.openQueue()
    assert.equal(await merge(), 'latest')
    await scene.openQueue({ merge: 'all' })
    assert.equal(await merge(), 'all')
  },

  async "after a failure the rule of now counts, though merge was 'latest' when the payloads came"(scene) {
    await scene.openQueue({ merge: 'latest' })
    await scene.push('a', 'v5', { score: 5 })
    const claim = await scene.claimOne()
    await scene.push('a', 'v1', { score: 1 })
    await scene.push('a', 'v2', { score: 2 })
    await scene.openQueue({ merge: 'distinct' })
    await scene.end(claim, { kind: 'retry', delayMs: 0 })
    assert.deepEqual(await scene.told(), ['a ready: v2 v5'])
  },

  async "payloads from before merge was 'latest' are merged with the next arrival, even if that equals one of them"(
    scene,
  ) {
    await scene.pushAll('a', ['v0', 'v1', 'v2'])
    await scene.openQueue({ merge: 'latest' })
    assert.deepEqual(await scene.told(), ['a ready: v0 v1 v2'])
    await scene.push('a', 'v0', { score: 0 })
    assert.deepEqual(scored((await scene.live('a')).payloads), ['v2 2'])
  },

  async 'maxPending limits waiting payloads, including those next to a running job'(scene) {
    await scene.openQueue({ maxPending: 3 })
    await scene.pushAll('a', ['v0', 'v1', 'v2'])
    assert.equal(await scene.push('a', 'v3'), 'full')
    assert.equal(await scene.push('b', 'v0'), 'full')
    await scene.take(2)
    assert.deepEqual(await scene.enqueue([{ id: 'a', payload: 'v3' }, { id: 'b' }]), ['merged', 'added'])
    assert.equal(await scene.push('a', 'v4'), 'full')
    assert.deepEqual(await scene.told(), ['a running: v0 v1 + v2 v3', 'b ready: {"to":"b"}'])
  },

  async "merge 'latest': a waiting id takes no more room, whatever arrives for it"(scene) {
    await scene.openQueue({ merge: 'latest', maxPending: 1 })
    const jobs = [
      { id: 'a', payload: 'v1' },
      { id: 'a', payload: 'v2' },
    ]
    assert.deepEqual(await scene.enqueue(jobs), ['added', 'merged'])
    assert.equal(await scene.push('a', 'v3'), 'merged')
    assert.equal(await scene.push('b', 'v1'), 'full')
  },

  async 'each shard has its share of maxPending, rounded up, and refuses separately'(scene) {
    await scene.openQueue({ name: 'wide', shards: 2, maxPending: 3 })
    // By crc32 a and b are in shard 1, d in shard 0.
    const jobs = ['a', 'b', 'd'].map((id) => ({ id, payload: 'v0' }))
    assert.deepEqual(await scene.enqueue(jobs, { queue: 'wide' }), ['added', 'added', 'added'])
    const more = ['a', 'd'].map((id) => ({ id, payload: 'v1' }))
    assert.deepEqual(await scene.enqueue(more, { queue: 'wide' }), ['full', 'merged'])
    assert.deepEqual(await scene.told('wide'), ['d ready: v0 v1', 'a ready: v0', 'b ready: v0'])
  },

  'a draining queue refuses even payloads that would merge, and still runs waiting jobs': orderedCase(
    [records],
    async (scene) => {
      await scene.push('a', 'v1')
      await scene.records.drain(scene.queue)
      assert.equal(await scene.push('a', 'v2'), 'draining')
      assert.equal(await scene.push('a', 'v1'), 'draining')
      assert.deepEqual(handed(await scene.claimOne()), ['v1'])
      assert.equal(await scene.push('a', 'v2'), 'draining')
      await scene.records.resume(scene.queue)
      assert.equal(await scene.push('a', 'v2'), 'merged')
    },
  ),
})
