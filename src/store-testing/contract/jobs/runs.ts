/** Contract cases: the runs of a job in its record. */

import assert from 'node:assert/strict'
import { plainCase, plainConcern, records } from '../scenes/contract-case.js'

export const runs = plainConcern('records of runs', [], {
  async 'a job that is kept says when and where it ran, as its settle tells where no beat has'(scene) {
    const run = { startedMs: 40.9, host: 'mill-1', pid: 5 }
    const ends = {
      completed: { kind: 'complete', result: {}, run },
      exhausted: { kind: 'retry', delayMs: 0, last: true, run },
      buried: { kind: 'bury', run },
    } as const
    const told = { startedAt: 0, host: 'mill-1', pid: 5 }
    for (const [id, end] of Object.entries(ends)) {
      await scene.add(id)
      const claim = await scene.claimOne()
      await scene.advance(100)
      await scene.end(claim, end)

      const { startedAt, host, pid } = await scene.job(id)
      assert.deepEqual({ startedAt, host, pid }, { ...told, startedAt: (await scene.now()) - 40 }, id)
    }
  },

  async 'what a beat has said of a run stays when its settle tells otherwise'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.extend(claim, { beat: { startedMs: 0, host: 'mill-1' } })
    const now = await scene.now()
    await scene.advance(100)
    await scene.end(claim, { kind: 'bury', run: { startedMs: 1, host: 'mill-2', pid: 5 } })

    const { startedAt, host, pid } = await scene.job('a')

    assert.deepEqual({ startedAt, host, pid }, { startedAt: now, host: 'mill-1', pid: 5 })
  },

  async 'a job that waits again knows of no run, whatever its settle tells'(scene) {
    await scene.add('a')
    await scene.end(await scene.claimOne(), {
      kind: 'retry',
      delayMs: 0,
      run: { startedMs: 1, host: 'mill-1', pid: 5 },
    })

    const { startedAt, host, pid } = await scene.job('a')

    assert.deepEqual({ startedAt, host, pid }, { startedAt: null, host: null, pid: null })
  },

  async 'a job that is released for a reason says why while it waits; without one it keeps its last error'(scene) {
    await scene.add('a')
    await scene.end(await scene.claimOne(), { kind: 'release', delayMs: 0, error: 'no handler' })
    const first = await scene.job('a')
    const again = await scene.claimOne()
    await scene.end(again, { kind: 'release', delayMs: 5_000 })

    const { error, attempt, state } = await scene.job('a')

    assert.deepEqual([first.error, first.attempt, first.state], ['no handler', 1, 'ready'])
    assert.equal(again.error, 'no handler')
    assert.deepEqual([error, attempt, state], ['no handler', 1, 'scheduled'])
  },

  'a job that is cancelled while it runs leaves nothing of the reason for which it is released to the next of its id':
    plainCase([records], async (scene) => {
      await scene.add('a')
      const claim = await scene.claimOne()
      await scene.records.cancel(scene.queue, { ids: ['a'] })
      await scene.end(claim, { kind: 'release', delayMs: 0, error: 'no handler' })
      await scene.advance(3_600_000)
      await scene.add('a')

      assert.equal((await scene.claimOne()).error, undefined)
    }),
})
