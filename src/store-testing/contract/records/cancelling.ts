/** Contract cases: cancelling a running job. */

import assert from 'node:assert/strict'
import { plainCase, plainConcern, records, tellsCrashes } from '../scenes/contract-case.js'

export const cancelling = plainConcern('cancelling what runs', [records], {
  async 'a running job that is cancelled learns it at its next heartbeat, which still renews it'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()

    assert.deepEqual(await scene.records.cancel(scene.queue, { ids: ['a'] }, 'stop'), { changed: 1, more: false })

    assert.equal(await scene.extend(claim, { leaseMs: 60_000 }), 'cancel')
    const { state, claim: held } = await scene.job('a')
    assert.deepEqual([state, held?.leaseMs, held?.cancelRequested], ['running', 60_000, true])
  },

  async 'a job with a requested cancellation does not run again, however its claim ends short of completion'(scene) {
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

  async 'a job with a requested cancellation does not run again when its lease ends'(scene) {
    await scene.add({ id: 'a', rememberMs: 60_000 })
    await scene.claimOne({ leaseMs: 1_000 })
    await scene.records.cancel(scene.queue, { ids: ['a'] }, 'stop')
    await scene.advance(1_000)

    assert.deepEqual(await scene.claimIds(), [])

    const { remembered, jobs } = await scene.stored()
    assert.deepEqual(jobs, [])
    assert.deepEqual([remembered[0]?.state, remembered[0]?.reason], ['cancelled', 'stop'])
  },

  async 'a job that completes despite a requested cancellation is completed'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.records.cancel(scene.queue, { ids: ['a'] }, 'stop')
    await scene.end(claim, { kind: 'complete', result: { payload: '1' } })

    const { state, reason } = await scene.job('a')

    assert.deepEqual([state, reason], ['completed', null])
    assert.equal((await scene.depth()).processed, 1)
  },

  async 'a job that is cancelled while it runs keeps its input, start, worker, progress and log with its remembered id'(
    scene,
  ) {
    const content = { payload: Uint8Array.of(0, 255), codec: 'raw', meta: '{"by":"Ada"}', group: 'eu' }
    await scene.add({ id: 'a', rememberMs: 60_000, priority: 3, ...content })
    const first = await scene.claimOne()
    await scene.extend(first, { beat: { checkpoint: { payload: '7', codec: 'raw' }, log: 'once\n' } })
    await scene.end(first, { kind: 'retry', delayMs: 0, error: 'Error: broken' })
    const { createdAt } = await scene.job('a')
    const claim = await scene.claimOne({ worker: 'worker-2' })
    await scene.records.setFields(scene.queue, 'a', { node: 'eu-3' })
    const beat = { startedMs: 0, host: 'box', boot: 'b1', pidns: 'n1', pid: 42, ticks: 99, log: 'twice\n' }
    await scene.extend(claim, { beat: { ...beat, progress: { fraction: 0.5 } } })
    const startedAt = await scene.now()
    await scene.advance(1_000)
    await scene.records.cancel(scene.queue, { ids: ['a'] }, 'stop')
    await scene.end(claim, { kind: 'cancel', reason: 'told' })
    const finishedAt = await scene.now()

    const record = await scene.records.get(scene.queue, 'a')

    assert.deepEqual(record, {
      queue: scene.queue,
      id: 'a',
      task: 'send-mail',
      state: 'cancelled',
      ...content,
      priority: 3,
      attempt: 2,
      crashes: 0,
      ...{ createdAt, updatedAt: finishedAt, runAt: record?.runAt, startedAt, finishedAt },
      fields: { node: 'eu-3' },
      worker: 'worker-2',
      ...{ host: 'box', boot: 'b1', pidns: 'n1', pid: 42, ticks: 99 },
      progress: { fraction: 0.5 },
      checkpoint: { payload: '7', codec: 'raw' },
      log: 'once\ntwice\n',
      error: 'Error: broken',
      reason: 'stop',
    })
  },

  async 'a job that cancels itself before its first heartbeat keeps its input, and when and where it ran'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.advance(2_000)
    await scene.end(claim, { kind: 'cancel', run: { startedMs: 1_500, host: 'box', pid: 7 } })

    const record = await scene.records.get(scene.queue, 'a')

    const { payload, startedAt, worker, host, pid } = record!
    assert.deepEqual(
      { payload, startedAt, worker, host, pid },
      { payload: '{"to":"a"}', startedAt: (await scene.now()) - 1_500, worker: 'worker-1', host: 'box', pid: 7 },
    )
  },

  async 'the rest of a cancelled job has the error with which its claim ended'(scene) {
    const ends = [
      { kind: 'retry', delayMs: 0, error: 'Error: first' },
      { kind: 'release', delayMs: 0, error: 'Error: second' },
    ] as const
    for (const end of ends) {
      await scene.add(end.kind)
      const claim = await scene.claimOne()
      await scene.records.cancel(scene.queue, { ids: [end.kind] })
      await scene.end(claim, end)

      assert.equal((await scene.records.get(scene.queue, end.kind))?.error, end.error)
    }
  },

  async 'a job that waits for its next attempt keeps its past when it is cancelled'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.extend(claim, { beat: { startedMs: 0, host: 'box', log: 'once\n' } })
    await scene.end(claim, { kind: 'retry', delayMs: 60_000, error: 'Error: broken' })
    await scene.records.cancel(scene.queue, { ids: ['a'] })

    const record = await scene.records.get(scene.queue, 'a')

    const { payload, attempt, startedAt, worker, host, log, error } = record!
    assert.deepEqual(
      { payload, attempt, startedAt, worker, host, log, error },
      {
        ...{ payload: '{"to":"a"}', attempt: 2, log: 'once\n', error: 'Error: broken' },
        ...{ startedAt: undefined, worker: undefined, host: undefined },
      },
    )
  },

  async 'a job that was put off keeps its log, its checkpoint or the cause when it is cancelled'(scene) {
    const [log, checkpoint, error] = ['not yet\n', { payload: '7' }, 'Error: no handler']
    const runs = [{ beat: { log } }, { beat: { checkpoint } }, { error }]
    for (const [i, { beat, ...end }] of runs.entries()) {
      await scene.add(`a${i}`)
      const claim = await scene.claimOne()
      if (beat !== undefined) await scene.extend(claim, { beat })
      await scene.end(claim, { kind: 'release', delayMs: 60_000, ...end })
    }
    await scene.records.cancel(scene.queue, 'all')

    const records = await Promise.all(runs.map((_, i) => scene.records.get(scene.queue, `a${i}`)))

    assert.deepEqual(
      records.map((record) => [record?.payload, record?.log, record?.checkpoint, record?.error]),
      [
        ['{"to":"a0"}', log, undefined, undefined],
        ['{"to":"a1"}', undefined, checkpoint, undefined],
        ['{"to":"a2"}', undefined, undefined, error],
      ],
    )
  },

  'a job whose worker died keeps its input when it is cancelled': plainCase([records, tellsCrashes], async (scene) => {
    await scene.addSuspects('a')
    await scene.records.cancel(scene.queue, { ids: ['a'] })

    assert.equal((await scene.records.get(scene.queue, 'a'))?.payload, '{"to":"a"}')
  }),

  async 'a job that never started leaves only its id when it is cancelled'(scene) {
    await scene.add({ id: 'a', rememberMs: 60_000, meta: '1', group: 'eu' }, { id: 'b', delayMs: 1_000 })
    await scene.records.setFields(scene.queue, 'a', { node: 'eu-3' })
    await scene.records.cancel(scene.queue, 'all', 'stop')

    const records = await Promise.all(['a', 'b'].map((id) => scene.records.get(scene.queue, id)))

    const { remembered } = await scene.stored()
    assert.deepEqual(
      remembered.map(({ id, remains }) => [id, remains]),
      [
        ['a', null],
        ['b', null],
      ],
    )
    for (const record of records) {
      const { payload, meta, group, fields, reason } = record!
      assert.deepEqual([payload, meta, group, fields, reason], ['', undefined, undefined, undefined, 'stop'])
    }
  },

  async 'the rest of a cancelled job goes when its id is no longer remembered, which is an hour for a generated id'(
    scene,
  ) {
    await scene.add('generated', { id: 'own', rememberMs: 5_000 })
    for (const claim of (await scene.claim()).claims) {
      await scene.extend(claim, { beat: { startedMs: 0, log: 'once\n', checkpoint: { payload: '1' } } })
      await scene.end(claim, { kind: 'cancel' })
    }
    const logOf = async (id: string) => (await scene.records.get(scene.queue, id))?.log

    await scene.advance(4_999)
    assert.deepEqual([await logOf('own'), await logOf('generated')], ['once\n', 'once\n'])
    await scene.advance(1)
    assert.equal(await scene.records.get(scene.queue, 'own'), undefined)
    await scene.advance(3_600_000 - 5_001)
    assert.equal(await logOf('generated'), 'once\n')
    await scene.advance(1)
    assert.equal(await scene.records.get(scene.queue, 'generated'), undefined)

    await scene.add('next')
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    assert.deepEqual((await scene.stored()).remembered, [])
  },

  async 'the next job with the id of a cancelled one inherits nothing of it'(scene) {
    await scene.add({ id: 'a', rememberMs: 5_000, meta: '1' })
    const claim = await scene.claimOne()
    await scene.records.setFields(scene.queue, 'a', { node: 'eu-3' })
    const beat = {
      startedMs: 0,
      host: 'box',
      progress: { fraction: 0.5 },
      checkpoint: { payload: '7' },
      log: 'once\n',
    }
    await scene.extend(claim, { beat })
    await scene.end(claim, { kind: 'cancel' })
    await scene.advance(5_000)

    await scene.add('a')
    const waiting = await scene.records.get(scene.queue, 'a')
    const next = await scene.claimOne({ worker: 'worker-2' })

    const { meta, fields, startedAt, worker, progress, checkpoint, log } = waiting!
    assert.deepEqual([meta, fields, startedAt, worker, progress, checkpoint, log], new Array(7).fill(undefined))
    assert.equal(next.checkpoint, undefined)
    const running = await scene.records.get(scene.queue, 'a')
    assert.deepEqual([running?.worker, running?.host, running?.log], ['worker-2', undefined, undefined])
    await scene.end(next, { kind: 'complete' })
    assert.equal(await scene.records.get(scene.queue, 'a'), undefined)
  },

  async 'a list leaves out the rest of cancelled jobs, and a clear of the queue keeps it'(scene) {
    await scene.add('a')
    await scene.end(await scene.claimOne(), { kind: 'cancel' })
    await scene.records.clear(scene.queue)

    assert.deepEqual((await scene.records.list(scene.queue, { by: 'id', limit: 10 })).jobs, [])
    assert.equal((await scene.records.get(scene.queue, 'a'))?.payload, '{"to":"a"}')
  },
})
