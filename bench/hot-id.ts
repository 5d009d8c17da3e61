/** The hot id: very many payloads under one id, enqueued and then claimed 1,000 at a time. */

import { storeSource } from '#src/mill/store-source.js'
import type { Store } from '#src/stores/contract/store.js'

export interface HotId {
  readonly firstPerSecond: number
  readonly lastPerSecond: number
  readonly claims: number
  /** The times of the slowest claim and the slowest completion, measured by this process. */
  readonly claimMs: number
  readonly completeMs: number
}

const queue = 'hot'
const perCall = 250
const perClaim = 1_000
/** Claims that are timed. The set of payloads is largest at the first of them. */
const mostClaims = 20

export async function hotIdOn(descriptor: string, payloads: number): Promise<HotId> {
  const store = await storeSource(descriptor).create()
  await store.open([{ name: queue, kind: 'ordered', order: 'fifo', maxCrashes: 3, dead: {}, shards: 5 }])
  const rates: number[] = []
  const tenth = payloads / 10
  for (let from = 0; from < payloads; from += tenth)
    rates.push(tenth / (await seconds(() => enqueue(store, from, tenth))))
  let [claimMs, completeMs, claims] = [0, 0, 0]
  for (; claims < Math.min(mostClaims, payloads / perClaim); claims += 1) {
    const from = [{ queue, limit: 1, maxPayloads: perClaim }]
    let fence = 0
    claimMs = Math.max(
      claimMs,
      1_000 *
        (await seconds(async () => {
          const { claims: taken } = await store.claim(from, { worker: 'bench', leaseMs: 60_000 })
          fence = taken[0]!.fence
        })),
    )
    const complete = () => store.settle([{ queue, id: 'hot', fence, kind: 'complete' }])
    completeMs = Math.max(completeMs, 1_000 * (await seconds(complete)))
  }
  await store.close()
  return { firstPerSecond: rates[0]!, lastPerSecond: rates.at(-1)!, claims, claimMs, completeMs }
}

async function enqueue(store: Store, from: number, count: number): Promise<void> {
  for (let n = from; n < from + count; n += perCall) {
    const jobs = Array.from({ length: Math.min(perCall, from + count - n) }, (_, i) => ({
      id: 'hot',
      task: 'blank',
      payload: JSON.stringify({ n: n + i }),
      priority: 0,
      rememberMs: 0,
    }))
    await store.enqueue([{ callId: `call-${n}`, queue, jobs }])
  }
}

async function seconds(action: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await action()
  return (performance.now() - startedAt) / 1_000
}
