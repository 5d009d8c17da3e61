/** Contract cases: the ends of claims in an ordered queue, and the payloads after them. */

import assert from 'node:assert/strict'
import type { Claim } from '../../../stores/contract/claim.js'
import type { Settlement } from '../../sequences/command.js'
import { orderedCase, orderedConcern, records, workers } from '../scenes/contract-case.js'
import { handed, type OrderedScene, scored, stampAt } from '../scenes/ordered-scene.js'

const last: Settlement = { kind: 'retry', delayMs: 0, last: true, error: 'the last', reason: 'exhausted' }

/** A running job with v0 and v1 in hand, which failed four times before. */
async function failedFourTimes(scene: OrderedScene) {
  await scene.pushAll('a', ['v0', 'v1'])
  for (let i = 0; i < 4; i++)
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, error: `error ${i}` })
  const claim = await scene.claimOne()
  assert.equal(claim.attempt, 5)
  return claim
}

export const orderedEnds = orderedConcern('ends of claims in an ordered queue', [], {
  async 'rule 5: a completed claim drops its payloads, and if nothing else waits the id is gone'(scene) {
    await scene.pushAll('a', ['v0', 'v1'])
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    assert.deepEqual(await scene.told(), [])
    assert.equal((await scene.depth()).processed, 1)
  },

  async 'an id released for a reason shows it while it waits, and to its next claimer'(scene) {
    await scene.pushAll('a', ['v0'])
    await scene.end(await scene.claimOne(), { kind: 'release', delayMs: 0, error: 'no handler' })
    const { error, attempt, state } = await scene.live('a')
    const again = await scene.claimOne()

    assert.deepEqual([error, attempt, state, again.error], ['no handler', 1, 'ready', 'no handler'])
  },

  async 'rule 5: payloads that waited next to a completed claim are a new job, without a trace of the old one'(scene) {
    await failedFourTimes(scene)
    const claim = { ...(await scene.live('a')).claim!, queue: scene.queue, id: 'a' }
    await scene.extend(claim, { beat: { startedMs: 0, host: 'mill', pid: 7, progress: { fraction: 0.5 } } })
    await scene.advance(1_000)
    const pushedAt = await scene.now()
    await scene.push('a', 'v9', { score: 9 })
    await scene.advance(1_000)
    await scene.end(claim, { kind: 'complete' })

    const { payloads, successor, stamp, updatedAt, ...job } = await scene.live('a')
    assert.deepEqual([scored(payloads), successor, Math.floor(stamp / 1_000)], [['v9 9'], null, pushedAt])
    assert.equal(updatedAt, pushedAt + 1_000)
    assert.deepEqual(job, {
      ...{
        id: 'a',
        task: 'send-mail',
        state: 'ready',
        payload: 'text:',
        codec: null,
        meta: null,
        priority: 0,
        group: null,
      },
      ...{ attempt: 1, crashes: 0, suspect: false, rememberMs: 0, createdAt: pushedAt, startedAt: null },
      ...{ finishedAt: null, expiresAt: null, worker: null, progress: null, result: null },
      ...{ host: null, boot: null, pidns: null, pid: null, ticks: null, checkpoint: null, log: '' },
      ...{ steps: [], awaits: null },
      ...{ error: null, reason: null, claim: null, fields: null },
    })
  },

  async 'rule 6: a failed job is due again after its delay, with all payloads, counted and with its error'(scene) {
    await scene.pushAll('a', ['v0', 'v1'])
    const now = await scene.now()
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 10_000, error: 'the first' })
    const { state, stamp, attempt, error, payloads } = await scene.live('a')
    assert.deepEqual(
      { state, stamp, attempt, error },
      {
        ...{ state: 'scheduled', stamp: stampAt(now + 10_000), attempt: 2, error: 'the first' },
      },
    )
    assert.deepEqual(scored(payloads), ['v0 0', 'v1 1'])
    assert.equal((await scene.depth()).failed, 1)
    await scene.advance(9_999)
    assert.deepEqual(await scene.claimIds(), [])
  },

  async 'rule 6: a failure merges with payloads that arrived meanwhile; time and retry count are those of the failed one'(
    scene,
  ) {
    await scene.push('a', 'v1', { score: 1 })
    const claim = await scene.claimOne()
    await scene.push('a', 'v2', { score: 2, delayMs: 100_000 })
    const now = await scene.now()
    await scene.end(claim, { kind: 'retry', delayMs: 10_000 })
    const { payloads, successor, attempt, stamp } = await scene.live('a')
    assert.deepEqual([scored(payloads), successor, attempt, stamp], [['v1 1', 'v2 2'], null, 2, stampAt(now + 10_000)])
  },

  async "rule 6, merge 'distinct': if equal payloads meet after a failure the lower score stays"(scene) {
    await scene.openQueue({ merge: 'distinct' })
    await scene.push('a', 'v1', { score: 5, meta: 'in hand' })
    const claim = await scene.claimOne()
    await scene.push('a', 'v1', { score: 3, meta: 'beside' })
    await scene.end(claim, { kind: 'retry', delayMs: 0 })
    const { payloads } = await scene.live('a')
    assert.deepEqual([scored(payloads), payloads?.[0]?.meta], [['v1 3'], 'text:beside'])
  },

  async 'rule 6: the last failure buries only the oldest payload; the rest is ready now and starts over'(scene) {
    const claim = await failedFourTimes(scene)
    await scene.advance(3_000)
    const now = await scene.now()
    await scene.end(claim, last)

    const { payloads, state, attempt, crashes, error, suspect, stamp, createdAt } = await scene.live('a')
    assert.deepEqual(scored(payloads), ['v1 1'])
    assert.deepEqual(
      { state, attempt, crashes, error, suspect, createdAt },
      {
        ...{ state: 'ready', attempt: 1, crashes: 0, error: null, suspect: false, createdAt: now - 3_000 },
      },
    )
    assert.equal(Math.floor(stamp / 1_000), now)
    const dead = await scene.dead('a')
    assert.deepEqual(scored(dead.payloads), ['v0 0'])
    assert.deepEqual([dead.attempt, dead.error, dead.reason, dead.finishedAt], [6, 'the last', 'exhausted', now])
    assert.equal((await scene.depth()).failed, 5)
  },

  async 'rule 6: the rest after the last failure merges with waiting payloads, and is ready whatever their time'(
    scene,
  ) {
    const claim = await failedFourTimes(scene)
    await scene.push('a', 'v9', { score: 9, delayMs: 60_000 })
    await scene.end(claim, last)
    assert.deepEqual(await scene.told(), ['a ready: v1 v9', 'a dead: v0'])
  },

  async 'rule 6: if the last failure leaves nothing, waiting payloads come at their own time, as a new job'(scene) {
    await scene.push('a', 'v1')
    const claim = await scene.claimOne()
    await scene.advance(2_000)
    const now = await scene.now()
    await scene.push('a', 'v2', { delayMs: 60_000 })
    await scene.end(claim, last)
    assert.deepEqual(await scene.told(), ['a scheduled: v2', 'a dead: v1'])
    const { stamp, createdAt, attempt, error } = await scene.live('a')
    assert.deepEqual([stamp, createdAt, attempt, error], [stampAt(now + 60_000), now, 1, null])
  },

  async 'rule 6: if the last failure leaves nothing and nothing waits, the id is only in the morgue'(scene) {
    await scene.push('a', 'v1')
    await scene.end(await scene.claimOne(), last)
    assert.deepEqual(await scene.told(), ['a dead: v1'])
  },

  async 'rule 6: payloads that fail for the last time follow one another into the morgue'(scene) {
    await scene.pushAll('a', ['v0', 'v1', 'v2'])
    for (let i = 0; i < 3; i++) await scene.end(await scene.claimOne(), last)
    assert.deepEqual(await scene.told(), ['a dead: v0 v1 v2'])
  },

  async 'rule 6: the rest after maxPayloads goes on when the last failure buries all claimed payloads'(scene) {
    await scene.pushAll('a', ['v0', 'v1', 'v2'])
    await scene.end(await scene.take(1), last)
    assert.deepEqual(await scene.told(), ['a ready: v1 v2', 'a dead: v0'])
  },

  'rule 6 applies to a failure from outside as well': orderedCase([records], async (scene) => {
    await scene.pushAll('a', ['v0', 'v1'])
    const claim = await scene.claimOne()
    await scene.push('a', 'v9', { score: 9 })
    const how = { delayMs: 0, last: true, reason: 'operator' }
    assert.equal(await scene.records.fail(scene.queue, 'a', how), 'ok')
    assert.deepEqual(await scene.told(), ['a ready: v1 v9', 'a dead: v0'])
    const { error, reason } = await scene.dead('a')
    assert.deepEqual([error, reason], ['operator', 'operator'])
    assert.equal(await scene.settle(claim, { kind: 'complete' }), 'lost')
    assert.equal(await scene.records.fail(scene.queue, 'a', how), 'gone')
  }),

  async 'rule 7: a released job is back in its old place, with its count and payloads that arrived meanwhile'(scene) {
    await scene.pushAll('a', ['v0'])
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, error: 'the first' })
    const { stamp } = await scene.live('a')
    const claim = await scene.claimOne()
    await scene.push('b', 'v')
    await scene.push('a', 'v1', { score: 1, delayMs: 60_000 })
    await scene.end(claim, { kind: 'release', delayMs: 0 })

    const after = await scene.live('a')
    assert.deepEqual([after.state, after.stamp, after.attempt, after.error], ['ready', stamp, 2, 'the first'])
    assert.deepEqual(scored(after.payloads), ['v0 0', 'v1 1'])
    assert.deepEqual(await scene.claimIds(), ['a', 'b'])
  },

  async 'rule 7: a release with a delay puts off the whole job, uncounted'(scene) {
    await scene.pushAll('a', ['v0'])
    const claim = await scene.claimOne()
    await scene.push('a', 'v1', { score: 1 })
    const now = await scene.now()
    await scene.end(claim, { kind: 'release', delayMs: 7_000 })
    const { state, stamp, attempt, payloads } = await scene.live('a')
    assert.deepEqual([state, stamp, attempt], ['scheduled', stampAt(now + 7_000), 1])
    assert.deepEqual(scored(payloads), ['v0 0', 'v1 1'])
  },

  async 'rule 7: a crash returns the claimed payloads, with time and retry count; nothing counts as run or failed'(
    scene,
  ) {
    await scene.pushAll('a', ['v0', 'v1', 'v2'])
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, error: 'the first' })
    const before = await scene.live('a')
    await scene.take(2, { leaseMs: 5_000 })
    await scene.push('a', 'v9', { score: 9, delayMs: 60_000 })
    await scene.advance(5_000)

    assert.equal((await scene.claim({ limit: 0 })).crashed.length, 1)

    const after = await scene.live('a')
    assert.deepEqual(scored(after.payloads), ['v0 0', 'v1 1', 'v2 2', 'v9 9'])
    assert.deepEqual(
      [after.state, after.suspect, after.attempt, after.stamp, after.error],
      ['ready', true, 2, before.stamp, 'the first'],
    )
    const { processed, failed, crashed } = await scene.depth()
    assert.deepEqual({ processed, failed, crashed }, { processed: 0, failed: 1, crashed: 1 })
  },

  async 'one crash too many buries only the oldest payload; the rest starts over and is not suspect'(scene) {
    await scene.openQueue({ maxCrashes: 2 })
    await scene.pushAll('a', ['v0', 'v1'])
    let fence = 0
    for (let i = 0; i < 2; i++) {
      fence = (await scene.take(Number.POSITIVE_INFINITY, { leaseMs: 1_000, alone: true })).fence
      await scene.advance(1_000)
    }
    const { crashed, buried } = await scene.claim({ limit: 0 })

    assert.deepEqual(
      crashed.map(({ charged, crashes }) => [charged, crashes]),
      [[true, 2]],
    )
    assert.deepEqual(buried, [
      {
        queue: scene.queue,
        id: 'a',
        task: 'send-mail',
        reason: 'crashed',
        fence,
        payload: { score: 0, payload: 'v0' },
      },
    ])
    assert.deepEqual(await scene.told(), ['a ready: v1', 'a dead: v0'])
    const { attempt, crashes, suspect } = await scene.live('a')
    assert.deepEqual([attempt, crashes, suspect], [1, 0, false])
    const dead = await scene.dead('a')
    assert.deepEqual([dead.crashes, dead.reason], [2, 'crashed'])
  },

  async 'one crash too many of a single payload leaves the waiting ones, as a new job'(scene) {
    await scene.openQueue({ maxCrashes: 1 })
    await scene.push('a', 'v0')
    await scene.take(1, { leaseMs: 1_000, alone: true })
    await scene.push('a', 'v1')
    await scene.advance(1_000)
    const { buried, claims } = await scene.claim()
    assert.equal(buried.length, 1)
    assert.deepEqual(claims.map(handed), [['v1']])
    assert.deepEqual(await scene.told(), ['a running: v1', 'a dead: v0'])
  },

  'the claims of a gone worker end like crashes': orderedCase([workers], async (scene) => {
    await scene.pushAll('a', ['v0'])
    const { queue, id, fence } = await scene.claimOne()
    await scene.push('a', 'v1', { score: 1 })
    const { crashed } = await scene.workers.gone([{ queue, id, fence }], 'worker-1')
    assert.equal(crashed.length, 1)
    assert.deepEqual(await scene.told(), ['a ready: v0 v1'])
    assert.equal((await scene.live('a')).suspect, true)
  }),

  async 'the outcome bury takes all claimed payloads, and leaves later ones as a new job'(scene) {
    await scene.pushAll('a', ['v0', 'v1'])
    const claim = await scene.claimOne()
    await scene.push('a', 'v2', { score: 2 })
    await scene.end(claim, { kind: 'bury', error: 'broken', reason: 'unrecoverable' })
    assert.deepEqual(await scene.told(), ['a ready: v2', 'a dead: v0 v1'])
    const { attempt, error } = await scene.live('a')
    assert.deepEqual([attempt, error], [1, null])
    const dead = await scene.dead('a')
    assert.deepEqual([dead.error, dead.reason], ['broken', 'unrecoverable'])
  },

  async 'the outcome cancel drops all claimed payloads, and leaves later ones as a new job'(scene) {
    await scene.pushAll('a', ['v0', 'v1'])
    const claim = await scene.claimOne()
    await scene.push('a', 'v2', { score: 2 })
    await scene.end(claim, { kind: 'cancel', reason: 'obsolete' })
    assert.deepEqual(await scene.told(), ['a ready: v2'])
  },

  async 'a superseded claim settles nothing, whatever has happened to its id'(scene) {
    await scene.pushAll('a', ['v0', 'v1'])
    const old = await scene.take(1)
    await scene.end(old, { kind: 'complete' })
    assert.equal(await scene.settle(old, { kind: 'complete' }), 'lost')
    const current = await scene.claimOne()
    for (const kind of ['complete', 'bury', 'cancel'] as const) assert.equal(await scene.settle(old, { kind }), 'lost')
    assert.equal(await scene.extend(old), 'lost')
    assert.deepEqual(await scene.told(), ['a running: v1'])
    await scene.end(current, { kind: 'complete' })
    assert.equal(await scene.settle(current, { kind: 'complete' }), 'gone')
  },

  async 'two ends at once end the claim once'(scene) {
    await scene.pushAll('a', ['v0', 'v1'])
    const claim = await scene.claimOne()
    const answers = await Promise.all([scene.settle(claim, last), scene.settle(claim, last)])
    assert.deepEqual(answers.sort(), ['lost', 'ok'])
    assert.deepEqual(await scene.told(), ['a ready: v1', 'a dead: v0'])
  },

  async 'in many completions of one claim only waiting payloads come again'(scene) {
    for (const id of ['a', 'b', 'c', 'd', 'e']) await scene.pushAll(id, ['v0'])
    const { claims } = await scene.claim()
    await scene.push('c', 'v1')
    await scene.store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' })))
    assert.deepEqual([await scene.told(), (await scene.depth()).processed], [['c ready: v1'], 5])
  },

  async 'the claims of a batch end separately'(scene) {
    for (const id of ['a', 'b', 'c']) await scene.pushAll(id, ['v0', 'v1'])
    const { claims } = await scene.claim()
    const keys = claims.map(({ queue, id, fence }) => ({ queue, id, fence }))
    await scene.store.settle([
      { ...keys[0]!, kind: 'complete' },
      { ...keys[1]!, ...last } as never,
      { ...keys[2]!, kind: 'retry', delayMs: 0 },
    ])
    assert.deepEqual(await scene.told(), ['b ready: v1', 'b dead: v0', 'c ready: v0 v1'])
  },
})

