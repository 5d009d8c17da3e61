/**
 * Contract cases: administration of an ordered queue and of its morgue, where an id has an entry of its own, and cancels,
 * which also drop the payloads that wait behind a job.
 */

import assert from 'node:assert/strict'
import { pagesOf, slicesOf } from '../../../core/values/pages.js'
import type { Settlement } from '../../sequences/command.js'
import { orderedCase, orderedConcern, records } from '../scenes/contract-case.js'
import { handed, type OrderedScene, scored } from '../scenes/ordered-scene.js'

/** A running job that was cancelled, with v0 in hand. */
async function cancelledClaim(scene: OrderedScene) {
  await scene.push('a', 'v0')
  const claim = await scene.take(Number.POSITIVE_INFINITY, { leaseMs: 5_000 })
  await scene.push('a', 'before')
  assert.deepEqual(await scene.records.cancel(scene.queue, { ids: ['a'] }, 'stop'), { changed: 1, more: false })
  return claim
}

export const orderedCancels = orderedConcern('cancelling in an ordered queue', [records], {
  async 'rule 9: a waiting job that is cancelled is gone with all its payloads'(scene) {
    await scene.pushAll('a', ['v0', 'v1'])
    assert.deepEqual(await scene.records.cancel(scene.queue, { ids: ['a'] }), { changed: 1, more: false })
    assert.deepEqual(await scene.told(), [])
    assert.equal(await scene.records.get(scene.queue, 'a'), undefined)
  },

  async 'rule 9: a running job that is cancelled learns it, and its waiting payloads go at once'(scene) {
    const claim = await cancelledClaim(scene)
    assert.deepEqual(await scene.told(), ['a running: v0'])
    assert.equal(await scene.extend(claim), 'cancel')
    assert.deepEqual(await scene.records.cancel(scene.queue, { ids: ['a'] }), { changed: 0, more: false })
  },

  ...Object.fromEntries(
    (['retry', 'retry last', 'release', 'release later', 'cancel', 'complete'] as const).map((end) => [
      `rule 9: a cancelled claim that ends by ${end} leaves only payloads from after the cancel`,
      orderedCase([records], async (scene) => {
        const claim = await cancelledClaim(scene)
        await scene.push('a', 'after')
        const ends: Record<typeof end, Settlement> = {
          retry: { kind: 'retry', delayMs: 0 },
          'retry last': { kind: 'retry', delayMs: 0, last: true, reason: 'exhausted' },
          release: { kind: 'release', delayMs: 0 },
          'release later': { kind: 'release', delayMs: 5_000 },
          cancel: { kind: 'cancel' },
          complete: { kind: 'complete' },
        }
        await scene.end(claim, ends[end])
        assert.deepEqual(await scene.told(), ['a ready: after'])
        assert.equal(await scene.extend(await scene.claimOne()), 'ok')
      }),
    ]),
  ),

  async 'rule 9: a cancelled claim that crashes leaves only payloads from after the cancel'(scene) {
    await cancelledClaim(scene)
    await scene.push('a', 'after')
    await scene.advance(5_000)
    const { crashed, claims } = await scene.claim()
    assert.equal(crashed.length, 1)
    assert.deepEqual(claims.map(handed), [['after']])
    assert.deepEqual(await scene.told(), ['a running: after'])
  },

  async 'rule 9: a cancelled claim that its handler buries is in the morgue'(scene) {
    const claim = await cancelledClaim(scene)
    await scene.end(claim, { kind: 'bury', reason: 'unrecoverable' })
    assert.deepEqual(await scene.told(), ['a dead: v0'])
  },
})

/** `failed` ids that failed once and wait for their retry, and one fresh one. */
async function failedAndFresh(scene: OrderedScene, failed: number): Promise<void> {
  for (let from = 0; from < failed; from += 50) {
    const ids = Array.from({ length: Math.min(50, failed - from) }, (_, i) => `failed-${from + i}`)
    await scene.enqueue(ids)
    const { claims } = await scene.claim({ limit: 50 })
    const keys = claims.map(({ queue, id, fence }) => ({ queue, id, fence }))
    await scene.store.settle(keys.map((key) => ({ ...key, kind: 'retry', delayMs: 3_600_000, error: 'broken' })))
  }
  await scene.push('fresh', 'v', { delayMs: 60_000 })
}

