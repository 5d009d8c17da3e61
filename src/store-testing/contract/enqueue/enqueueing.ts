/** Contract cases: enqueueing. */

import assert from 'node:assert/strict'
import { exactEnqueue, inOrder, plainCase, plainConcern, records, tellsCrashes } from '../scenes/contract-case.js'
import { newJob } from '../scenes/scene.js'

const callMemoryMs = 60_000
const callMemoryCount = 10_000

export const enqueueing = plainConcern('enqueueing', [exactEnqueue], {
  'an accepted job is ready at once, with attempt 1, no crashes and its creation time': plainCase([], async (scene) => {
    const now = await scene.now()
    await scene.add({ id: 'a', task: 'resize', meta: '{"trace":1}', priority: 3, rememberMs: 5_000 })

    const { state, task, meta, priority, rememberMs, attempt, crashes, createdAt, updatedAt } = await scene.job('a')

    assert.deepEqual(
      { state, task, meta, priority, rememberMs, attempt, crashes, createdAt, updatedAt },
      {
        state: 'ready',
        task: 'resize',
        meta: 'text:{"trace":1}',
        priority: 3,
        rememberMs: 5_000,
        attempt: 1,
        crashes: 0,
        createdAt: now,
        updatedAt: now,
      },
    )
  }),

  async 'answers are in the order of the calls and of their jobs'(scene) {
    await scene.openQueue({ name: 'other' })
    await scene.add('b')

    const answers = await scene.store.enqueue([
      { callId: 'x', queue: 'other', jobs: [newJob({ id: 'b' })] },
      { callId: 'y', queue: scene.queue, jobs: ['a', 'b', 'c'].map((id) => newJob({ id })) },
    ])

    assert.deepEqual(answers, [['added'], ['added', 'duplicate', 'added']])
  },

  async 'an id that two calls bring at once is added by the first'(scene) {
    const call = (callId: string) => ({ callId, queue: scene.queue, jobs: [newJob({ id: 'a' })] })

    assert.deepEqual(await scene.store.enqueue([call('x'), call('y')]), [['added'], ['duplicate']])
  },

  'an accepted job is visible to every handle': plainCase([], async (scene) => {
    const other = await scene.harness.open()
    await scene.add('a')

    const { claims } = await other.claim([{ queue: scene.queue, limit: 1 }], { worker: 'w2', leaseMs: 30_000 })

    assert.deepEqual(
      claims.map(({ id }) => id),
      ['a'],
    )
  }),

  async 'a call that would exceed maxPending is refused as a whole'(scene) {
    await scene.openQueue({ maxPending: 3 })
    await scene.add('a')

    assert.deepEqual(await scene.enqueue(['b', 'c', 'd']), ['full', 'full', 'full'])
    assert.deepEqual(await scene.states(), ['a ready'])
  },

  async 'a call that just fits maxPending is accepted'(scene) {
    await scene.openQueue({ maxPending: 3 })

    await scene.add('a', 'b', 'c')

    assert.deepEqual(await scene.enqueue(['d']), ['full'])
  },

  async 'maxPending counts ready and scheduled jobs, not running and dead ones'(scene) {
    await scene.openQueue({ maxPending: 2 })
    await scene.addDead('dead')
    await scene.add('running')
    await scene.claimOne()

    await scene.add('a', { id: 'later', delayMs: 60_000 })

    assert.deepEqual(await scene.enqueue(['b']), ['full'])
  },

  async 'duplicates take no room: a call with only duplicates is never full'(scene) {
    await scene.openQueue({ maxPending: 2 })
    await scene.add('a', 'b')

    assert.deepEqual(await scene.enqueue(['a', 'b']), ['duplicate', 'duplicate'])
  },

  async 'a call with only duplicates is never full, even if more jobs wait than a lowered maxPending allows'(scene) {
    await scene.add('a', 'b', 'c')
    await scene.openQueue({ maxPending: 1 })

    assert.deepEqual(await scene.enqueue(['a', 'b']), ['duplicate', 'duplicate'])
    assert.deepEqual(await scene.enqueue(['a', 'd']), ['full', 'full'])
  },

  async 'a call with a duplicate fits if its new jobs fit'(scene) {
    await scene.openQueue({ maxPending: 2 })
    await scene.add('a')

    assert.deepEqual(await scene.enqueue(['a', 'b']), ['duplicate', 'added'])
  },

  async 'one full call does not block the next call of the same batch'(scene) {
    await scene.openQueue({ maxPending: 1 })

    const answers = await scene.store.enqueue([
      { callId: 'x', queue: scene.queue, jobs: [newJob({ id: 'a' }), newJob({ id: 'b' })] },
      { callId: 'y', queue: scene.queue, jobs: [newJob({ id: 'c' })] },
    ])

    assert.deepEqual(answers, [['full', 'full'], ['added']])
  },

  async 'the same id twice in one call is one job and one duplicate'(scene) {
    assert.deepEqual(await scene.enqueue([{ id: 'a', payload: '1' }, { id: 'a', payload: '2' }, 'b']), [
      'added',
      'duplicate',
      'added',
    ])
    assert.equal((await scene.job('a')).payload, 'text:1')
  },

  'the same id in another queue is another job': plainCase([], async (scene) => {
    await scene.openQueue({ name: 'other' })
    await scene.add('a')

    assert.deepEqual(await scene.enqueue(['a'], { queue: 'other' }), ['added'])
  }),

  'ids that differ in case or normal form are different jobs': plainCase([], async (scene) => {
    await scene.add('Ä', 'ä', 'A\u0308', 'a', 'A', 'a ')

    assert.equal((await scene.depth()).ready, 6)
  }),

  async 'a repeated call gets its first answer and is not carried out again'(scene) {
    await scene.add('b')
    const first = await scene.enqueue(['a', 'b'], { callId: 'again' })
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    await scene.end(await scene.claimOne(), { kind: 'complete' })

    assert.deepEqual(await scene.enqueue(['a', 'b'], { callId: 'again' }), first)
    assert.deepEqual(first, ['added', 'duplicate'])
    assert.deepEqual(await scene.states(), [])
  },

  async 'a call repeated through another handle is not carried out again'(scene) {
    const other = await scene.harness.open()
    await scene.enqueue(['a'], { callId: 'again' })
    await scene.end(await scene.claimOne(), { kind: 'complete' })

    const jobs = [newJob({ id: 'a' })]
    const answers = await other.enqueue([{ callId: 'again', isResent: true, queue: scene.queue, jobs }])

    assert.deepEqual(answers, [['added']])
    assert.deepEqual(await scene.states(), [])
  },

  async 'a call sent twice in one batch is carried out once'(scene) {
    const call = { callId: 'twice', queue: scene.queue, jobs: [newJob({ id: 'a' })] }

    assert.deepEqual(await scene.store.enqueue([call, call]), [['added'], ['added']])
    assert.deepEqual(await scene.states(), ['a ready'])
  },

  async 'a refused call is remembered too: a repeat is refused again'(scene) {
    await scene.openQueue({ maxPending: 1 })
    await scene.enqueue(['a', 'b'], { callId: 'again' })
    await scene.openQueue()

    assert.deepEqual(await scene.enqueue(['a', 'b'], { callId: 'again' }), ['full', 'full'])
    assert.deepEqual(await scene.states(), [])
  },

  async 'a call id is remembered for one minute'(scene) {
    await scene.enqueue(['a'], { callId: 'again' })
    await scene.end(await scene.claimOne(), { kind: 'complete' })

    await scene.advance(callMemoryMs - 1)
    await scene.enqueue(['a'], { callId: 'again' })
    assert.deepEqual(await scene.states(), [])

    await scene.advance(1)
    await scene.enqueue(['a'], { callId: 'again' })
    assert.deepEqual(await scene.states(), ['a ready'])
  },

  'a call id is remembered only by its own queue': plainCase([], async (scene) => {
    await scene.openQueue({ name: 'other' })
    await scene.enqueue(['a'], { callId: 'same' })

    assert.deepEqual(await scene.enqueue(['a', 'b'], { callId: 'same', queue: 'other' }), ['added', 'added'])
  }),

  async 'at most 10,000 calls of a queue are remembered, the latest ones'(scene) {
    await scene.enqueue(['job-0'], { callId: 'first' })
    const batches = callMemoryCount / 1_000
    for (let batch = 0; batch < batches; batch++) {
      const calls = Array.from({ length: 1_000 }, (_, i) => ({
        callId: `call ${batch} ${i}`,
        queue: scene.queue,
        jobs: [newJob({ id: `x-${batch}-${i}` })],
      }))
      await scene.store.enqueue(calls)
    }

    const { calls } = await scene.stored()

    assert.equal(calls.length, callMemoryCount)
    assert.equal(calls.filter(({ id }) => id === 'first').length, 0)
  },

  'a call of 250 jobs keeps their order': plainCase([inOrder], async (scene) => {
    const ids = Array.from({ length: 250 }, (_, i) => `job-${(i * 7) % 250}`)

    await scene.add(...ids)

    assert.deepEqual(await scene.claimIds({ limit: 250 }), ids)
  }),

  'an empty list of calls and a call without jobs change nothing': plainCase([], async (scene) => {
    assert.deepEqual(await scene.store.enqueue([]), [])
    assert.deepEqual(await scene.enqueue([]), [])
    assert.deepEqual(await scene.states(), [])
  }),

  'a draining queue refuses every new job': plainCase([records], async (scene) => {
    await scene.add('a')
    await scene.records.drain(scene.queue)

    assert.deepEqual(await scene.enqueue(['a', 'b']), ['draining', 'draining'])
    assert.deepEqual(await scene.states(), ['a ready'])
  }),

  'unicode is returned unchanged, in ids, tasks, payloads, meta and errors': plainCase(
    [tellsCrashes],
    async (scene) => {
      const text = 'Grüße 漢字 🎈 \u0000 \u2028 "\\" e\u0301'
      await scene.add({ id: 'ключ-🔑', task: 'tâche', payload: JSON.stringify(text), meta: JSON.stringify({ text }) })
      await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, error: text })

      const { id, task, payload, meta, error } = await scene.claimOne()

      assert.deepEqual(
        { id, task, payload, meta, error },
        {
          id: 'ключ-🔑',
          task: 'tâche',
          payload: JSON.stringify(text),
          meta: JSON.stringify({ text }),
          error: text,
        },
      )
    },
  ),

  'bytes are returned as bytes and text as text': plainCase([], async (scene) => {
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i)
    await scene.add(
      { id: 'bytes', payload: bytes, meta: bytes, codec: 'raw' },
      { id: 'empty', payload: new Uint8Array() },
      { id: 'text', payload: '' },
    )

    const claims = new Map((await scene.claim()).claims.map((claim) => [claim.id, claim]))

    const [asBytes, asEmpty, asText] = ['bytes', 'empty', 'text'].map((id) => claims.get(id)?.payload)
    assert.deepEqual(new Uint8Array(asBytes as Uint8Array), bytes)
    assert.deepEqual(new Uint8Array(claims.get('bytes')!.meta as Uint8Array), bytes)
    assert.ok(asEmpty instanceof Uint8Array && asEmpty.length === 0)
    assert.equal(asText, '')
    assert.deepEqual(
      ['bytes', 'empty', 'text'].map((id) => claims.get(id)!.codec),
      ['raw', undefined, undefined],
    )
  }),

  'a payload of the largest size is returned whole': plainCase([], async (scene) => {
    const payload = 'x'.repeat(Math.min(scene.store.traits.maxPayloadBytes, 1_048_576) - 2)
    await scene.add({ id: 'large', payload })

    assert.ok((await scene.claimOne()).payload === payload)
  }),

  'a claim carries no field that does not apply': plainCase([], async (scene) => {
    await scene.add('a')

    const claim = await scene.claimOne()

    assert.deepEqual(
      Object.keys(claim).sort(),
      ['attempt', 'crashes', 'createdAt', 'fence', 'id', 'payload', 'priority', 'queue', 'runAt', 'task'].sort(),
    )
  }),
})
