/** What a claimer sends when it takes nothing and only has the store recover, promote and ring on. */

import { describe, expect, it } from 'vitest'
import { Events } from '#src/core/events.js'
import type { ClaimFrom } from '#src/stores/contract/claim.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { ClaimCalls } from '#src/workers/claims/claim-calls.js'
import { givenSurroundings } from '../../runtime/given-surroundings.js'

/** Claim calls on a store that keeps what it was asked for; `failed` are its failures. */
async function callsOf(queues: readonly string[]) {
  const store = new MemoryStore()
  await store.open(queues.map((name) => ({ name, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} })))
  const sent: (readonly ClaimFrom[])[] = []
  const claim = store.claim.bind(store)
  store.claim = (from, by) => {
    sent.push(from)
    return claim(from, by)
  }
  const events = new Events()
  const failed: unknown[] = []
  events.on('store.failed', ({ error }) => failed.push(error))
  const calls = new ClaimCalls(givenSurroundings({ events }), {
    queues,
    connect: async () => store,
    held: () => [],
    fellDue: () => {},
    answered: () => {},
    ends: { tell: () => {} },
  })
  return { calls, sent, failed }
}

describe('a claim that takes nothing', () => {
  it('asks for each queue under its own lease', async () => {
    const { calls, sent } = await callsOf(['mail', 'film'])

    await calls.ask([
      { queue: 'mail', leaseMs: 30_000 },
      { queue: 'film', leaseMs: 300_000 },
    ])

    expect(sent).toEqual([
      [
        { queue: 'mail', leaseMs: 30_000, limit: 0 },
        { queue: 'film', leaseMs: 300_000, limit: 0 },
      ],
    ])
  })

  it('is split into several calls if it has more queues than one call may have', async () => {
    const queues = Array.from({ length: 33 }, (_, i) => `q${i}`)
    const { calls, sent, failed } = await callsOf(queues)

    await calls.ask(queues.map((queue) => ({ queue, leaseMs: 1_000 })))

    expect(sent.map((from) => from.length)).toEqual([16, 16, 1])
    expect(sent.flat().map(({ queue }) => queue)).toEqual(queues)
    expect(failed).toEqual([])
  })

  it('is not sent at all if there is no queue to ask for', async () => {
    const { calls, sent, failed } = await callsOf(['mail'])

    await calls.ask([])

    expect(sent).toEqual([])
    expect(failed).toEqual([])
  })
})