/** The claim of `a` with v0 to v3, which has failed once and crashed once before. */
async function triedTwice(scene: OrderedScene): Promise<Claim> {
  await scene.pushAll('a', ['v0', 'v1', 'v2', 'v3'])
  await scene.end(await scene.take(), { kind: 'retry', delayMs: 0, error: 'before' })
  await scene.take(4, { leaseMs: 3_000, alone: true })
  await scene.advance(10_000)
  await scene.claim()
  return await scene.take(4, { alone: true })
}

export const orderedDone = orderedConcern('ends of which some payloads are done', [], {
  async 'finished payloads leave with a failure, which is the first for the others'(scene) {
    const claim = await triedTwice(scene)
    assert.deepEqual([claim.attempt, claim.crashes, claim.error], [2, 1, 'before'])
    const now = await scene.now()
    await scene.end(claim, { kind: 'retry', delayMs: 5_000, error: 'poison', done: 2 })
    assert.deepEqual(await scene.told(), ['a scheduled: v2 v3'])
    const { attempt, crashes, error, stamp } = await scene.live('a')
    assert.deepEqual(
      { attempt, crashes, error, stamp },
      { attempt: 2, crashes: 0, error: 'poison', stamp: stampAt(now + 5_000) },
    )
    await scene.advance(5_000)
    assert.equal((await scene.claimOne()).attempt, 2)
  },

  async 'a last failure buries the payload after the finished ones, and the rest starts over'(scene) {
    const claim = await triedTwice(scene)
    await scene.end(claim, { kind: 'retry', delayMs: 0, last: true, error: 'poison', reason: 'exhausted', done: 2 })
    assert.deepEqual(await scene.told(), ['a ready: v3', 'a dead: v2'])
    const { attempt, error } = await scene.dead('a')
    assert.deepEqual([attempt, error], [2, 'poison'])
    const next = await scene.claimOne()
    assert.deepEqual([next.attempt, next.crashes, next.error], [1, 0, undefined])
  },

  async 'finished payloads leave with a release; the others wait in their old place and never failed'(scene) {
    const claim = await triedTwice(scene)
    await scene.push('b', 'w')
    await scene.end(claim, { kind: 'release', delayMs: 0, done: 1 })
    const { attempt, crashes, error } = await scene.live('a')
    assert.deepEqual({ attempt, crashes, error }, { attempt: 1, crashes: 0, error: null })
    assert.equal((await scene.depth()).retries, 0)
    const { claims } = await scene.claim({ alone: true })
    assert.deepEqual([claims[0]!.id, handed(claims[0]!)], ['a', ['v1', 'v2', 'v3']])
  },

  async 'finished payloads are not buried with the others'(scene) {
    const claim = await triedTwice(scene)
    await scene.end(claim, { kind: 'bury', reason: 'broken', done: 3 })
    assert.deepEqual(await scene.told(), ['a dead: v3'])
    const { attempt, error, reason } = await scene.dead('a')
    assert.deepEqual([attempt, error, reason], [1, null, 'broken'])
  },

  async 'at least one payload is left, however many are reported as finished'(scene) {
    await scene.pushAll('a', ['v0', 'v1'])
    await scene.push('b', 'w')
    const { claims } = await scene.claim({ from: [{ queue: scene.queue, limit: 2 }] })
    for (const claim of claims) await scene.end(claim, { kind: 'retry', delayMs: 0, done: 5 })
    assert.deepEqual(await scene.told(), ['a ready: v1', 'b ready: w'])
  },

  async 'a claim with nothing finished keeps its attempts'(scene) {
    await scene.push('a', 'v0')
    for (let i = 0; i < 2; i += 1)
      await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, error: `${i}`, done: 0 })
    const { attempt, error } = await scene.claimOne()
    assert.deepEqual([attempt, error], [3, '1'])
  },

  async 'the rest of a claim meets waiting payloads, and only waiting ones need room'(scene) {
    await scene.openQueue({ maxPending: 4 })
    await scene.pushAll('a', ['v0', 'v1', 'v2', 'v3'])
    const claim = await scene.take(2)
    await scene.push('a', 'v4', { score: 0.5 })
    await scene.end(claim, { kind: 'release', delayMs: 0, done: 1 })
    assert.deepEqual(await scene.told(), ['a ready: v4 v1 v2 v3'])
    assert.equal((await scene.depth()).payloads, 4)
    assert.equal(await scene.push('b', 'w'), 'full')
  },

  'nothing of a cancelled job comes back, whatever is finished': orderedCase([records], async (scene) => {
    await scene.pushAll('a', ['v0', 'v1'])
    const claim = await scene.take()
    await scene.records.cancel(scene.queue, { ids: ['a'] })
    await scene.end(claim, { kind: 'retry', delayMs: 0, done: 1 })
    assert.deepEqual(await scene.told(), [])
  }),
})
