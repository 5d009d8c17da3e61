/** Contract cases: the shards of an ordered queue, how their number changes, and how jobs move between queues. */

import assert from 'node:assert/strict'
import { ConfigConflictError, InvalidArgumentError } from '../../../core/errors.js'
import type { Step } from '../../../stores/contract/job-records.js'
import { exactDepth, orderedCase, orderedConcern, records } from '../scenes/contract-case.js'
import { handed, type OrderedScene, scored } from '../scenes/ordered-scene.js'

/** Calls again while there is more; resolves with the total of changes. */
async function toTheEnd(step: () => Promise<Step>): Promise<number> {
  let changed = 0
  for (let i = 0; i < 1_000; i++) {
    const { more, ...done } = await step()
    changed += done.changed
    if (!more) return changed
  }
  throw new Error('it comes to no end')
}

/** One job in every waiting state, with a history, and an entry in the morgue next to one of them. */
async function mixed(scene: OrderedScene): Promise<void> {
  await scene.push('done', 'v0')
  await scene.end(await scene.claimOne(), { kind: 'complete' })
  await scene.bury('a', ['v0', 'v1'], 'broken')
  await scene.advance(1_000)
  await scene.pushAll('d', ['v0', 'v1'])
  await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 600_000, error: 'the first' })
  await scene.addSuspects({ id: 'e', payload: 'v0', score: 0 })
  await scene.push('a', 'v2', { score: 2, meta: 'm' })
  await scene.push('\uffee', Uint8Array.of(0, 255), { score: 0.5, codec: 'raw' })
  await scene.push('b', 'v0', { delayMs: 300_000 })
}

/** All jobs by id, from all shards. */
async function jobsOf(scene: OrderedScene, queue = scene.queue) {
  const jobs = (await scene.shards(queue)).flatMap(({ jobs }) => jobs)
  return jobs.sort((a, b) => Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)) || (a.state === 'dead' ? 1 : -1))
}

const lowkiq = {
  '0': [4, 2],
  '1': [3, 2],
  '2': [2, 1],
  '3': [1, 1],
  '4': [3, 1],
  '5': [1, 1],
  abc: [3, 0],
  'order-42': [2, 1],
}

