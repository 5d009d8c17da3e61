/** Contract cases: cancelling a running job. */

import assert from 'node:assert/strict'
import { type ContractConcern, contractCase, records } from '../scenes/contract-case.js'

export const cancelling: ContractConcern = {
  concern: 'cancelling what runs',
  cases: [
    contractCase(
      'a running job that is cancelled is told at its next beat, which renews it all the same',
      async (scene) => {
        await scene.add('a')
        const claim = await scene.claimOne()

        assert.deepEqual(await scene.records.cancel(scene.queue, { ids: ['a'] }, 'stop'), { changed: 1, more: false })

        assert.equal(await scene.extend(claim, { leaseMs: 60_000 }), 'cancel')
        const { state, claim: held } = await scene.job('a')
        assert.deepEqual([state, held?.leaseMs, held?.cancelRequested], ['running', 60_000, true])
      },
      records,
    ),

    contractCase(
      'a job whose cancellation was asked for is not run again, however its claim ends short of completion',
      async (scene) => {
        const ends = [
          { kind: 'retry', delayMs: 0 },
          { kind: 'retry', delayMs: 1_000 },
          { kind: 'release', delayMs: 0 },
          { kind: 'release', delayMs: 1_000 },
          { kind: 'cancel' },
        ] as const
        for (const [i, end] of ends.entries()) {
          await scene.add(`a${i}`)
          const claim = await scene.claimOne()
          await scene.records.cancel(scene.queue, { ids: [`a${i}`] })
          await scene.end(claim, end)

          assert.deepEqual(await scene.states(), [], end.kind)
        }
      },
      records,
    ),

    contractCase(
      'a job whose cancellation was asked for is not run again when its lease ends',
      async (scene) => {
        await scene.add({ id: 'a', rememberMs: 60_000 })
        await scene.claimOne({ leaseMs: 1_000 })
        await scene.records.cancel(scene.queue, { ids: ['a'] }, 'stop')
        await scene.advance(1_000)

        assert.deepEqual(await scene.claimIds(), [])

        const { remembered, jobs } = await scene.stored()
        assert.deepEqual(jobs, [])
        assert.deepEqual([remembered[0]?.state, remembered[0]?.reason], ['cancelled', 'stop'])
      },
      records,
    ),

    contractCase(
      'a job that completes although its cancellation was asked for is completed',
      async (scene) => {
        await scene.add('a')
        const claim = await scene.claimOne()
        await scene.records.cancel(scene.queue, { ids: ['a'] }, 'stop')
        await scene.end(claim, { kind: 'complete', result: { payload: '1' } })

        const { state, reason } = await scene.job('a')

        assert.deepEqual([state, reason], ['completed', null])
        assert.equal((await scene.depth()).processed, 1)
      },
      records,
    ),
  ],
}
