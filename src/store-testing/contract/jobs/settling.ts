/** Contract cases: settling claims, and the records of the runs that they end. */

import assert from 'node:assert/strict'
import {
  exactDepth,
  exactEnqueue,
  fenced,
  inOrder,
  plainCase,
  plainConcern,
  records,
  tellsCrashes,
} from '../scenes/contract-case.js'

export const settling = plainConcern('settling', [], {
  async 'of many completions of one claim one that has ended before is refused, and the others end'(scene) {
    for (const how of [{ kind: 'complete' }, { kind: 'complete', result: { payload: '1' } }] as const) {
      await scene.add(...['a', 'b', 'c', 'd', 'e', 'f'].map((id) => `${id}-${'result' in how ? 'kept' : 'gone'}`))
      const { claims } = await scene.claim()
      assert.equal(claims.length, 6)
      await scene.end(claims[2]!, { kind: 'complete' })

      const answers = await scene.store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, ...how })))

      assert.notEqual(answers[2], 'ok')
      assert.deepEqual([...answers.slice(0, 2), ...answers.slice(3)], Array(5).fill('ok'))
      assert.equal((await scene.depth()).running, 0)
    }
  },

  'the first of two ends of one claim counts, also beside many of one kind': plainCase([inOrder], async (scene) => {
    const kept = { kind: 'complete', result: { payload: '1' } } as const
    for (const [queue, first, second, state] of [
      ['put-back', { kind: 'release', delayMs: 5_000 }, { kind: 'complete' }, 'scheduled'],
      ['not-kept', { kind: 'release', delayMs: 5_000 }, kept, 'scheduled'],
      ['gone', { kind: 'complete' }, kept, undefined],
      ['kept', kept, { kind: 'complete' }, 'completed'],
    ] as const) {
      await scene.openQueue({ name: queue })
      await scene.enqueue(['a', 'b', 'c', 'd', 'e'], { queue })
      const { claims } = await scene.claim({ queue })
      const keys = claims.map(({ id, fence }) => ({ queue, id, fence }))

      const others = keys.slice(1).map((key) => ({ ...key, ...second }))
      const answers = await scene.store.settle([{ ...keys[0]!, ...first }, { ...keys[0]!, ...second }, ...others])

      assert.notEqual(answers[1], 'ok')
      assert.deepEqual([answers[0], ...answers.slice(2)], ['ok', 'ok', 'ok', 'ok', 'ok'])
      const { jobs } = await scene.stored(queue)
      assert.equal(jobs.find(({ id }) => id === 'a')?.state, state)
    }
  }),

  async 'a completed job leaves only a count'(scene) {
    await scene.add('a')
    await scene.end(await scene.claimOne(), { kind: 'complete' })

    const { jobs, remembered, processed, failed } = await scene.stored()

    assert.deepEqual({ jobs, remembered, processed, failed }, { jobs: [], remembered: [], processed: 1, failed: 0 })
  },

  async 'a completed job with a result is kept with it'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.extend(claim, { beat: { startedMs: 0, host: 'mill-1', pid: 5 } })
    const now = await scene.now()

    await scene.end(claim, { kind: 'complete', result: { payload: '"RESULT"', codec: 'my', keepMs: 9_000 } })

    const {
      state,
      result,
      finishedAt,
      expiresAt,
      worker,
      host,
      pid,
      startedAt,
      error,
      claim: held,
    } = await scene.job('a')
    assert.deepEqual(
      { state, result, finishedAt, expiresAt, worker, host, pid, startedAt, error, held },
      {
        state: 'completed',
        result: { payload: 'text:"RESULT"', codec: 'my' },
        finishedAt: now,
        expiresAt: now + 9_000,
        worker: 'worker-1',
        host: 'mill-1',
        pid: 5,
        startedAt: now,
        error: null,
        held: null,
      },
    )
  },

  async 'a completion after a failure shows no error'(scene) {
    await scene.add('a')
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, error: 'once' })
    await scene.end(await scene.claimOne(), { kind: 'complete', result: { payload: '1' } })

    const { error, attempt } = await scene.job('a')

    assert.deepEqual({ error, attempt }, { error: null, attempt: 2 })
  },

  async 'the settle of a missing job is answered gone'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.end(claim, { kind: 'complete' })

    assert.equal(await scene.settle(claim, { kind: 'complete' }), 'gone')
    assert.equal((await scene.stored()).processed, 1)
  },

  'a repeated settle after a kept result is lost and changes nothing': plainCase([fenced], async (scene) => {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.end(claim, { kind: 'complete', result: { payload: '1' } })

    assert.equal(await scene.settle(claim, { kind: 'complete', result: { payload: '2' } }), 'lost')
    assert.equal((await scene.job('a')).result?.payload, 'text:1')
    assert.equal((await scene.stored()).processed, 1)
  }),

  'a fence that was never issued is lost': plainCase([fenced], async (scene) => {
    await scene.add('a', 'b')
    const claim = await scene.claimOne()

    assert.equal(await scene.settle({ ...claim, fence: claim.fence + 1 }, { kind: 'complete' }), 'lost')
    assert.equal(await scene.settle({ ...claim, id: 'b' }, { kind: 'complete' }), 'lost')
    assert.deepEqual(await scene.states(), ['a running', 'b ready'])
  }),

  'items are answered one by one, in order': plainCase([fenced], async (scene) => {
    await scene.openQueue({ name: 'other' })
    await scene.add('a', 'b')
    await scene.enqueue(['c'], { queue: 'other' })
    const { claims } = await scene.claim()
    const [a, b] = claims.map(({ queue, id, fence }) => ({ queue, id, fence }))
    const { queue, id, fence } = await scene.claimOne({ queue: 'other' })

    const answers = await scene.store.settle([
      { ...b!, fence: b!.fence - 1, kind: 'complete' },
      { queue, id, fence, kind: 'release', delayMs: 0 },
      { ...a!, id: 'never', kind: 'complete' },
      { ...a!, kind: 'complete' },
      { ...a!, kind: 'complete' },
    ])

    assert.deepEqual(answers, ['lost', 'ok', 'gone', 'ok', 'gone'])
    assert.deepEqual(await scene.states(), ['b running'])
    assert.deepEqual(await scene.states('other'), ['c ready'])
  }),

  async 'many completions of two claims at once leave only counts'(scene) {
    await scene.add(...Array.from({ length: 12 }, (_, i) => `a${i}`))
    const [first, second] = [await scene.claim({ limit: 6 }), await scene.claim({ limit: 6 })]
    const both = first.claims.flatMap((claim, i) => [claim, second.claims[i]!])

    const answers = await scene.store.settle(
      both.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' })),
    )

    assert.deepEqual(answers, Array(12).fill('ok'))
    const { jobs, processed, failed } = await scene.stored()
    assert.deepEqual({ jobs, processed, failed }, { jobs: [], processed: 12, failed: 0 })
    assert.equal((await scene.depth()).running, 0)
  },

  'many completions at once are each answered separately': plainCase([fenced], async (scene) => {
    const ids = Array.from({ length: 8 }, (_, i) => `a${i}`)
    await scene.add(...ids.slice(1), { id: 'a0', rememberMs: 60_000 })
    const { claims } = await scene.claim()
    const of = (id: string) => {
      const { queue, fence } = claims[0]!
      return { queue, id, fence, kind: 'complete' } as const
    }
    await scene.end(claims.find(({ id }) => id === 'a1')!, { kind: 'retry', delayMs: 0 })

    const answers = await scene.store.settle([...ids.map(of), of('a2'), of('never'), { ...of('a3'), kind: 'bury' }])

    assert.deepEqual(answers, ['ok', 'lost', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'gone', 'gone', 'gone'])
    const { processed, failed, remembered } = await scene.stored()
    assert.deepEqual([processed, failed, remembered.map(({ id }) => id)], [7, 1, ['a0']])
    assert.deepEqual(await scene.states(), ['a1 ready'])
  }),

  async 'a retry counts a failure and waits for its delay'(scene) {
    await scene.add({ id: 'a', meta: '{"trace":1}' })
    const claim = await scene.claimOne()
    await scene.end(claim, { kind: 'retry', delayMs: 10_000, error: 'Error: no' })
    const { state, attempt, error } = await scene.job('a')
    assert.deepEqual([state, attempt, error], ['scheduled', 2, 'Error: no'])
    assert.equal((await scene.depth()).failed, 1)

    await scene.advance(9_999)
    assert.deepEqual(await scene.claimIds(), [])
    await scene.advance(1)
    const again = await scene.claimOne()
    assert.deepEqual(
      [again.id, again.attempt, again.error, again.meta, again.payload, again.createdAt],
      ['a', 2, 'Error: no', '{"trace":1}', claim.payload, claim.createdAt],
    )
  },

  async 'a retry with no delay goes behind the waiting jobs'(scene) {
    await scene.add('a', 'b')
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0 })

    assert.deepEqual(await scene.claimIds(), ['b', 'a'])
  },

  async 'retry delays of 60, 120, 240 and 480 s are kept to the millisecond'(scene) {
    await scene.add('a')
    for (const delayMs of [60_000, 120_000, 240_000, 480_000]) {
      await scene.end(await scene.claimOne(), { kind: 'retry', delayMs })
      await scene.advance(delayMs - 1)
      assert.deepEqual(await scene.claimIds(), [])
      await scene.advance(1)
    }
    const last = await scene.claimOne()
    assert.equal(last.attempt, 5)

    await scene.end(last, { kind: 'retry', delayMs: 0, last: true, error: 'fifth', reason: 'max-retries' })

    const { state, reason, error, attempt, finishedAt } = await scene.job('a')
    assert.deepEqual(
      [state, reason, error, attempt, finishedAt],
      ['dead', 'max-retries', 'fifth', 6, await scene.now()],
    )
    assert.equal((await scene.depth()).failed, 5)
  },

  async 'a retry longer than any lease is kept'(scene) {
    await scene.add('a')
    await scene.end(await scene.claimOne({ leaseMs: 3_000 }), { kind: 'retry', delayMs: 900_000 })
    await scene.advance(899_999)

    assert.deepEqual(await scene.claimIds(), [])
  },

  'a release counts nothing and keeps the old place': plainCase([tellsCrashes, inOrder], async (scene) => {
    await scene.add('a', 'b')
    const claim = await scene.claimOne()
    await scene.add('c')
    await scene.end(claim, { kind: 'release', delayMs: 0 })

    const { claims } = await scene.claim()

    assert.deepEqual(
      claims.map(({ id, attempt }) => [id, attempt]),
      [
        ['a', 1],
        ['b', 1],
        ['c', 1],
      ],
    )
    assert.equal((await scene.depth()).failed, 0)
  }),

  'a release keeps the old place in a lifo queue too': plainCase([inOrder], async (scene) => {
    await scene.openQueue({ name: 'stack', order: 'lifo' })
    await scene.enqueue(['a', 'b'], { queue: 'stack' })
    const claim = await scene.claimOne({ queue: 'stack' })
    await scene.enqueue(['c'], { queue: 'stack' })
    await scene.end(claim, { kind: 'release', delayMs: 0 })

    assert.deepEqual(await scene.claimIds({ queue: 'stack' }), ['c', 'b', 'a'])
  }),

  'a release with a delay is due when the delay is over': plainCase([tellsCrashes], async (scene) => {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.end(claim, { kind: 'release', delayMs: 5_000 })
    await scene.advance(4_999)
    assert.deepEqual(await scene.claimIds(), [])
    await scene.advance(1)

    const { attempt, runAt } = await scene.claimOne()
    assert.deepEqual([attempt, runAt], [1, claim.runAt + 5_000])
  }),

  async 'a released job waits without a worker, a heartbeat or a lease'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ alone: true })
    await scene.extend(claim, { beat: { startedMs: 0, host: 'h', pid: 1, progress: { fraction: 0.5 } } })
    await scene.end(claim, { kind: 'release', delayMs: 0 })

    const { worker, host, pid, progress, startedAt, claim: held } = await scene.job('a')

    assert.deepEqual([worker, host, pid, progress, startedAt, held], [null, null, null, null, null, null])
  },

  async 'a buried job is in the morgue with its error and reason, and counts no failure'(scene) {
    await scene.add('a')
    await scene.end(await scene.claimOne(), { kind: 'bury', error: 'Error: broken', reason: 'unrecoverable' })

    const { state, error, reason, attempt, finishedAt, worker } = await scene.job('a')

    assert.deepEqual(
      [state, error, reason, attempt, finishedAt, worker],
      ['dead', 'Error: broken', 'unrecoverable', 1, await scene.now(), 'worker-1'],
    )
    assert.deepEqual([(await scene.depth()).failed, (await scene.depth()).dead], [0, 1])
    assert.deepEqual(await scene.claimIds(), [])
  },

  async 'a burial without an error keeps the last one'(scene) {
    await scene.add('a')
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, error: 'first' })
    await scene.end(await scene.claimOne(), { kind: 'bury' })

    const { error, reason } = await scene.job('a')

    assert.deepEqual([error, reason], ['first', null])
  },

  async 'a cancelled claim leaves nothing behind and counts as neither'(scene) {
    await scene.add('a')
    await scene.end(await scene.claimOne(), { kind: 'cancel', reason: 'obsolete' })

    const { jobs, processed, failed } = await scene.stored()

    assert.deepEqual([jobs, processed, failed], [[], 0, 0])
  },

  'counters never forget': plainCase([exactDepth], async (scene) => {
    for (const id of ['a', 'b', 'c']) {
      await scene.add(id)
      await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0 })
      await scene.end(await scene.claimOne(), { kind: 'complete' })
    }

    const { processed, failed } = await scene.depth()

    assert.deepEqual([processed, failed], [3, 3])
  }),

  'in many completions of one claim a lost one is lost, a repeated one is gone, and the rest succeed': plainCase(
    [fenced],
    async (scene) => {
      await scene.add('a', 'b', 'c', 'd')
      const { claims } = await scene.claim()
      const [a, b, c, d] = claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const }))
      await scene.end(b!, { kind: 'complete' })
      await scene.add('b')
      await scene.claimOne()

      assert.deepEqual(await scene.store.settle([a!, b!, c!]), ['ok', 'lost', 'ok'])
      assert.deepEqual(await scene.store.settle([d!, d!]), ['ok', 'gone'])
      assert.deepEqual([await scene.states(), (await scene.stored()).processed], [['b running'], 4])
    },
  ),

  'in many completions of one claim each id stays remembered for as long as its job asks': plainCase(
    [exactEnqueue],
    async (scene) => {
      await scene.add('a', { id: 'b', rememberMs: 5_000 }, 'c')
      const { claims } = await scene.claim()
      await scene.store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' })))

      assert.deepEqual(await scene.enqueue(['a', 'b', 'c']), ['added', 'duplicate', 'added'])
    },
  ),

  async 'an empty list of items changes nothing'(scene) {
    assert.deepEqual(await scene.store.settle([]), [])
    assert.deepEqual(await scene.store.extend([]), [])
  },
})

