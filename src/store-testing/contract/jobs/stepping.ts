/** Contract cases: the steps and sleeps that a running job keeps. */

import assert from 'node:assert/strict'
import type { ClaimKey } from '../../../stores/contract/settle.js'
import type { NewStep, StoredStep } from '../../../stores/contract/steps.js'
import {
  expires,
  fenced,
  joins,
  plainCase,
  plainConcern,
  records,
  steps,
  tellsCrashes,
} from '../scenes/contract-case.js'
import { type Scene, soon } from '../scenes/scene.js'

const charged = { name: 'charge', kind: 'step', payload: '{"paid":7}' } as const

export const stepping = plainConcern('steps', [steps], {
  async 'a step that is kept is read with its result and its instant, in the order of the steps'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    const first = await scene.now()
    assert.equal(await keep(scene, claim, charged), 'ok')
    await scene.advance(5)
    assert.equal(await keep(scene, claim, { name: 'a first name', kind: 'step' }), 'ok')
    assert.deepEqual(await read(scene), [
      { ...charged, at: first },
      { name: 'a first name', kind: 'step', at: first + 5 },
    ])
  },

  async 'all of very many steps are read, in their order'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    const names = Array.from({ length: 600 }, (_, i) => `s${i}`)
    for (const name of names) await keep(scene, claim, { name, kind: 'step' })
    assert.deepEqual(
      (await read(scene)).map(({ name }) => name),
      names,
    )
  },

  async 'a result may be bytes of another codec, and a name any text'(scene) {
    await scene.add('a')
    const step = { name: 'ü\0🎈 \n"', kind: 'step', payload: Uint8Array.of(0, 255, 10), codec: 'packed' } as const
    await keep(scene, await scene.claimOne(), step)
    assert.deepEqual(await read(scene), [{ ...step, at: await scene.now() }])
  },

  async 'a step that is kept again stays as it was'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await keep(scene, claim, charged)
    const before = await read(scene)
    await scene.advance(5)
    assert.equal(await keep(scene, claim, { ...charged, payload: '{"paid":8}' }), 'ok')
    assert.equal(await keep(scene, claim, { name: 'charge', kind: 'sleep', forMs: 5 }), 'ok')
    assert.deepEqual(await read(scene), before)
  },

  async 'a sleep says when it is over'(scene) {
    await scene.add('a')
    const at = await scene.now()
    await keep(scene, await scene.claimOne(), { name: 'cool-off', kind: 'sleep', forMs: 60_000 })
    assert.deepEqual(await read(scene), [{ name: 'cool-off', kind: 'sleep', at, until: at + 60_000 }])
  },

  async 'a job without steps has an empty list, and one that is not there has none'(scene) {
    await scene.add('a')
    assert.deepEqual(await scene.steps.read({ queue: scene.queue, id: 'a' }), { now: await scene.now(), steps: [] })
    assert.equal(await scene.steps.read({ queue: scene.queue, id: 'other' }), undefined)
  },

  'a step renews the lease, and never shortens it': plainCase([steps, tellsCrashes], async (scene) => {
    await scene.add('a')
    const claim = await scene.claimOne({ leaseMs: 1_000 })
    await keep(scene, claim, charged, 10_000)
    await keep(scene, claim, { name: 'next', kind: 'step' }, 1)
    await scene.advance(9_999)
    assert.deepEqual((await scene.claim({ worker: 'finder', limit: 0 })).crashed, [])
    await scene.advance(1)
    assert.equal((await scene.claim({ worker: 'finder', limit: 0 })).crashed.length, 1)
  }),

  'a lost claim keeps no step': plainCase([steps, fenced], async (scene) => {
    await scene.add('a')
    const first = await scene.claimOne({ leaseMs: 1_000 })
    await scene.advance(1_000)
    const second = await scene.claimOne({ alone: true, from: [{ queue: scene.queue, limit: 1 }] })
    assert.equal(await keep(scene, first, charged), 'lost')
    assert.deepEqual(await read(scene), [])
    await scene.end(second, { kind: 'complete' })
    assert.equal(await keep(scene, second, charged), 'lost')
    assert.equal(await scene.steps.read({ queue: scene.queue, id: 'a' }), undefined)
  }),

  'the worker of a cancelled job hears of it with its next step, which is kept': plainCase(
    [steps, records],
    async (scene) => {
      await scene.add('a')
      const claim = await scene.claimOne()
      await scene.records.cancel(scene.queue, { ids: ['a'] })
      assert.equal(await keep(scene, claim, charged), 'cancel')
      assert.equal((await read(scene)).length, 1)
    },
  ),

  'steps outlive a retry, a release, a crash, the morgue and a revive': plainCase(
    [steps, tellsCrashes, records],
    async (scene) => {
      await scene.add('a')
      const first = await scene.claimOne()
      await keep(scene, first, charged)
      const kept = await read(scene)
      await scene.end(first, { kind: 'retry', delayMs: 0 })
      await scene.end(await scene.claimOne(), { kind: 'release', delayMs: 0 })
      await scene.claimOne({ leaseMs: 1_000 })
      await scene.advance(1_000)
      await scene.end(await scene.claimOne({ alone: true }), { kind: 'bury' })
      assert.deepEqual(await read(scene), kept)
      await scene.records.morgue.revive(scene.queue, 'all')
      await scene.claimOne()
      assert.deepEqual(await read(scene), kept)
    },
  ),

  'a waiter hears that a job with steps is dead': plainCase([steps, records], async (scene) => {
    await scene.add('a')
    const claim = await scene.claimOne()
    await keep(scene, claim, charged)
    const job = { queue: scene.queue, id: 'a' }
    const stop = new AbortController()
    const watched = scene.records.watch([job], 60_000, stop.signal)
    await scene.end(claim, { kind: 'bury' })
    assert.deepEqual(await scene.records.watch([job], 0, stop.signal), [job])
    assert.deepEqual(await soon(watched), [job])
    stop.abort()
  }),

  async 'jobs that complete together leave no steps, whichever of them had any'(scene) {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f']
    for (const life of ['first', 'second']) {
      for (const id of ids) await scene.add(id)
      const { claims } = await scene.claim({ limit: ids.length })
      for (const { id } of claims)
        assert.deepEqual((await scene.steps.read({ queue: scene.queue, id }))?.steps, [], `${id} in its ${life} life`)
      for (const claim of claims.slice(0, 4)) await keep(scene, claim, charged)
      for (const claim of claims.slice(2)) await keep(scene, claim, { name: 'rest', kind: 'sleep', forMs: 5 })
      const ends = claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' }) as const)
      assert.deepEqual(
        await scene.store.settle(ends),
        ends.map(() => 'ok'),
      )
    }
  },

  'no step of an ended job is passed to a later one with its id': plainCase([steps, records], async (scene) => {
    for (const end of ['complete', 'kept', 'cancel', 'delete', 'morgue', 'clear'] as const) {
      await scene.add('a')
      const claim = await scene.claimOne()
      await keep(scene, claim, charged)
      await scene.steps.signal({ queue: scene.queue, id: 'a' }, { name: 'go' })
      if (end === 'kept') await scene.end(claim, { kind: 'complete', result: { payload: '1', keepMs: 1_000 } })
      else if (end === 'complete' || end === 'cancel') await scene.end(claim, { kind: end })
      else if (end === 'delete') {
        await scene.end(claim, { kind: 'release', delayMs: 0 })
        await scene.records.delete(scene.queue, { ids: ['a'] })
      } else {
        await scene.end(claim, { kind: 'bury' })
        if (end === 'clear') await scene.records.clear(scene.queue)
        else await scene.records.morgue.delete(scene.queue, 'all')
      }
      await scene.advance(3_600_000)
      await scene.add('a')
      const next = await scene.claimOne()
      assert.deepEqual(await read(scene), [], end)
      await keep(scene, next, { name: 'own', kind: 'step' })
      assert.deepEqual(kindsOf(await read(scene)), ['step own'], end)
      await scene.end(next, { kind: 'complete' })
    }
  }),

  'an operator who runs a job now ends its sleep; a failure of its run does not': plainCase(
    [steps, records],
    async (scene) => {
      const nap = { name: 'nap', kind: 'sleep', forMs: 60_000 } as const
      await scene.add('a')
      const at = await scene.now()
      const claim = await scene.claimOne()
      await keep(scene, claim, charged)
      await keep(scene, claim, nap)
      await scene.end(claim, { kind: 'retry', delayMs: 1_000, error: 'a step beside it failed' })
      assert.deepEqual((await read(scene)).at(-1), { name: 'nap', kind: 'sleep', at, until: at + 60_000 })
      await scene.advance(500)
      assert.equal((await scene.records.runNow(scene.queue, { ids: ['a'] })).changed, 1)
      assert.deepEqual((await read(scene)).at(-1), { name: 'nap', kind: 'sleep', at, until: at + 500 })
      assert.equal((await read(scene)).length, 2)
    },
  ),

  'a sleep that is over keeps its end when its job is run now': plainCase([steps, records], async (scene) => {
    await scene.add('a')
    const at = await scene.now()
    const claim = await scene.claimOne()
    await keep(scene, claim, { name: 'nap', kind: 'sleep', forMs: 100 })
    await scene.end(claim, { kind: 'release', delayMs: 1_000 })
    await scene.advance(500)
    await scene.records.runNow(scene.queue, { ids: ['a'] })
    assert.deepEqual(await read(scene), [{ name: 'nap', kind: 'sleep', at, until: at + 100 }])
  }),

  'a job that has reached a step does not expire any more': plainCase([steps, expires], async (scene) => {
    for (const hasSignal of [false, true]) {
      await scene.add({ id: 'a', expiresMs: 1_000 })
      if (hasSignal) await scene.steps.signal({ queue: scene.queue, id: 'a' }, { name: 'go' })
      const claim = await scene.claimOne()
      await keep(scene, claim, { name: 'cool-off', kind: 'sleep', forMs: 5_000 })
      await scene.end(claim, { kind: 'release', delayMs: 5_000 })
      await scene.advance(5_000)
      const next = await scene.claimOne()
      assert.equal(next.id, 'a')
      await scene.end(next, { kind: 'complete' })
    }
  }),

  async 'nothing takes the place of a job that has reached a step'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    await keep(scene, claim, charged)
    await scene.end(claim, { kind: 'release', delayMs: 1_000 })
    assert.deepEqual(await scene.enqueue([{ id: 'a', ifWaiting: 'replace' }]), ['duplicate'])
    assert.equal((await read(scene)).length, 1)
  },

  async 'a step that is forgotten may be kept anew; a signal of its name stays'(scene) {
    const job = { queue: scene.queue, id: 'a' }
    await scene.add('a')
    const claim = await scene.claimOne()
    await keep(scene, claim, charged)
    await scene.steps.signal(job, { name: 'charge', payload: '1' })
    assert.equal(await scene.steps.forget(job, 'other', 'step'), false)
    assert.equal(await scene.steps.forget({ ...job, id: 'other' }, 'charge', 'step'), false)
    assert.equal(await scene.steps.forget(job, 'charge', 'step'), true)
    assert.deepEqual(kindsOf(await read(scene)), ['signal charge'])
    await keep(scene, claim, { ...charged, payload: '{"paid":8}' })
    assert.deepEqual((await read(scene)).at(-1)?.payload, '{"paid":8}')
  },

  async 'the steps of a job beyond its age in the morgue are gone'(scene) {
    const job = { queue: scene.queue, id: 'a' }
    await scene.openQueue({ dead: { ageMs: 5_000 } })
    await scene.add('a')
    const claim = await scene.claimOne()
    await keep(scene, claim, charged)
    await scene.end(claim, { kind: 'bury' })
    await scene.advance(4_999)
    assert.equal((await read(scene)).length, 1)
    await scene.advance(1)
    assert.equal(await scene.steps.read(job), undefined)
    assert.equal(await scene.steps.forget(job, 'charge', 'step'), false)
  },

  async 'a job whose only step is forgotten may be replaced again'(scene) {
    const job = { queue: scene.queue, id: 'a' }
    await scene.add('a')
    const claim = await scene.claimOne()
    await keep(scene, claim, charged)
    await scene.end(claim, { kind: 'release', delayMs: 1_000 })
    await scene.steps.forget(job, 'charge', 'step')
    assert.deepEqual(await scene.enqueue([{ id: 'a', ifWaiting: 'replace' }]), ['replaced'])
    assert.deepEqual(await read(scene), [])
  },

  'a record says whether its job has steps or signals': plainCase([steps, records], async (scene) => {
    const hasSteps = async () => (await scene.records.get(scene.queue, 'a'))?.hasSteps
    await scene.add('a')
    const claim = await scene.claimOne()
    assert.equal(await hasSteps(), undefined)
    await keep(scene, claim, charged)
    assert.equal(await hasSteps(), true)
    await scene.end(claim, { kind: 'complete', result: { payload: '1' } })
    assert.equal(await hasSteps(), undefined)
  }),

  'the steps of a join do not change what it waits for': plainCase([steps, joins], async (scene) => {
    const job = { queue: scene.queue, id: 'join' }
    await scene.openQueue({ name: 'members' })
    const place = { join: job, set: 'all', number: 0, onDead: 'fail', keepsResults: true } as const
    const set = {
      name: 'all',
      queue: 'members',
      ids: 'one',
      isMany: false,
      onDead: 'fail',
      keepsResults: true,
      size: 1,
    } as const
    const made = (id: string) => ({ id, task: 'sum', payload: '1', priority: 0, rememberMs: 0 })
    await scene.store.joins!.enqueue([
      { callId: 'j', queue: scene.queue, jobs: [{ ...made('join'), join: { sets: [set], sealWithinMs: 60_000 } }] },
      { callId: 'm', queue: 'members', jobs: [{ ...made('one'), memberOf: [place] }] },
    ])
    await scene.end(await scene.claimOne({ queue: 'members' }), { kind: 'complete' })
    const claim = await scene.claimOne()
    await keep(scene, claim, charged)
    await scene.end(claim, { kind: 'wait', signal: 'go', withinMs: 60_000 })
    assert.equal((await scene.store.joins!.look(job))?.waitsUntil, undefined)
    await scene.advance(60_000)
    assert.deepEqual((await scene.store.joins!.sweep('worker-1')).failed, [])
    await scene.steps.sweep('worker-1')
    assert.equal((await scene.claimOne()).isJoin, true)
  }),
})

export function keep(
  scene: Scene,
  { queue, id, fence }: ClaimKey,
  step: NewStep,
  leaseMs = 30_000,
): Promise<'ok' | 'lost' | 'cancel'> {
  return scene.steps.keep({ queue, id, fence }, step, leaseMs)
}

/** The entries of the job `a`, which must be there. */
export async function read(scene: Scene): Promise<readonly StoredStep[]> {
  const found = await scene.steps.read({ queue: scene.queue, id: 'a' })
  assert.ok(found, 'the job is there')
  return found.steps
}

export function kindsOf(steps: readonly StoredStep[]): string[] {
  return steps.map(({ kind, name }) => `${kind} ${name}`)
}
