/** Contract cases: how long an id is known. */

import assert from 'node:assert/strict'
import { exactEnqueue, plainCase, plainConcern, records } from '../scenes/contract-case.js'
import { newJob } from '../scenes/scene.js'

export const idempotency = plainConcern('idempotency', [exactEnqueue], {
  async 'the id of a waiting, running or dead job is taken, and nothing changes'(scene) {
    await scene.addDead('dead')
    await scene.add('running')
    await scene.claimOne()
    await scene.add('ready', { id: 'scheduled', delayMs: 1_000 })
    const before = await scene.stored()

    const answers = await scene.enqueue(
      ['dead', 'running', 'ready', 'scheduled'].map((id) => ({ id, payload: 'other', priority: 9 })),
      { callId: 'call-1' + ' again' },
    )

    assert.deepEqual(answers, ['dead', 'duplicate', 'duplicate', 'duplicate'])
    assert.deepEqual((await scene.stored()).jobs, before.jobs)
  },

  async 'a completed job without a kept result frees its id at once if the id is not remembered'(scene) {
    await scene.add('a')
    await scene.end(await scene.claimOne(), { kind: 'complete' })

    await scene.add('a')
  },

  async 'a completed id is remembered for rememberMs after its end, and not a millisecond longer'(scene) {
    await scene.add({ id: 'a', rememberMs: 5_000 })
    await scene.advance(60_000)
    await scene.end(await scene.claimOne(), { kind: 'complete' })

    await scene.advance(4_999)
    assert.deepEqual(await scene.enqueue(['a']), ['duplicate'])
    await scene.advance(1)
    assert.deepEqual(await scene.enqueue(['a']), ['added'])
  },

  async 'a cancelled id is remembered like a completed one'(scene) {
    await scene.add({ id: 'a', rememberMs: 5_000 })
    await scene.end(await scene.claimOne(), { kind: 'cancel', reason: 'changed my mind' })

    assert.deepEqual(await scene.enqueue(['a']), ['duplicate'])
    await scene.advance(5_000)
    assert.deepEqual(await scene.enqueue(['a']), ['added'])
  },

  'a cancelled job is remembered for a minute even without rememberMs': plainCase(
    [exactEnqueue, records],
    async (scene) => {
      await scene.add('a')
      await scene.records.cancel(scene.queue, { ids: ['a'] }, 'stop')
      await scene.advance(59_999)
      assert.equal((await scene.records.get(scene.queue, 'a'))?.state, 'cancelled')
      await scene.advance(1)

      assert.equal(await scene.records.get(scene.queue, 'a'), undefined)
    },
  ),

  async 'an id with a kept result that is not remembered is replaced'(scene) {
    await scene.addCompleted('a')

    assert.deepEqual(await scene.enqueue([{ id: 'a', payload: 'new' }]), ['added'])

    const { state, payload, result, finishedAt, attempt } = await scene.job('a')
    assert.deepEqual(
      { state, payload, result, finishedAt, attempt },
      { state: 'ready', payload: 'text:new', result: null, finishedAt: null, attempt: 1 },
    )
  },

  async 'an id with a kept result is a duplicate until it is no longer remembered'(scene) {
    await scene.addCompleted('a', { rememberMs: 5_000 }, 60_000)

    await scene.advance(4_999)
    assert.deepEqual(await scene.enqueue(['a']), ['duplicate'])
    assert.deepEqual(await scene.states(), ['a completed'])
    await scene.advance(1)
    assert.deepEqual(await scene.enqueue(['a']), ['added'])
    assert.deepEqual(await scene.states(), ['a ready'])
  },

  async 'an id stays remembered if its result expires first'(scene) {
    await scene.addCompleted('a', { rememberMs: 5_000 }, 1_000)

    await scene.advance(1_000)
    assert.deepEqual(await scene.states(), [])
    assert.deepEqual(await scene.enqueue(['a']), ['duplicate'])

    await scene.add('trimming')
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    assert.deepEqual(await scene.enqueue(['a']), ['duplicate'])
    await scene.advance(4_000)
    assert.deepEqual(await scene.enqueue(['a']), ['added'])
  },

  async 'an id stays remembered if its result is over the limit of results'(scene) {
    await scene.openQueue({ resultsCount: 1 })
    await scene.addCompleted('a', { rememberMs: 5_000 })
    await scene.addCompleted('b', { rememberMs: 5_000 })

    assert.deepEqual(await scene.states(), ['b completed'])
    assert.deepEqual(await scene.enqueue(['a', 'b']), ['duplicate', 'duplicate'])
  },

  'a deleted job leaves no memory of its id': plainCase([exactEnqueue, records], async (scene) => {
    await scene.add({ id: 'a', rememberMs: 5_000 })
    await scene.records.delete(scene.queue, { ids: ['a'] })

    assert.deepEqual(await scene.enqueue(['a']), ['added'])
  }),

  'a remembered job is returned with id, task, state and times, and an empty payload': plainCase(
    [exactEnqueue, records],
    async (scene) => {
      const createdAt = await scene.now()
      await scene.add({ id: 'a', task: 'resize', rememberMs: 5_000 })
      await scene.advance(100)
      await scene.end(await scene.claimOne(), { kind: 'complete' })

      const job = await scene.records.get(scene.queue, 'a')

      assert.equal(job?.id, 'a')
      assert.equal(job.queue, scene.queue)
      assert.equal(job.task, 'resize')
      assert.equal(job.state, 'completed')
      assert.equal(job.payload, '')
      assert.equal(job.createdAt, createdAt)
      assert.equal(job.finishedAt, createdAt + 100)
      assert.equal(job.result, undefined)
    },
  ),

  'a job that is no longer remembered is not shown': plainCase([exactEnqueue, records], async (scene) => {
    await scene.add({ id: 'a', rememberMs: 5_000 })
    await scene.end(await scene.claimOne(), { kind: 'complete' })

    await scene.advance(5_000)

    assert.equal(await scene.records.get(scene.queue, 'a'), undefined)
  }),

  'a remembered cancelled job says so, and why': plainCase([exactEnqueue, records], async (scene) => {
    await scene.add({ id: 'a', rememberMs: 5_000 })
    await scene.records.cancel(scene.queue, { ids: ['a'] }, 'not needed')

    const job = await scene.records.get(scene.queue, 'a')

    assert.deepEqual([job?.state, job?.reason], ['cancelled', 'not needed'])
  }),

  async 'calls whose id is that of their job are added in order, and once'(scene) {
    const calls = (isResent: boolean) =>
      ['c', 'a', 'b'].map((id) => ({ callId: id, isResent, queue: scene.queue, jobs: [newJob({ id })] }))
    assert.deepEqual(await scene.store.enqueue(calls(false)), [['added'], ['added'], ['added']])
    const claim = await scene.claimOne()
    await scene.end(claim, { kind: 'complete' })

    assert.deepEqual(await scene.store.enqueue(calls(true)), [['added'], ['added'], ['added']])
    assert.deepEqual([claim.id, await scene.claimIds()], ['c', ['a', 'b']])
  },

  async 'a call that was sent before keeps its place before the others of its enqueue'(scene) {
    const call = (callId: string, isResent: boolean) => ({
      callId,
      isResent,
      queue: scene.queue,
      jobs: [newJob({ id: 'a' })],
    })
    const answers = await scene.store.enqueue([call('lost', true), call('next', false)])
    assert.deepEqual(answers, [['added'], ['duplicate']])
  },

  async 'a call with new ids is added once, however often it is sent'(scene) {
    const call = {
      callId: 'call',
      hasNewIds: true,
      queue: scene.queue,
      jobs: ['b', 'a'].map((id) => newJob({ id })),
    }
    assert.deepEqual(await scene.store.enqueue([call]), [['added', 'added']])
    const claim = await scene.claimOne()
    await scene.end(claim, { kind: 'complete' })

    assert.deepEqual(await scene.store.enqueue([{ ...call, isResent: true }]), [['added', 'added']])
    assert.deepEqual([claim.id, await scene.claimIds()], ['b', ['a']])
  },

  async 'an id that is used again is remembered from its new end'(scene) {
    await scene.add({ id: 'a', rememberMs: 1_000 })
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    await scene.advance(1_000)
    await scene.add({ id: 'a', rememberMs: 9_000 })
    await scene.end(await scene.claimOne(), { kind: 'complete' })

    await scene.advance(8_999)

    assert.deepEqual(await scene.enqueue(['a']), ['duplicate'])
  },
})
