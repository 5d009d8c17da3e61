/** The intake of a listener, next to others of its process who seek to be alone. */

import { setImmediate as endOfTick } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Events } from '#src/core/events.js'
import type { Queue } from '#src/core/queue/queue.js'
import { IdleWaiter } from '#src/runtime/idle-waiter.js'
import { SoloGate, type SoloTurn } from '#src/runtime/solo-gate.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { ListenerClaims } from '#src/workers/listener/listener-claims.js'
import { givenSurroundings } from '../../runtime/given-surroundings.js'

const mono = () => performance.now()

async function intakeOn(soloGate: SoloGate) {
  const store = new MemoryStore()
  await store.open([{ name: 'video', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }])
  const seen = { claims: 0, whileOthersSeek: 0 }
  const take = soloGate.take.bind(soloGate)
  soloGate.take = (claims) => {
    seen.claims += claims
    if (!soloGate.isOpen) seen.whileOthersSeek += claims
    take(claims)
  }
  const [events, opened] = [new Events(), { store, waiter: new IdleWaiter(store, mono) }]
  const claims = new ListenerClaims({
    ...givenSurroundings({ worker: 'listener', events, mono }),
    soloGate,
    queue: { name: 'video', leaseMs: 30_000, longPollMs: 5_000 } as Queue,
    connect: async () => opened,
    hasRoom: () => true,
    lateMs: () => 0,
    ends: { tell: () => {} },
    unwanted: () => {},
    held: () => [],
  })
  onTestFinished(async () => {
    claims.stop()
    await claims.idle()
    await store.close()
  })
  return { claims, seen }
}

/** Ahead of whoever begins to wait after it in the same tick. */
async function seekLater(soloGate: SoloGate, microtasks: number): Promise<SoloTurn> {
  for (let i = 0; i < microtasks; i += 1) await undefined
  return soloGate.seek()
}

describe('the intake of a listener', () => {
  it('claims nothing while another caller waits to run alone, however soon after the last one', async () => {
    // The second one comes in each of the first microtasks after the first one has left.
    for (let later = 1; later < 12; later += 1) {
      const soloGate = new SoloGate()
      const { claims, seen } = await intakeOn(soloGate)
      const first = soloGate.seek()
      claims.next(undefined).catch(() => {})
      for (let i = 0; i < 3; i += 1) await endOfTick()
      expect(seen.claims).toBe(0)

      const seeking = seekLater(soloGate, later)
      first.leave()
      const second = await seeking
      for (let i = 0; i < 3; i += 1) await endOfTick()
      expect(seen.whileOthersSeek).toBe(0)
      second.leave()
      for (let i = 0; i < 3; i += 1) await endOfTick()
      expect(seen.claims).toBeGreaterThan(0)
    }
  })
})