export const orderedMorgue = orderedConcern('administration of an ordered queue', [records], {
  async 'an id has a morgue entry next to its live job, and each can be found'(scene) {
    await scene.bury('a', ['v0'])
    assert.equal((await scene.records.get(scene.queue, 'a'))?.state, 'dead')
    assert.equal(await scene.push('a', 'v1', { score: 1 }), 'added')

    const live = await scene.records.get(scene.queue, 'a')
    assert.deepEqual([live?.state, live?.payloads], ['ready', [{ score: 1, payload: 'v1' }]])
    const dead = await scene.records.morgue.get(scene.queue, 'a')
    assert.deepEqual([dead?.state, dead?.payloads], ['dead', [{ score: 0, payload: 'v0' }]])
    assert.equal(await scene.records.morgue.get(scene.queue, 'b'), undefined)
    const { jobs } = await scene.records.list(scene.queue, { by: 'id', limit: 10 })
    assert.deepEqual(
      jobs.map(({ state }) => state),
      ['ready', 'dead'],
    )
  },

  async 'a list can turn its page between the live job and the dead entry of an id'(scene) {
    await scene.bury('a', ['v0'])
    await scene.push('a', 'v1')
    await scene.push('b', 'v1')
    const seen: string[] = []
    for await (const { jobs } of pagesOf((from) => scene.records.list(scene.queue, { by: 'id', limit: 1, ...from })))
      seen.push(...jobs.map(({ id, state }) => `${id} ${state}`))
    assert.deepEqual(seen, ['a ready', 'a dead', 'b ready'])
  },

  async 'a record shows the running payloads, their number, and how many wait; a list shows the first ten'(scene) {
    const payloads = Array.from({ length: 12 }, (_, i) => `v${i}`)
    await scene.pushAll('a', payloads)
    await scene.take(11)
    const job = await scene.records.get(scene.queue, 'a')
    assert.deepEqual(
      [job?.payloads?.map(({ payload }) => payload), job?.payloadCount, job?.pendingCount],
      [payloads.slice(0, 11), 11, 1],
    )
    const [listed] = (await scene.records.list(scene.queue, { by: 'time', limit: 5 })).jobs
    assert.deepEqual([listed?.payloads?.length, listed?.payloadCount, listed?.pendingCount], [10, 11, 1])
    assert.equal(job?.payload, '')
  },

  "a second burial joins the first: header of the last, age of the first, and with 'distinct' the lower of equal scores":
    orderedCase([], async (scene) => {
      await scene.openQueue({ merge: 'distinct' })
      const createdAt = await scene.now()
      await scene.bury('a', ['v0', 'v1'], 'the first')
      await scene.advance(10_000)
      const finishedAt = await scene.now()
      await scene.enqueue([
        { id: 'a', payload: 'v1', score: -1 },
        { id: 'a', payload: 'v2', score: 0.5 },
      ])
      const claim = await scene.claimOne()
      await scene.end(claim, { kind: 'bury', error: 'the second', reason: 'again' })

      const { payloads, ...dead } = await scene.dead('a')
      assert.deepEqual(scored(payloads), ['v1 -1', 'v0 0', 'v2 0.5'])
      assert.deepEqual(
        [dead.createdAt, dead.finishedAt, dead.error, dead.reason],
        [createdAt, finishedAt, 'the second', 'again'],
      )
      assert.equal((await scene.depth()).dead, 1)
    }),

  'an entry in the morgue has no worker, host, pid or progress': orderedCase([], async (scene) => {
    await scene.push('a', 'v0')
    const claim = await scene.claimOne()
    await scene.extend(claim, { beat: { startedMs: 0, host: 'mill', pid: 7, progress: { fraction: 0.5 } } })
    await scene.end(claim, { kind: 'bury' })
    const { worker, host, pid, progress, startedAt } = await scene.dead('a')
    assert.deepEqual([worker, host, pid, progress, startedAt], [null, null, null, null, null])
  }),

  async 'rule 8: an id revived while nothing of it waits is ready now, with all attempts and its last error'(scene) {
    await scene.openQueue({ maxCrashes: 1 })
    await scene.push('a', 'v0')
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, error: 'the last' })
    await scene.take(1, { leaseMs: 1_000, alone: true })
    await scene.advance(1_000)
    await scene.claim({ limit: 0 })
    await scene.advance(60_000)

    assert.deepEqual(await scene.records.morgue.revive(scene.queue, { ids: ['a'] }), { changed: 1, more: false })

    const { state, attempt, crashes, error, reason, stamp } = await scene.live('a')
    assert.deepEqual([state, attempt, crashes, error, reason], ['ready', 1, 0, 'the last', null])
    assert.equal(Math.floor(stamp / 1_000), await scene.now())
    assert.deepEqual(await scene.told(), ['a ready: v0'])
  },

  async 'rule 8: payloads revived into a waiting job join it; it is ready now with attempt 1, and its error stays'(
    scene,
  ) {
    await scene.bury('a', ['v0', 'v1'], 'of the dead')
    await scene.push('a', 'v1', { score: -1 })
    await scene.push('a', 'v0', { score: 0 })
    await scene.push('a', 'v2', { score: 2 })
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 60_000, error: 'of the living' })

    await scene.records.morgue.revive(scene.queue, { ids: ['a'] })

    const { state, attempt, error, payloads } = await scene.live('a')
    assert.deepEqual([state, attempt, error], ['ready', 1, 'of the living'])
    assert.deepEqual(scored(payloads), ['v1 -1', 'v0 0', 'v1 1', 'v2 2'])
    assert.deepEqual(await scene.told(), ['a ready: v1 v0 v1 v2'])
  },

  async 'rule 8: of equal scores the revived payload comes first, as it came first'(scene) {
    await scene.bury('a', ['v0'])
    await scene.push('a', 'v1', { score: 0 })

    await scene.records.morgue.revive(scene.queue, { ids: ['a'] })

    assert.deepEqual(await scene.told(), ['a ready: v0 v1'])
  },

  async 'fields are those of the live job of an id: a dead one has none'(scene) {
    await scene.bury('a', ['v0'])
    assert.equal(await scene.records.setFields(scene.queue, 'a', { n: 1 }), 'gone')
    await scene.push('a', 'v1')
    assert.equal(await scene.records.setFields(scene.queue, 'a', { n: 1 }), 'ok')
    assert.deepEqual([(await scene.live('a')).fields, (await scene.dead('a')).fields], [{ n: 1 }, null])
  },

  async 'rule 8: payloads revived while their id runs wait next to it, due when its claim has ended'(scene) {
    await scene.bury('a', ['v0'])
    await scene.push('a', 'v1', { score: 1 })
    const claim = await scene.claimOne()
    await scene.push('a', 'v2', { score: 2, delayMs: 60_000 })

    await scene.records.morgue.revive(scene.queue, { ids: ['a'] })

    assert.deepEqual(await scene.told(), ['a running: v1 + v0 v2'])
    await scene.end(claim, { kind: 'complete' })
    const next = await scene.claimOne()
    assert.deepEqual([handed(next), next.attempt], [['v0', 'v2'], 1])
  },

  async 'a burial by hand takes the waiting payloads of its id, and leaves running jobs'(scene) {
    await scene.pushAll('a', ['v0', 'v1'])
    assert.deepEqual(await scene.records.bury(scene.queue, { ids: ['a', 'a', 'z'] }), { changed: 1, more: false })
    assert.deepEqual(await scene.told(), ['a dead: v0 v1'])
    assert.equal((await scene.dead('a')).reason, 'buried')
    await scene.push('a', 'v2')
    await scene.claimOne()
    await scene.push('a', 'v3')
    assert.deepEqual(await scene.records.bury(scene.queue, 'all'), { changed: 0, more: false })
    assert.deepEqual(await scene.told(), ['a running: v2 + v3', 'a dead: v0 v1'])
  },

  async '150 failed jobs are buried and a fresh one stays; all are revived; all run now, and the lag does not jump'(
    scene,
  ) {
    await failedAndFresh(scene, 150)
    assert.deepEqual(await scene.records.bury(scene.queue, 'failed'), { changed: 150, more: false })
    const buried = await scene.depth()
    assert.deepEqual([buried.dead, buried.ready + buried.scheduled], [150, 1])

    assert.deepEqual(await scene.records.morgue.revive(scene.queue, 'failed'), { changed: 150, more: false })
    const revived = await scene.depth()
    assert.deepEqual([revived.dead, revived.ready, revived.scheduled], [0, 150, 1])

    assert.deepEqual(await scene.records.runNow(scene.queue, 'all'), { changed: 1, more: false })
    const { ready, scheduled, lagMs } = await scene.depth()
    assert.deepEqual([ready, scheduled, lagMs], [151, 0, 0])
    assert.equal((await scene.claim({ limit: 200 })).claims.length, 151)
  },

  async 'delayed payloads next to a running job are run now too: they are due as soon as the claim ends'(scene) {
    for (const id of ['a', 'b', 'c']) await scene.push(id, 'v0')
    const { claims } = await scene.claim()
    await scene.push('a', 'v1', { delayMs: 60_000 })
    await scene.push('b', 'v1')
    await scene.push('d', 'v0', { delayMs: 60_000 })

    assert.deepEqual(await scene.records.runNow(scene.queue, { ids: ['a', 'b', 'c'] }), { changed: 1, more: false })
    await scene.push('b', 'v2', { delayMs: 60_000 })
    assert.deepEqual(await scene.records.runNow(scene.queue, 'all'), { changed: 1, more: false })
    assert.deepEqual(await scene.records.runNow(scene.queue, 'all'), { changed: 0, more: false })
    for (const claim of claims) await scene.end(claim, { kind: 'complete' })

    assert.deepEqual((await scene.claimIds()).sort(), ['a', 'b', 'd'])
  },

  async 'jobs run now count their lag from now, and keep their retry count'(scene) {
    await failedAndFresh(scene, 3)
    await scene.advance(30_000)
    assert.deepEqual(await scene.records.runNow(scene.queue, 'failed'), { changed: 3, more: false })
    await scene.advance(2_000)
    const { lagMs, retries, shardLagsMs } = await scene.depth()
    assert.deepEqual([lagMs, retries, shardLagsMs], [2_000, 3, [2_000]])
  },

  async 'actions called twice at once change each job once'(scene) {
    const twice = async (act: () => Promise<{ changed: number }>) => {
      const [one, other] = await Promise.all([act(), act()])
      return one.changed + other.changed
    }
    const { records: admin, queue } = scene
    const ids = Array.from({ length: 20 }, (_, i) => `a${i}`)
    const later = () => scene.enqueue(ids.map((id) => ({ id, delayMs: 60_000 })))

    await later()
    assert.equal(await twice(() => admin.runNow(queue, 'all')), 20)
    assert.equal(await twice(() => admin.bury(queue, 'all')), 20)
    assert.equal((await scene.depth()).dead, 20)
    assert.equal(await twice(() => admin.morgue.revive(queue, 'all')), 20)
    assert.equal(await twice(() => admin.cancel(queue, { ids })), 20)
    await later()
    assert.equal(await twice(() => admin.delete(queue, 'all')), 20)
    await later()
    await admin.bury(queue, 'all')
    assert.equal(await twice(() => admin.morgue.delete(queue, 'all')), 20)
    await later()
    assert.equal(await twice(() => admin.clear(queue)), 20)
    assert.deepEqual(await scene.told(), [])
  },

  async 'a delete takes waiting jobs or dead entries, each without the other, and never running ones'(scene) {
    await scene.bury('a', ['v0'])
    await scene.push('a', 'v1')
    assert.deepEqual(await scene.records.delete(scene.queue, { ids: ['a'] }), { changed: 1, more: false })
    assert.deepEqual(await scene.told(), ['a dead: v0'])
    await scene.push('a', 'v1')
    await scene.claimOne()
    await scene.push('a', 'v2')
    assert.deepEqual(await scene.records.delete(scene.queue, 'all'), { changed: 0, more: false })
    assert.deepEqual(await scene.records.morgue.delete(scene.queue, { ids: ['a'] }), { changed: 1, more: false })
    assert.deepEqual(await scene.told(), ['a running: v1 + v2'])
  },

  async 'clear removes waiting and dead jobs, and leaves a running job with the payloads next to it'(scene) {
    await scene.bury('a', ['v0'])
    await scene.push('a', 'v1')
    await scene.claimOne()
    await scene.push('a', 'v2')
    await scene.push('b', 'v1')
    assert.deepEqual(await scene.records.clear(scene.queue), { changed: 2, more: false })
    assert.deepEqual(await scene.told(), ['a running: v1 + v2'])
  },

  async 'a step ends with the job by which it has changed 10,000 payloads'(scene) {
    const many = Array.from({ length: 2_500 }, (_, i) => `v${i}`)
    for (const id of ['a', 'b', 'c', 'd', 'e'])
      for (const some of slicesOf(many, 250)) await scene.pushAll(id, some, { delayMs: 60_000 })
    assert.deepEqual(await scene.records.bury(scene.queue, 'all'), { changed: 4, more: true })
    assert.deepEqual(await scene.records.bury(scene.queue, 'all'), { changed: 1, more: false })
  },

  'each shard keeps its share of the morgue, by count and age': orderedCase([], async (scene) => {
    await scene.openQueue({ name: 'wide', shards: 2, dead: { count: 4, ageMs: 60_000 } })
    for (const id of ['a', 'b', '\uffee', 'd']) {
      await scene.enqueue([{ id, payload: 'v0' }], { queue: 'wide' })
      await scene.end(await scene.claimOne({ queue: 'wide' }), { kind: 'bury' })
      await scene.advance(1_000)
    }
    assert.deepEqual(await scene.told('wide'), ['d dead: v0', 'b dead: v0', '\uffee dead: v0'])
    await scene.advance(57_000)
    assert.deepEqual(await scene.told('wide'), ['d dead: v0', '\uffee dead: v0'])
  }),

  'an id buried again after its entry was too old has a new entry': orderedCase([], async (scene) => {
    await scene.openQueue({ dead: { ageMs: 5_000 } })
    await scene.bury('a', ['v0'])
    await scene.advance(5_000)
    const now = await scene.now()
    await scene.bury('a', ['v1'])
    assert.deepEqual(await scene.told(), ['a dead: v1'])
    assert.equal((await scene.dead('a')).createdAt, now)
  }),

  async 'retries are listed with the fewest failures first, and equal ones by the bytes of their id'(scene) {
    const ids = ['\u{1f388}', 'É', 'z', '\uffee']
    await scene.enqueue([...ids, 'twice'])
    for (const claim of (await scene.claim()).claims) await scene.end(claim, { kind: 'retry', delayMs: 1_000 })
    await scene.advance(1_000)
    const { claims } = await scene.claim()
    for (const claim of claims)
      await scene.end(claim, claim.id === 'twice' ? { kind: 'retry', delayMs: 1_000 } : { kind: 'release', delayMs: 0 })
    const { jobs } = await scene.records.list(scene.queue, { by: 'retry', limit: 10 })
    assert.deepEqual(
      jobs.map(({ id }) => id),
      ['z', 'É', '\uffee', '\u{1f388}', 'twice'],
    )
  },

  async 'a waiting job that is run now keeps its payloads, and those next to a running one are then due'(scene) {
    await scene.push('a', 'v0')
    const claim = await scene.claimOne()
    const now = await scene.now()
    await scene.push('a', 'v1', { delayMs: 60_000 })
    await scene.push('b', 'v1', { delayMs: 60_000 })
    assert.deepEqual(await scene.records.runNow(scene.queue, 'all'), { changed: 2, more: false })
    assert.deepEqual(await scene.claimIds(), ['b'])
    await scene.end(claim, { kind: 'complete' })
    const { state, stamp } = await scene.live('a')
    assert.deepEqual([state, Math.floor(stamp / 1_000)], ['ready', now])
  },
})
