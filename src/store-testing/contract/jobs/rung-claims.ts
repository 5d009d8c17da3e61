/** Contract cases: rung claims, which go along with a wait and are made when it ends. */

import assert from 'node:assert/strict'
import type { Claim, Rung } from '../../../stores/contract/claim.js'
import type { Store } from '../../../stores/contract/store.js'
import { plainConcern } from '../scenes/contract-case.js'
import { type Scene, soon } from '../scenes/scene.js'

/** Longer than any case may take: a wait that ends sooner ended for another reason. */
const longMs = 25_000

const claimsWhenRung = (store: Store) =>
  store.claimWhenRung !== undefined || 'the store is no server that could claim at a ring'

export const rungClaims = plainConcern('rung claims', [claimsWhenRung], {
  async 'a claim that waits is made when its queue is rung'(scene) {
    const waiting = waitOn(scene)
    await scene.enqueue(['a', 'b'])
    const ended = await soon(waiting)

    assert.deepEqual(ended.rung, [scene.queue])
    assert.deepEqual(idsOf(await claimsIn(scene, ended)), ['a', 'b'])
    assert.deepEqual(await scene.claimIds(), [])
  },

  async 'a claim that waits takes at most what it asks for, and others are rung for the rest'(scene) {
    const other = await scene.harness.open()
    const waiting = waitOn(scene, { limit: 1 })
    await scene.enqueue(['a', 'b', 'c'])
    const claims = await claimsIn(scene, await soon(waiting), 1)

    assert.deepEqual(idsOf(claims), ['a'])
    assert.deepEqual(await soon(other.wait([scene.queue], longMs, never())), [scene.queue])
    assert.deepEqual(await scene.claimIds(), ['b', 'c'])
  },

  async 'a claim that waits belongs to its worker, with its lease'(scene) {
    const waiting = waitOn(scene, { leaseMs: 5_000 })
    await scene.add('a')
    const [claim] = await claimsIn(scene, await soon(waiting))
    await scene.advance(4_999)
    assert.deepEqual((await scene.claim()).crashed, [])
    await scene.advance(30_001)
    const { crashed } = await scene.claim()

    assert.deepEqual(
      crashed.map(({ id, worker }) => [id, worker]),
      [[claim!.id, 'worker-1']],
    )
  },

  async 'a claim that waits finds existing jobs at once'(scene) {
    await scene.add('a')

    assert.deepEqual(idsOf(await claimsIn(scene, await soon(waitOn(scene)))), ['a'])
  },

  async 'a claim that waits asks all of its queues'(scene) {
    await scene.openQueue({ name: 'second' })
    const from = [scene.queue, 'second'].map((queue) => ({ queue, limit: 5 }))
    const waiting = scene.store.claimWhenRung!(from, by, longMs, never())
    await scene.enqueue(['a'], { queue: 'second' })
    const ended = await soon(waiting)

    assert.deepEqual(ended.rung, ['second'])
    const { claims } = ended.claimed ?? (await scene.claim({ from }))
    assert.deepEqual(
      claims.map(({ queue, id }) => [queue, id]),
      [['second', 'a']],
    )
  },

  async 'a claim that waits ends when its time is over, or when it is aborted'(scene) {
    for (const [forMs, signal] of [
      [20, never()],
      [longMs, AbortSignal.abort()],
      [longMs, AbortSignal.timeout(20)],
    ] as const) {
      const { rung, claimed } = await soon(waitOn(scene, { forMs, signal }))
      assert.deepEqual([rung, claimed?.claims ?? []], [[], []])
    }
    await scene.add('a')
    assert.deepEqual(await scene.claimIds(), ['a'])
  },

  async 'no job is lost if a wait is aborted while it is rung'(scene) {
    for (let i = 0; i < 20; i += 1) {
      const abort = new AbortController()
      const waiting = waitOn(scene, { signal: abort.signal })
      const added = scene.add(`job-${i}`)
      if (i % 2 === 0) await added
      abort.abort()
      await added
      const answered = (await soon(waiting)).claimed?.claims ?? []
      const { claims } = await scene.claim()

      assert.deepEqual(idsOf([...answered, ...claims]), [`job-${i}`])
      for (const claim of [...answered, ...claims]) await scene.end(claim, { kind: 'complete' })
    }
  },

  async 'each job goes to one of several waiting claims'(scene) {
    const other = await scene.harness.open()
    const given: string[] = []
    for (let i = 0; i < 10; i += 1) {
      const over = new AbortController()
      const waiting = [scene.store, scene.store, other].map((store) =>
        store.claimWhenRung!([{ queue: scene.queue, limit: 1 }], by, longMs, over.signal),
      )
      await scene.add(`job-${i}`)
      await Promise.race(waiting)
      over.abort()
      const ended = await Promise.all(waiting)
      const { claims } = await scene.claim()
      given.push(...idsOf([...ended.flatMap(({ claimed }) => claimed?.claims ?? []), ...claims]))
    }

    assert.deepEqual(
      given,
      Array.from({ length: 10 }, (_, i) => `job-${i}`),
    )
  },
})

const by = { worker: 'worker-1', leaseMs: 30_000 }

interface WaitOptions {
  readonly limit?: number
  readonly leaseMs?: number
  readonly forMs?: number
  readonly signal?: AbortSignal
}

function waitOn(
  { store, queue }: Scene,
  { limit = 10, leaseMs = by.leaseMs, forMs = longMs, signal = never() }: WaitOptions = {},
): Promise<Rung> {
  return store.claimWhenRung!([{ queue, limit, leaseMs }], by, forMs, signal)
}

/** The jobs of the claim that went along, or of one that is made now. */
async function claimsIn(scene: Scene, { claimed }: Rung, limit = 10): Promise<Claim[]> {
  return (claimed ?? (await scene.claim({ limit }))).claims
}

const idsOf = (claims: readonly Claim[]) => claims.map(({ id }) => id)

function never(): AbortSignal {
  return new AbortController().signal
}
