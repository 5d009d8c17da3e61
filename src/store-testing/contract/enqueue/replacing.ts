/** Contract cases: jobs that replace waiting jobs of the same id. */

import assert from 'node:assert/strict'
import {
  type ContractConcern,
  contractCase,
  exactEnqueue,
  expires,
  fenced,
  groups,
  inOrder,
  needing,
  priority,
  records,
  tellsCrashes,
} from '../scenes/contract-case.js'

const ifWaiting = 'replace'

export const replacing: ContractConcern = {
  concern: 'replacing',
  cases: needing(
    [exactEnqueue],
    [
      contractCase(
        'a job that waits is replaced in all that was said of it, and keeps when it came in',
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
        records,
        priority,
        groups,
      ),

      contractCase('with a delay it is put off by each: a debounce', async (scene) => {
        const call = (n: number) => scene.enqueue([{ id: 'a', payload: `${n}`, delayMs: 1_000, ifWaiting }])
        assert.deepEqual(await call(1), ['added'])
        for (const n of [2, 3, 4]) {
          await scene.advance(900)
          assert.deepEqual(await call(n), ['replaced'])
          assert.deepEqual(await scene.claimIds(), [])
        }
        await scene.advance(1_000)

        assert.equal((await scene.claimOne()).payload, '4')
      }),

      contractCase(
        'without a delay it goes behind those that are ready',
        async (scene) => {
          await scene.add('a', 'b')
          await scene.enqueue([{ id: 'a', ifWaiting }])

          assert.deepEqual(await scene.claimIds(), ['b', 'a'])
        },
        inOrder,
      ),

      contractCase('its claim is told of the job that took the place, and of when the first came in', async (scene) => {
        await scene.add({ id: 'a', payload: '1' })
        const { createdAt } = await scene.job('a')
        await scene.advance(500)
        await scene.enqueue([{ id: 'a', payload: '2', ifWaiting }])

        const claim = await scene.claimOne()

        assert.deepEqual([claim.payload, claim.createdAt, claim.runAt], ['2', createdAt, createdAt + 500])
        await scene.end(claim, { kind: 'complete' })
        assert.deepEqual(await scene.states(), [])
      }),

      contractCase(
        'a job that runs, is dead or remembered is left alone',
        async (scene) => {
          await scene.addDead('dead')
          await scene.add({ id: 'done', rememberMs: 60_000 }, 'running')
          const [done, running] = (await scene.claim()).claims
          await scene.end(done!, { kind: 'complete' })

          const again = ['dead', 'done', 'running'].map((id) => ({ id, payload: '2', ifWaiting }) as const)
          assert.deepEqual(await scene.enqueue(again), ['duplicate', 'duplicate', 'duplicate'])
          assert.equal((await scene.job('running')).payload, 'text:{"to":"running"}')
          await scene.end(running!, { kind: 'complete' })
        },
        fenced,
      ),

      contractCase('an id that is not there, or no longer remembered, is added', async (scene) => {
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
      }),

      contractCase(
        'a job that failed or crashed begins anew',
        async (scene) => {
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
        },
        tellsCrashes,
      ),

      contractCase(
        'what an attempt has noted goes with the job that is replaced',
        async (scene) => {
          await scene.add('a')
          const claim = await scene.claimOne()
          await scene.extend(claim, { beat: { startedMs: 0, checkpoint: { payload: '7' }, log: 'half way' } })
          await scene.end(claim, { kind: 'retry', delayMs: 0 })
          await scene.enqueue([{ id: 'a', ifWaiting }])

          assert.equal((await scene.claimOne()).checkpoint, undefined)
          assert.equal((await scene.records.get(scene.queue, 'a'))?.log, undefined)
        },
        records,
        tellsCrashes,
      ),

      contractCase('within a call the last one counts', async (scene) => {
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
      }),

      contractCase('calls of one trip follow one another', async (scene) => {
        const calls = [1, 2, 3].map((n) => ({
          callId: `trip-${n}`,
          queue: scene.queue,
          jobs: [{ id: 'a', task: 'send', payload: `${n}`, priority: 0, rememberMs: 0, ifWaiting } as const],
        }))

        assert.deepEqual(await scene.store.enqueue(calls), [['added'], ['replaced'], ['replaced']])
        assert.equal((await scene.claimOne()).payload, '3')
        assert.deepEqual(await scene.claimIds(), [])
      }),

      contractCase('a call that is sent again replaces nothing again', async (scene) => {
        await scene.add({ id: 'a', payload: '1' })
        const [second, third] = [{ callId: 'second' }, { callId: 'third' }]
        await scene.enqueue([{ id: 'a', payload: '2', ifWaiting }], second)
        await scene.enqueue([{ id: 'a', payload: '3', ifWaiting }], third)

        assert.deepEqual(await scene.enqueue([{ id: 'a', payload: '2', ifWaiting }], second), ['replaced'])
        assert.equal((await scene.claimOne()).payload, '3')
      }),

      contractCase('it needs no room in a bounded queue, and a queue that drains refuses it', async (scene) => {
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
      }),

      contractCase(
        'an expiry is replaced as well',
        async (scene) => {
          await scene.add({ id: 'a', expiresMs: 1_000 }, { id: 'b' })
          await scene.enqueue([
            { id: 'a', ifWaiting },
            { id: 'b', expiresMs: 1_000, ifWaiting },
          ])
          await scene.advance(1_000)

          const { claims, expired = [] } = await scene.claim()

          assert.deepEqual([claims.map(({ id }) => id), expired.map(({ id }) => id)], [['a'], ['b']])
        },
        expires,
      ),

      contractCase(
        'a job leaves the lane of its group for that of the other',
        async (scene) => {
          await scene.add({ id: 'a', group: 'x' }, { id: 'b', group: 'x' }, { id: 'c', group: 'y' })
          await scene.enqueue([{ id: 'a', group: 'y', ifWaiting }])

          assert.deepEqual(await scene.claimIds(), ['b', 'c', 'a'])
        },
        groups,
      ),
    ],
  ),
}