export const orderedShards = orderedConcern('shards of an ordered queue', [records], {
  'an id is in the shard crc32(id) mod their number, as in Lowkiq': orderedCase([], async (scene) => {
    for (const [name, shards, at] of [
      ['five', 5, 0],
      ['three', 3, 1],
    ] as const) {
      await scene.openQueue({ name, shards })
      await scene.enqueue(Object.keys(lowkiq), { queue: name })
      const found = (await scene.shards(name)).flatMap(({ shard, jobs }) => jobs.map(({ id }) => [id, shard]))
      assert.deepEqual(
        Object.fromEntries(found),
        Object.fromEntries(Object.entries(lowkiq).map(([id, places]) => [id, places[at]])),
      )
    }
  }),

  'the shard of an id depends on its bytes in UTF-8': orderedCase([], async (scene) => {
    await scene.openQueue({ name: 'wide', shards: 3 })
    await scene.enqueue(['É', '\u{1f388}', '\uffee'], { queue: 'wide' })
    const found = (await scene.shards('wide')).map(({ jobs }) => jobs.map(({ id }) => id))
    assert.deepEqual(found, [[], ['\u{1f388}'], ['É', '\uffee']])
  }),

  'lag is that of the oldest due job, for the queue and each shard; delayed jobs have none': orderedCase(
    [],
    async (scene) => {
      await scene.openQueue({ name: 'wide', shards: 3 })
      const now = await scene.now()
      await scene.enqueue([{ id: 'a', runAt: now - 10_000 }, { id: 'd' }, { id: 'b', delayMs: 1_000 }], {
        queue: 'wide',
      })
      const { lagMs, shardLagsMs } = await scene.depth('wide')
      assert.deepEqual([lagMs, shardLagsMs], [10_000, [10_000, 0, 0]])
    },
  ),

  'depth counts jobs and waiting payloads over all shards: running ones separately, fresh and retried ones as waiting':
    orderedCase([exactDepth], async (scene) => {
      await scene.openQueue({ name: 'wide', shards: 2 })
      const push = (id: string, payloads: string[], delayMs = 0) =>
        scene.enqueue(
          payloads.map((payload) => ({ id, payload, delayMs })),
          { queue: 'wide' },
        )
      await push('a', ['v0'])
      await scene.end(await scene.claimOne({ queue: 'wide' }), { kind: 'retry', delayMs: 1_000 })
      await push('b', ['v0', 'v1', 'v2'])
      await scene.claimOne({ from: [{ queue: 'wide', limit: 1, maxPayloads: 1 }] })
      await push('b', ['v3'])
      await push('d', ['v0', 'v1'], 60_000)
      await push('e', ['v0'])

      const { ready, scheduled, running, payloads, fresh, retries } = await scene.depth('wide')

      assert.deepEqual(
        { ready, scheduled, running, payloads, fresh, retries },
        {
          ...{ ready: 1, scheduled: 2, running: 1, payloads: 7, fresh: 2, retries: 1 },
        },
      )
    }),

  async 'an action on a queue applies to all its shards'(scene) {
    await scene.openQueue({ name: 'wide', shards: 3 })
    await scene.enqueue(['a', 'b', '\u{1f388}'], { queue: 'wide' })
    await scene.records.pause('wide')
    const { claims, waits } = await scene.claim({ queue: 'wide' })
    assert.deepEqual(
      [claims, waits.map(({ shard, reason }) => [shard, reason])],
      [...[[], [0, 1, 2].map((shard) => [shard, 'paused'])]],
    )
    await scene.records.drain('wide')
    assert.deepEqual(await scene.enqueue(['d', 'b'], { queue: 'wide' }), ['draining', 'draining'])
    await scene.records.resume('wide')
    assert.deepEqual(await scene.records.bury('wide', 'all'), { changed: 3, more: false })
  },

  ...Object.fromEntries(
    [1, 2, 5].map((count) => [
      `resharded from 1 over 3 to ${count} every job keeps its payloads, times and counts, dead ones too`,
      orderedCase([records], async (scene) => {
        await mixed(scene)
        const before = await jobsOf(scene)
        const { shardLagsMs: _, ...depth } = await scene.depth()

        for (const shards of [3, count])
          assert.equal(await toTheEnd(() => scene.records.reshard(scene.queue, shards)), 6)

        assert.deepEqual(await jobsOf(scene), before)
        assert.equal((await scene.shards()).length, count)
        assert.equal((await scene.openQueue()).shards, count)
        const { shardLagsMs, ...after } = await scene.depth()
        assert.deepEqual([after, shardLagsMs?.length], [depth, count])
        assert.deepEqual(await scene.records.reshard(scene.queue, count), { changed: 0, more: false })
      }),
    ]),
  ),

  async 'a reshard waits for running jobs; meanwhile nothing is granted, and pushes are accepted'(scene) {
    await scene.push('a', 'v0')
    const claim = await scene.claimOne()
    await scene.push('b', 'v0')

    assert.equal((await scene.records.reshard(scene.queue, 2)).more, true)

    const { claims, waits } = await scene.claim()
    assert.deepEqual(claims, [])
    assert.ok(waits.length > 0 && waits.every(({ reason }) => reason === 'paused'))
    assert.deepEqual(await scene.enqueue(['c', { id: 'a', payload: 'v1' }]), ['added', 'merged'])
    assert.equal(await scene.extend(claim), 'ok')
    assert.equal((await scene.records.reshard(scene.queue, 2)).more, true)
    await scene.end(claim, { kind: 'complete' })
    assert.deepEqual(await scene.claimIds(), [])

    await toTheEnd(() => scene.records.reshard(scene.queue, 2))

    const claimed = await scene.claim()
    assert.deepEqual(claimed.claims.map(({ id }) => id).sort(), ['a', 'b', 'c'])
    assert.deepEqual(handed(claimed.claims.find(({ id }) => id === 'a')!), ['v1'])
  },

  async 'a reshard continues if the worker of a running job is lost: its lease ends, and is recovered'(scene) {
    await scene.push('a', 'v0')
    await scene.claimOne({ leaseMs: 5_000 })
    assert.equal((await scene.records.reshard(scene.queue, 3)).more, true)
    await scene.advance(5_000)
    assert.equal((await scene.claim()).crashed.length, 1)
    await toTheEnd(() => scene.records.reshard(scene.queue, 3))
    assert.deepEqual(await scene.claimIds({ alone: true }), ['a'])
  },

  async 'during a reshard its number is shown, and another one is refused, even the former one'(scene) {
    await scene.push('a', 'v0')
    const claim = await scene.claimOne()
    await scene.records.reshard(scene.queue, 2)
    assert.equal((await scene.records.queues()).find(({ name }) => name === scene.queue)?.resharding, 2)
    await assert.rejects(scene.records.reshard(scene.queue, 3), ConfigConflictError)
    await assert.rejects(scene.records.reshard(scene.queue, 1), ConfigConflictError)
    await scene.end(claim, { kind: 'complete' })
    await toTheEnd(() => scene.records.reshard(scene.queue, 2))
    await toTheEnd(() => scene.records.reshard(scene.queue, 3))
    assert.equal((await scene.shards()).length, 3)
  },

  async 'simultaneous reshards move every job once'(scene) {
    await scene.enqueue(Array.from({ length: 30 }, (_, i) => ({ id: `id-${i}`, payload: 'v' })))
    const reshard = () => toTheEnd(() => scene.records.reshard(scene.queue, 4))
    const [one, other] = await Promise.all([reshard(), reshard()])
    assert.equal(one + other, 30)
    assert.equal((await scene.claim({ limit: 100 })).claims.length, 30)
  },

  async 'a resharded queue stays paused or draining, even while it waits for a running job; its fences keep growing'(
    scene,
  ) {
    await scene.push('a', 'v0')
    const before = await scene.claimOne()
    await scene.records.pause(scene.queue)
    await scene.records.drain(scene.queue)
    assert.equal((await scene.records.reshard(scene.queue, 2)).more, true)
    const opened = await scene.openQueue({ shards: 2 })
    assert.deepEqual([opened.paused, opened.draining], [true, true])
    await scene.end(before, { kind: 'retry', delayMs: 0 })
    await toTheEnd(() => scene.records.reshard(scene.queue, 2))
    const { paused, draining } = await scene.depth()
    assert.deepEqual([paused, draining], [true, true])
    await scene.records.resume(scene.queue)
    assert.ok((await scene.claimOne()).fence > before.fence)
    assert.equal(await scene.settle(before, { kind: 'complete' }), 'lost')
  },

  async 'morgue entries that are too old are not moved'(scene) {
    await scene.openQueue({ dead: { ageMs: 5_000 } })
    await scene.bury('a', ['v0'])
    await scene.advance(5_000)
    assert.equal(await toTheEnd(() => scene.records.reshard(scene.queue, 2)), 0)
  },

  async 'the limits of a resharded queue are divided again'(scene) {
    await scene.openQueue({ maxPending: 4, dead: { count: 3 } })
    await toTheEnd(() => scene.records.reshard(scene.queue, 2))
    const bounds = (await scene.shards()).map(({ maxPending, deadCount }) => [maxPending, deadCount])
    assert.deepEqual(bounds, [
      [2, 2],
      [2, 2],
    ])
  },

  async 'a plain queue cannot be resharded or moved, nor a queue moved into itself'(scene) {
    await scene.openQueue({ name: 'mail', kind: 'plain' })
    await assert.rejects(scene.records.reshard('mail', 2), InvalidArgumentError)
    await assert.rejects(scene.records.move('mail', scene.queue), InvalidArgumentError)
    await assert.rejects(scene.records.move(scene.queue, 'mail'), InvalidArgumentError)
    await assert.rejects(scene.records.move(scene.queue, scene.queue), InvalidArgumentError)
  },

  async 'moved jobs keep id, payloads, scores, times and counts, including dead ones; moving again changes nothing'(
    scene,
  ) {
    await scene.openQueue({ name: 'other', shards: 3 })
    await mixed(scene)
    const before = await jobsOf(scene)

    assert.equal(await toTheEnd(() => scene.records.move(scene.queue, 'other')), 6)

    assert.deepEqual(await scene.told(), [])
    assert.deepEqual(await jobsOf(scene, 'other'), before)
    assert.deepEqual(await scene.records.move(scene.queue, 'other'), { changed: 0, more: false })
    assert.deepEqual(await jobsOf(scene, 'other'), before)
  },

  async 'moved payloads join waiting ones in the other queue, which keep time and count; in the morgue the last burial counts'(
    scene,
  ) {
    for (const name of [scene.queue, 'other']) await scene.openQueue({ name, merge: 'distinct' })
    const push = (payload: string, score: number, delayMs = 0) =>
      scene.enqueue([{ id: 'a', payload, score, delayMs }], { queue: 'other' })
    const buryOther = async (payload: string, score: number, error: string) => {
      await push(payload, score)
      await scene.end(await scene.claimOne({ queue: 'other' }), { kind: 'bury', error })
    }
    await buryOther('d1', 5, 'first')
    await scene.advance(1_000)
    await scene.bury('a', ['d0', 'd1'], 'second')
    await push('v1', 9, 60_000)
    const before = await scene.live('a', 'other')
    await scene.pushAll('a', ['v0', 'v1'])

    await scene.records.move(scene.queue, 'other')

    const { payloads, ...after } = await scene.live('a', 'other')
    assert.deepEqual(scored(payloads), ['v0 0', 'v1 1'])
    assert.deepEqual({ ...after, payloads: before.payloads }, before)
    const dead = await scene.dead('a', 'other')
    assert.deepEqual([scored(dead.payloads), dead.error], [['d0 0', 'd1 1'], 'second'])
  },

  async 'a morgue entry moved to one that died later keeps the header of that'(scene) {
    await scene.bury('a', ['d0'], 'earlier')
    await scene.advance(1_000)
    await scene.openQueue({ name: 'other' })
    await scene.enqueue([{ id: 'a', payload: 'd1', score: 1 }], { queue: 'other' })
    await scene.end(await scene.claimOne({ queue: 'other' }), { kind: 'bury', error: 'later' })
    await scene.records.move(scene.queue, 'other')
    const { payloads, error } = await scene.dead('a', 'other')
    assert.deepEqual([scored(payloads), error], [['d0 0', 'd1 1'], 'later'])
  },

  async 'moved payloads whose id runs in the other queue wait next to it there'(scene) {
    await scene.openQueue({ name: 'other' })
    await scene.enqueue([{ id: 'a', payload: 'v0' }], { queue: 'other' })
    const claim = await scene.claimOne({ queue: 'other' })
    await scene.pushAll('a', ['v1'], { delayMs: 60_000 })
    const { stamp } = await scene.live('a')
    await scene.records.move(scene.queue, 'other')
    assert.deepEqual(await scene.told('other'), ['a running: v0 + v1'])
    await scene.end(claim, { kind: 'complete' })
    assert.deepEqual([(await scene.live('a', 'other')).stamp, (await scene.live('a', 'other')).attempt], [stamp, 1])
  },

  async 'a payload moved from a queue that keeps only the latest leaves those of another queue alone'(scene) {
    await scene.openQueue({ name: 'whole' })
    await scene.openQueue({ merge: 'latest' })
    await scene.enqueue(
      [
        { id: 'a', payload: 'v1', score: 1 },
        { id: 'a', payload: 'v2', score: 2 },
      ],
      { queue: 'whole' },
    )
    await scene.enqueue([{ id: 'a', payload: 'v0', score: 0 }])
    await scene.records.move(scene.queue, 'whole')
    assert.deepEqual(await scene.told('whole'), ['a ready: v0 v1 v2'])
  },

  async 'a payload moved from a queue that keeps only the latest joins the dead ones of its id'(scene) {
    await scene.openQueue({ name: 'whole' })
    await scene.openQueue({ merge: 'latest' })
    await scene.bury('a', ['v0'])
    await scene.enqueue([{ id: 'a', payload: 'v1', score: 1 }])
    await scene.records.move(scene.queue, 'whole')
    await scene.end(await scene.claimOne({ queue: 'whole' }), { kind: 'bury' })
    assert.deepEqual(await scene.told('whole'), ['a dead: v0 v1'])
  },

  async 'a move leaves running jobs, and the payloads waiting next to them'(scene) {
    await scene.openQueue({ name: 'other' })
    await scene.push('a', 'v0')
    const claim = await scene.claimOne()
    await scene.push('a', 'v1')
    await scene.push('b', 'v0')
    assert.deepEqual(await scene.records.move(scene.queue, 'other'), { changed: 1, more: false })
    assert.deepEqual(await scene.told(), ['a running: v0 + v1'])
    assert.deepEqual(await scene.told('other'), ['b ready: v0'])
    await scene.end(claim, { kind: 'complete' })
    assert.deepEqual(await scene.records.move(scene.queue, 'other'), { changed: 1, more: false })
  },

  async 'simultaneous moves move every job once'(scene) {
    await scene.openQueue({ name: 'other', shards: 2 })
    await scene.enqueue(Array.from({ length: 30 }, (_, i) => ({ id: `id-${i}`, payload: 'v' })))
    const move = () => toTheEnd(() => scene.records.move(scene.queue, 'other'))
    const [one, other] = await Promise.all([move(), move()])
    assert.equal(one + other, 30)
    assert.deepEqual(await scene.told(), [])
    assert.equal((await scene.claim({ queue: 'other', limit: 100 })).claims.length, 30)
  },
})
