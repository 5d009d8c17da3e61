/** Contract cases: jobs that wait for signals. */

import assert from 'node:assert/strict'
import type { SignalAnswer } from '../../../stores/contract/steps.js'
import { mostSignals } from '../../../stores/rules/bounds.js'
import {
  exactDepth,
  expires,
  limited,
  plainCase,
  plainConcern,
  records,
  rings,
  steps,
  tellsCrashes,
} from '../scenes/contract-case.js'
import { type Scene, soon } from '../scenes/scene.js'
import { keep, kindsOf, read } from './stepping.js'

const hour = 3_600_000

export const signalling = plainConcern('signals', [steps], {
  async 'a job that waits is not claimed, and is ready once its signal has come, with the attempt that it had'(scene) {
    await waiting(scene)
    assert.deepEqual(await scene.states(), ['a waiting'])
    assert.deepEqual(await scene.claimIds(), [])
    assert.equal(await signal(scene, 'go', '{"yes":true}'), 'delivered')
    assert.deepEqual(await read(scene), [
      { name: 'go', kind: 'signal', at: await scene.now(), payload: '{"yes":true}' },
    ])
    const claim = await scene.claimOne()
    assert.deepEqual([claim.id, claim.attempt, claim.crashes], ['a', 1, 0])
  },

  async 'a signal that comes first is kept, and the wait for it ends at once'(scene) {
    await scene.add('a', 'b')
    assert.equal(await signal(scene, 'go', '1'), 'kept')
    const claim = await scene.claimOne()
    await scene.end(claim, { kind: 'wait', signal: 'go' })
    assert.deepEqual(await scene.claimIds(), ['a', 'b'])
  },

  async 'the first signal of a name stays, before the wait and after it'(scene) {
    await waiting(scene)
    assert.equal(await signal(scene, 'go', '1'), 'delivered')
    assert.equal(await signal(scene, 'go', '2'), 'duplicate')
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0 })
    assert.equal(await signal(scene, 'go', '3'), 'duplicate')
    assert.deepEqual(
      (await read(scene)).map(({ payload }) => payload),
      ['1'],
    )
  },

  async 'another signal is kept, and wakes nobody'(scene) {
    await waiting(scene)
    assert.equal(await signal(scene, 'stop'), 'kept')
    assert.deepEqual(await scene.states(), ['a waiting'])
    assert.equal(await signal(scene, 'go'), 'delivered')
    assert.deepEqual(kindsOf(await read(scene)), ['signal stop', 'signal go'])
  },

  async 'data may be bytes of another codec, and a name any text'(scene) {
    await waiting(scene, { signal: 'ü\0🎈 \n"' })
    const data = { payload: Uint8Array.of(0, 255, 10), codec: 'packed' }
    const sent = { name: 'ü\0🎈 \n"', ...data }
    assert.equal(await scene.steps.signal({ queue: scene.queue, id: 'a' }, sent), 'delivered')
    assert.deepEqual(await read(scene), [{ ...sent, kind: 'signal', at: await scene.now() }])
  },

  async 'a signal to a job that is not there, or has completed, finds nobody'(scene) {
    assert.equal(await signal(scene, 'go'), 'gone')
    await scene.add('a')
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    assert.equal(await signal(scene, 'go'), 'gone')
    await scene.addCompleted('a')
    assert.equal(await signal(scene, 'go'), 'gone')
  },

  async 'a signal to a job beyond its age in the morgue finds nobody'(scene) {
    await scene.openQueue({ dead: { ageMs: 5_000 } })
    await scene.addDead('a')
    await scene.advance(4_999)
    assert.equal(await signal(scene, 'go'), 'kept')
    await scene.advance(1)
    assert.equal(await signal(scene, 'stop'), 'gone')
  },

  'a dead job keeps its signals, and finds them when it is revived': plainCase([steps, records], async (scene) => {
    await scene.addDead('a')
    assert.equal(await signal(scene, 'go', '1'), 'kept')
    await scene.records.morgue.revive(scene.queue, 'all')
    await scene.end(await scene.claimOne(), { kind: 'wait', signal: 'go' })
    assert.equal((await scene.claimOne()).id, 'a')
  }),

  async 'a wait that is over in vain leaves an entry, and the job is ready after a sweep'(scene) {
    await waiting(scene, { signal: 'go', withinMs: 60_000 })
    await scene.advance(59_999)
    await scene.steps.sweep('worker-1')
    assert.deepEqual(await scene.states(), ['a waiting'])
    await scene.advance(10_001)
    assert.deepEqual(await scene.steps.sweep('worker-1'), { woken: 1, more: false })
    assert.deepEqual(await read(scene), [{ name: 'go', kind: 'timeout', at: await scene.now() }])
    assert.equal(await signal(scene, 'go'), 'gone')
    const claim = await scene.claimOne()
    await scene.end(claim, { kind: 'wait', signal: 'go' })
    assert.equal((await scene.claimOne()).id, 'a')
  },

  async 'a signal that comes before the sweep ends a wait whose time is over'(scene) {
    await waiting(scene, { signal: 'go', withinMs: 1_000 })
    await scene.advance(2_000)
    assert.equal(await signal(scene, 'go'), 'delivered')
    await scene.advance(10_000)
    await scene.steps.sweep('worker-1')
    assert.deepEqual(kindsOf(await read(scene)), ['signal go'])
  },

  async 'a wait without a bound goes on, however often somebody sweeps'(scene) {
    await waiting(scene)
    await scene.advance(30 * 86_400_000)
    await scene.steps.sweep('worker-1')
    assert.deepEqual(await scene.states(), ['a waiting'])
  },

  async 'a wait of many hours ends in vain, however often somebody has swept before'(scene) {
    await waiting(scene, { signal: 'go', withinMs: 4 * hour })
    for (let swept = 0; swept < 8; swept += 1) {
      await scene.advance(hour / 2)
      await scene.store.joins?.sweep('worker-1')
      await scene.advance(10_000)
      await scene.steps.sweep('worker-1')
    }
    assert.deepEqual(await scene.states(), ['a ready'])
  },

  async 'a sweep ends a bounded number of waits, the oldest first'(scene) {
    const ids = Array.from({ length: 150 }, (_, i) => `j${String(i).padStart(3, '0')}`)
    await scene.add(...ids)
    const { claims } = await scene.claim({ limit: 150 })
    for (const [i, claim] of claims.entries())
      await scene.end(claim, { kind: 'wait', signal: 'go', withinMs: 1_000 + 10 * i })
    await scene.advance(20_000)
    assert.deepEqual(await scene.steps.sweep('worker-1'), { woken: 100, more: true })
    assert.equal((await scene.depth()).ready, 100)
    const states = await scene.states()
    assert.deepEqual([states[0], states[99], states[100]], ['j000 ready', 'j099 ready', 'j100 waiting'])
    assert.deepEqual(await scene.steps.sweep('worker-1'), { woken: 50, more: false })
    assert.equal((await scene.depth()).ready, 150)
  },

  async 'a job that waits is counted as waiting, among the pending jobs, and takes room in a bounded queue'(scene) {
    await waiting(scene)
    const { waiting: found, ready, scheduled, running, payloads } = await scene.depth()
    assert.deepEqual(
      { found, ready, scheduled, running, payloads },
      { found: 1, ready: 0, scheduled: 0, running: 0, payloads: 1 },
    )
  },

  'a job that waits takes no place among those that run': plainCase([steps, limited], async (scene) => {
    await scene.openQueue({ maxRunning: 1 })
    await scene.add('a', 'b')
    await scene.end(await scene.claimOne(), { kind: 'wait', signal: 'go' })
    assert.equal((await scene.claimOne()).id, 'b')
  }),

  'a record says what its job waits for, and until when': plainCase([steps, records], async (scene) => {
    await waiting(scene, { signal: 'go', withinMs: 60_000 })
    const awaits = { signal: 'go', until: (await scene.now()) + 60_000 }
    assert.deepEqual((await scene.records.get(scene.queue, 'a'))?.awaits, awaits)
    const { jobs } = await scene.records.list(scene.queue, { by: 'time', state: 'waiting', limit: 10 })
    assert.deepEqual(
      jobs.map(({ id, awaits }) => ({ id, awaits })),
      [{ id: 'a', awaits }],
    )
    await signal(scene, 'go')
    assert.equal((await scene.records.get(scene.queue, 'a'))?.awaits, undefined)
  }),

  'an operator cancels, deletes, buries and clears jobs that wait': plainCase([steps, records], async (scene) => {
    for (const verb of ['cancel', 'delete', 'bury', 'clear'] as const) {
      await waiting(scene)
      const { changed } =
        verb === 'clear'
          ? await scene.records.clear(scene.queue)
          : await scene.records[verb](scene.queue, { ids: ['a'] })
      assert.equal(changed, 1, verb)
      assert.equal((await scene.depth()).waiting, 0, verb)
      if (verb === 'bury') await scene.records.morgue.delete(scene.queue, 'all')
      assert.equal(await signal(scene, 'go'), 'gone', verb)
      await scene.advance(3_600_000)
    }
  }),

  'an operator cancels, deletes and buries failed jobs that wait, and no others': plainCase(
    [steps, records],
    async (scene) => {
      for (const verb of ['cancel', 'delete', 'bury'] as const) {
        await scene.add('a', 'b')
        await failed(scene, 'a')
        for (const claim of (await scene.claim({ limit: 2 })).claims)
          await scene.end(claim, { kind: 'wait', signal: 'go' })
        assert.deepEqual(await scene.states(), ['a waiting', 'b waiting'], verb)
        assert.deepEqual(await scene.records[verb](scene.queue, 'failed'), { changed: 1, more: false }, verb)
        assert.equal((await scene.records.get(scene.queue, 'b'))?.state, 'waiting', verb)
        await scene.records.clear(scene.queue)
        await scene.advance(3_600_000)
      }
    },
  ),

  'a failed job that waits counts neither as fresh nor as a retry, until its wait is over': plainCase(
    [steps, exactDepth],
    async (scene) => {
      const counts = async () => {
        const { waiting, running, fresh, retries } = await scene.depth()
        return { waiting, running, fresh, retries }
      }
      await scene.add('a')
      await failed(scene, 'a')
      await scene.end(await scene.claimOne(), { kind: 'wait', signal: 'go' })
      assert.deepEqual(await counts(), { waiting: 1, running: 0, fresh: 0, retries: 0 })
      assert.equal(await signal(scene, 'go'), 'delivered')
      assert.deepEqual(await counts(), { waiting: 0, running: 0, fresh: 0, retries: 1 })
      await scene.end(await scene.claimOne(), { kind: 'wait', signal: 'go' })
      assert.deepEqual(await counts(), { waiting: 0, running: 0, fresh: 0, retries: 1 })
      await scene.end(await scene.claimOne(), { kind: 'complete' })
      assert.deepEqual(await counts(), { waiting: 0, running: 0, fresh: 0, retries: 0 })
    },
  ),

  'a job that was buried while it waited does not wait when it is revived': plainCase(
    [steps, records],
    async (scene) => {
      await waiting(scene, { signal: 'go', withinMs: 1_000 })
      await scene.records.bury(scene.queue, 'all')
      await scene.advance(20_000)
      await scene.steps.sweep('worker-1')
      assert.deepEqual(await read(scene), [])
      await scene.records.morgue.revive(scene.queue, 'all')
      assert.equal((await scene.claimOne()).id, 'a')
    },
  ),

  'a run that was cancelled does not wait': plainCase([steps, records], async (scene) => {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.records.cancel(scene.queue, { ids: ['a'] })
    await scene.end(claim, { kind: 'wait', signal: 'go' })
    assert.deepEqual(await scene.states(), [])
  }),

  'a job that waits does not expire': plainCase([steps, expires], async (scene) => {
    await scene.add({ id: 'a', expiresMs: 1_000 })
    await scene.end(await scene.claimOne(), { kind: 'wait', signal: 'go' })
    await scene.advance(5_000)
    assert.equal(await signal(scene, 'go'), 'delivered')
    assert.equal((await scene.claimOne()).id, 'a')
  }),

  'a suspect that has waited is suspect no more': plainCase([steps, tellsCrashes], async (scene) => {
    await scene.addSuspects('a')
    await scene.end(await scene.claimOne({ alone: true }), { kind: 'wait', signal: 'go' })
    assert.equal((await scene.depth()).suspects, 0)
    await signal(scene, 'go')
    assert.deepEqual(await scene.claimIds(), ['a'])
  }),

  'a job that has waited has no crashes': plainCase([steps, tellsCrashes], async (scene) => {
    await scene.add('a')
    await scene.claimOne({ leaseMs: 1_000, alone: true })
    await scene.advance(1_000)
    const claim = await scene.claimOne({ alone: true })
    assert.equal(claim.crashes, 1)
    await scene.end(claim, { kind: 'wait', signal: 'go' })
    await signal(scene, 'go')
    assert.equal((await scene.claimOne()).crashes, 0)
  }),

  async 'a job that has waited keeps its old place'(scene) {
    await scene.add('a', 'b')
    await scene.end(await scene.claimOne(), { kind: 'wait', signal: 'go' })
    await scene.add('c')
    await signal(scene, 'go')
    assert.deepEqual(await scene.claimIds(), ['a', 'b', 'c'])
  },

  'the signal of a wait rings the queue': plainCase([steps, rings], async (scene) => {
    await waiting(scene)
    const waits = scene.store.wait([scene.queue], 60_000, new AbortController().signal)
    await signal(scene, 'go')
    assert.deepEqual(await soon(waits), [scene.queue])
  }),

  async 'a job keeps a bounded number of signals, and the one that it waits for always has room'(scene) {
    await waiting(scene)
    for (let i = 0; i < mostSignals; i += 1) assert.equal(await signal(scene, `s${i}`), 'kept')
    assert.equal(await signal(scene, 'more'), 'full')
    assert.equal(await signal(scene, 's0'), 'duplicate')
    assert.equal(await signal(scene, 'go'), 'delivered')
  },

  async 'the data of the signals that a job keeps is bounded'(scene) {
    await scene.add('a')
    const half = `"${'x'.repeat(2 * 1_048_576 - 2)}"`
    assert.equal(await signal(scene, 'one', half), 'kept')
    assert.equal(await signal(scene, 'two', half), 'kept')
    assert.equal(await signal(scene, 'three', '1'), 'full')
    assert.equal(await signal(scene, 'four'), 'kept')
  },

  async 'a wait that was in vain takes no place among the signals that a job keeps'(scene) {
    await scene.add('a')
    for (let i = 0; i < mostSignals; i += 1) {
      await scene.end(await scene.claimOne(), { kind: 'wait', signal: `s${i}`, withinMs: 1 })
      await scene.advance(10_000)
      await scene.steps.sweep('worker-1')
    }
    assert.equal((await read(scene)).filter(({ kind }) => kind === 'timeout').length, mostSignals)
    for (let i = 0; i < mostSignals; i += 1) assert.equal(await signal(scene, `k${i}`), 'kept')
    assert.equal(await signal(scene, 'more'), 'full')
  },

  async 'a signal that is forgotten may be sent anew, and a step of its name stays'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await keep(scene, claim, { name: 'go', kind: 'step', payload: '1' })
    assert.equal(await signal(scene, 'go', '2'), 'kept')
    assert.equal(await forget(scene, 'stop'), false)
    assert.equal(await forget(scene, 'go', 'other'), false)
    assert.equal(await forget(scene, 'go'), true)
    assert.equal(await forget(scene, 'go'), false)
    assert.deepEqual(kindsOf(await read(scene)), ['step go'])
    await scene.end(claim, { kind: 'wait', signal: 'go' })
    assert.deepEqual(await scene.states(), ['a waiting'])
    assert.equal(await signal(scene, 'go', '3'), 'delivered')
    assert.deepEqual((await read(scene)).at(-1)?.payload, '3')
  },

  async 'a job whose only signal is forgotten while it waits for another waits on'(scene) {
    await waiting(scene)
    await signal(scene, 'stop', '1')
    assert.equal(await forget(scene, 'stop'), true)
    assert.deepEqual(await read(scene), [])
    assert.deepEqual(await scene.states(), ['a waiting'])
    assert.equal(await signal(scene, 'go'), 'delivered')
    assert.equal((await scene.claimOne()).id, 'a')
  },

  async 'a wait in vain that is forgotten begins anew'(scene) {
    await waiting(scene, { signal: 'go', withinMs: 1 })
    await scene.advance(10_000)
    await scene.steps.sweep('worker-1')
    const claim = await scene.claimOne()
    assert.equal(await signal(scene, 'go'), 'gone')
    assert.equal(await forget(scene, 'go'), true)
    await scene.end(claim, { kind: 'wait', signal: 'go' })
    assert.deepEqual(await scene.states(), ['a waiting'])
    assert.equal(await signal(scene, 'go'), 'delivered')
  },

  async 'a signal that is forgotten leaves its place and its bytes to another'(scene) {
    await scene.add('a')
    const most = `"${'x'.repeat(4 * 1_048_576 - 2)}"`
    assert.equal(await signal(scene, 'one', most), 'kept')
    assert.equal(await signal(scene, 'two', '1'), 'full')
    assert.equal(await forget(scene, 'one'), true)
    assert.equal(await signal(scene, 'two', most), 'kept')
    assert.equal(await forget(scene, 'two'), true)
    for (let i = 0; i < mostSignals; i += 1) assert.equal(await signal(scene, `s${i}`), 'kept')
    assert.equal(await signal(scene, 'more'), 'full')
    assert.equal(await forget(scene, 's7'), true)
    assert.equal(await signal(scene, 'more'), 'kept')
  },

  'a dead job forgets a signal, and waits for it anew when it is revived': plainCase(
    [steps, records],
    async (scene) => {
      await scene.add('a')
      await signal(scene, 'go', '"unfit"')
      await scene.end(await scene.claimOne(), { kind: 'bury' })
      assert.equal(await forget(scene, 'go'), true)
      await scene.records.morgue.revive(scene.queue, 'all')
      await scene.end(await scene.claimOne(), { kind: 'wait', signal: 'go' })
      assert.equal(await signal(scene, 'go', '"fit"'), 'delivered')
      assert.deepEqual(
        (await read(scene)).map(({ payload }) => payload),
        ['"fit"'],
      )
    },
  ),

  async 'a lost claim does not wait'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await scene.end(claim, { kind: 'release', delayMs: 0 })
    assert.equal(await scene.settle(claim, { kind: 'wait', signal: 'go' }), 'lost')
    assert.deepEqual(await scene.states(), ['a ready'])
  },
})

/** The job `a` waits for a signal; nothing else may be ready. */
async function waiting(scene: Scene, wait: { signal: string; withinMs?: number } = { signal: 'go' }): Promise<void> {
  await scene.add('a')
  const claim = await scene.claimOne()
  assert.equal(claim.id, 'a')
  await scene.end(claim, { kind: 'wait', ...wait })
}

/** The job of this id, the first that is ready, fails and is ready again. */
async function failed(scene: Scene, id: string): Promise<void> {
  const claim = await scene.claimOne({ from: [{ queue: scene.queue, limit: 1 }] })
  assert.equal(claim.id, id)
  await scene.end(claim, { kind: 'retry', delayMs: 0 })
}

function forget(scene: Scene, name: string, id = 'a'): Promise<boolean> {
  return scene.steps.forget({ queue: scene.queue, id }, name, 'signal')
}

function signal(scene: Scene, name: string, payload?: string): Promise<SignalAnswer> {
  return scene.steps.signal({ queue: scene.queue, id: 'a' }, { name, ...(payload === undefined ? {} : { payload }) })
}
