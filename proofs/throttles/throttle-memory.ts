/** Eight claimants on one memory store, as a contestant of runs under a throttle. */

import { memoryHarness, type StoreHarness } from 'millrace/store-testing'
import type { Store } from '#src/stores/contract/store.js'
import { processes } from './throttle-plan.js'
import type { Contestant } from './throttle-run.js'

export function memoryContestant(): Contestant & { close(): Promise<void> } {
  let harness: StoreHarness | undefined
  let handles: readonly Store[] = []
  let queue = ''
  let jobs = 0
  return {
    async begin({ throttle }) {
      // A new store for each plan: a store with a thousand queues spends its time looking through them.
      await harness?.close()
      const fresh = await memoryHarness()
      harness = fresh
      handles = await Promise.all(Array.from({ length: processes }, () => fresh.open()))
      queue = throttle.scope
      await handles[0]!.open([{ name: queue, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, throttle }])
    },
    async advance(afterMs, arrivals) {
      await harness?.advance(afterMs)
      const came = arrivals.map((group) => {
        const id = String(++jobs)
        return { id, task: 'it', payload: '1', priority: 0, rememberMs: 0, ...(group === '' ? {} : { group }) }
      })
      await handles[0]!.enqueue([{ callId: `call-${jobs}`, queue, jobs: came }])
    },
    async claim(process, limit) {
      const store = handles[process]!
      const { claims } = await store.claim([{ queue, limit }], { worker: `claimant-${process}`, leaseMs: 86_400_000 })
      await store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const })))
      return claims.map(({ group = '' }) => group)
    },
    close: async () => harness?.close(),
  }
}