export const runs = plainConcern('records of runs', [], {
  async 'a kept job records when and where it ran, even if it never beat'(scene) {
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

  async 'the run data of a heartbeat stay if the settle has other ones'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.extend(claim, { beat: { startedMs: 0, host: 'mill-1' } })
    const now = await scene.now()
    await scene.advance(100)
    await scene.end(claim, { kind: 'bury', run: { startedMs: 1, host: 'mill-2', pid: 5 } })

    const { startedAt, host, pid } = await scene.job('a')

    assert.deepEqual({ startedAt, host, pid }, { startedAt: now, host: 'mill-1', pid: 5 })
  },

  async 'a job that waits again has no run data, whatever its settle says'(scene) {
    await scene.add('a')
    await scene.end(await scene.claimOne(), {
      kind: 'retry',
      delayMs: 0,
      run: { startedMs: 1, host: 'mill-1', pid: 5 },
    })

    const { startedAt, host, pid } = await scene.job('a')

    assert.deepEqual({ startedAt, host, pid }, { startedAt: null, host: null, pid: null })
  },

  async 'a job released for a reason shows it while it waits; without one it keeps its last error'(scene) {
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

  'the reason of a release is not inherited by the next job with the id of a cancelled one': plainCase(
    [records],
    async (scene) => {
      await scene.add('a')
      const claim = await scene.claimOne()
      await scene.records.cancel(scene.queue, { ids: ['a'] })
      await scene.end(claim, { kind: 'release', delayMs: 0, error: 'no handler' })
      await scene.advance(3_600_000)
      await scene.add('a')

      assert.equal((await scene.claimOne()).error, undefined)
    },
  ),
})
