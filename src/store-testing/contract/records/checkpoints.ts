/** Contract cases: checkpoints and logs, which outlive the attempt that wrote them. */

import assert from 'node:assert/strict'
import { mostLogBytes } from '../../../core/job/job-log.js'
import { fenced, orderedCase, plainCase, plainConcern, records, tellsCrashes } from '../scenes/contract-case.js'
import type { Scene } from '../scenes/scene.js'

const half = { payload: '{"done":0.5}' }

export const checkpoints = plainConcern('checkpoints and logs', [records], {
  'a later attempt gets the latest checkpoint, and a first one none': plainCase([tellsCrashes], async (scene) => {
    await scene.add('a')
    const first = await scene.claimOne()
    assert.equal(first.checkpoint, undefined)
    await scene.extend(first, { beat: { checkpoint: { payload: '{"done":0.1}' } } })
    await scene.extend(first, { beat: { checkpoint: half } })
    await scene.extend(first, { beat: { progress: { fraction: 0.6 } } })
    await scene.end(first, { kind: 'retry', delayMs: 0, error: 'broken' })

    const second = await scene.claimOne()
    assert.deepEqual([second.checkpoint, second.error], [half, 'broken'])
  }),

  async 'of two checkpoints in one call the later one counts, whatever leases they ask for'(scene) {
    await scene.add('a')
    const { queue, id, fence } = await scene.claimOne()
    const item = (leaseMs: number, payload: string) => ({
      queue,
      id,
      fence,
      leaseMs,
      beat: { checkpoint: { payload } },
    })
    await scene.store.extend([
      item(60_000, '1'),
      item(90_000, '2'),
      item(60_000, '3'),
      item(90_000, '4'),
      item(60_000, '5'),
    ])

    assert.equal((await scene.records.get(scene.queue, 'a'))?.checkpoint?.payload, '5')
  },

  'a checkpoint may be bytes of another codec': plainCase([tellsCrashes], async (scene) => {
    const bytes = { payload: Uint8Array.of(0, 255, 10), codec: 'packed' }
    await scene.add('a')
    await scene.extend(await scene.claimOne(), { beat: { checkpoint: bytes } })
    await crashed(scene)

    assert.deepEqual((await scene.claimOne({ alone: true })).checkpoint, bytes)
  }),

  'a checkpoint outlives a crash, a release, a snooze and a second crash': plainCase([tellsCrashes], async (scene) => {
    await scene.add('a')
    await scene.extend(await scene.claimOne(), { beat: { checkpoint: half } })
    await crashed(scene)
    const second = await scene.claimOne({ alone: true })
    await scene.end(second, { kind: 'release', delayMs: 0 })
    const third = await scene.claimOne({ alone: true })
    assert.deepEqual(third.checkpoint, half)
    await scene.end(third, { kind: 'release', delayMs: 5_000 })
    await scene.advance(5_000)
    assert.deepEqual((await scene.claimOne()).checkpoint, half)
    await crashed(scene)

    assert.deepEqual((await scene.claimOne({ alone: true })).checkpoint, half)
  }),

  async 'a dead job keeps its checkpoint and its log, and continues from there when it is revived'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.extend(claim, { beat: { checkpoint: half, log: 'one\n' } })
    await scene.end(claim, { kind: 'retry', delayMs: 0, last: true, error: 'broken', reason: 'max-retries' })
    const dead = await scene.records.morgue.get(scene.queue, 'a')
    assert.deepEqual([dead?.checkpoint, dead?.log], [half, 'one\n'])
    await scene.records.morgue.revive(scene.queue, 'all')

    assert.deepEqual((await scene.claimOne()).checkpoint, half)
    assert.equal((await scene.job('a')).log, 'one\n')
  },

  async 'a job that is completed with a kept result keeps its log, but no checkpoint'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.extend(claim, { beat: { checkpoint: half, log: 'done\n' } })
    await scene.end(claim, { kind: 'complete', result: { payload: '1' } })

    const kept = await scene.records.get(scene.queue, 'a')
    assert.deepEqual([kept?.state, kept?.checkpoint, kept?.log], ['completed', undefined, 'done\n'])
  },

  async 'nothing of an ended job is passed to a later one with its id'(scene) {
    for (const end of ['complete', 'cancel', 'delete', 'kept'] as const) {
      await scene.add('a')
      const claim = await scene.claimOne()
      await scene.extend(claim, { beat: { checkpoint: half, log: 'one\n' } })
      if (end === 'delete') {
        await scene.end(claim, { kind: 'release', delayMs: 0 })
        await scene.records.delete(scene.queue, { ids: ['a'] })
      } else if (end === 'kept') {
        await scene.end(claim, { kind: 'complete', result: { payload: '1', keepMs: 1_000 } })
      } else await scene.end(claim, { kind: end })
      await scene.advance(3_600_000)
      await scene.add('a')

      const next = await scene.claimOne()
      assert.equal(next.checkpoint, undefined, end)
      assert.equal((await scene.job('a')).log, '', end)
      await scene.end(next, { kind: 'complete' })
    }
  },

  async 'a log grows from heartbeat to heartbeat and over all attempts'(scene) {
    await scene.add('a')
    const first = await scene.claimOne()
    await scene.extend(first, { beat: { log: 'one\n' } })
    await scene.extend(first, { beat: { log: 'tw' } })
    await scene.extend(first, { beat: { startedMs: 0 } })
    await scene.extend(first, { beat: { log: 'o\0 ½ 🎈\n' } })
    await scene.end(first, { kind: 'retry', delayMs: 0 })
    const second = await scene.claimOne()
    await scene.extend(second, { beat: { log: 'three\n' } })

    assert.equal((await scene.records.get(scene.queue, 'a'))?.log, 'one\ntwo\0 ½ 🎈\nthree\n')
  },

  async 'a log keeps its last 64 KiB, from the start of a character'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.extend(claim, { beat: { log: '½'.repeat(mostLogBytes / 2) } })
    assert.equal((await scene.job('a')).log.length, mostLogBytes / 2)
    await scene.extend(claim, { beat: { log: '!' } })
    assert.equal((await scene.job('a')).log, `${'½'.repeat(mostLogBytes / 2 - 1)}!`)
    await scene.extend(claim, { beat: { log: 'x'.repeat(mostLogBytes + 1) } })
    assert.equal((await scene.job('a')).log, 'x'.repeat(mostLogBytes))
  },

  async 'lists show neither checkpoint nor log'(scene) {
    await scene.add('a', 'b')
    const { claims } = await scene.claim()
    for (const claim of claims) await scene.extend(claim, { beat: { checkpoint: half, log: 'one\n' } })
    await scene.end(claims[1]!, { kind: 'bury' })

    const { jobs } = await scene.records.list(scene.queue, { by: 'id', limit: 10 })
    const dead = await scene.records.morgue.list(scene.queue, { by: 'time', limit: 10 })
    for (const job of [...jobs, ...dead.jobs])
      assert.deepEqual([job.checkpoint, job.log], [undefined, undefined], job.id)
  },

  'a lost claim sets no checkpoint and writes no log': plainCase([fenced], async (scene) => {
    await scene.add('a')
    const first = await scene.claimOne({ leaseMs: 1_000 })
    await scene.advance(1_000)
    await scene.claimOne({ alone: true })

    assert.equal(await scene.extend(first, { beat: { checkpoint: half, log: 'late\n' } }), 'lost')
    const { checkpoint, log } = await scene.job('a')
    assert.deepEqual([checkpoint, log], [null, ''])
  }),

  'a job of an ordered queue has neither checkpoint nor log': orderedCase([], async (scene) => {
    await scene.push('a', 'v1')
    const claim = await scene.claimOne()
    await scene.extend(claim, { beat: { checkpoint: half, log: 'one\n', pid: 7 } })
    await scene.end(claim, { kind: 'retry', delayMs: 0 })

    assert.equal((await scene.claimOne()).checkpoint, undefined)
    const { checkpoint, log } = await scene.live('a')
    assert.deepEqual([checkpoint, log], [null, ''])
  }),
})

/** The lease of the only claim expires, and a claim finds it. */
async function crashed(scene: Scene): Promise<void> {
  await scene.advance(30_000)
  const { crashed } = await scene.claim({ worker: 'finder', limit: 0 })
  assert.equal(crashed.length, 1)
}
