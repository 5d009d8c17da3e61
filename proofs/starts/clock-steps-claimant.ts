/**
 * A claimant of the proof `clock-steps`: a process that claims from all queues of a store, ends its claims at once, and
 * rests as an idle worker does. It enqueues jobs when it is ordered to. Its times are from the machine's monotonic
 * clock, which no step moves.
 */

import type { EnqueueCall } from '#src/stores/contract/new-job.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import type { Store } from '#src/stores/contract/store.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'

/** One claim of one job. Its store decided between the two instants. */
export interface Start {
  readonly queue: string
  readonly id: string
  readonly group?: string
  readonly payloads: readonly string[]
  readonly from: number
  readonly to: number
}

export type Order =
  | { readonly word: 'open'; readonly queues: readonly QueueSettings[] }
  | { readonly word: 'claim'; readonly queues: readonly string[] }
  | { readonly word: 'enqueue'; readonly calls: readonly EnqueueCall[] }
  | { readonly word: 'stop' }

export interface Words {
  readonly url?: string
  readonly file?: string
  readonly name: string
}

/** An idle worker looks again after this time. */
const longPollMs = 5_000
const mono = () => Number(process.hrtime.bigint() / 1_000n) / 1_000

const { url, file, name } = JSON.parse(process.argv[2]!) as Words
const store: Store =
  file === undefined
    ? new RedisStore({ client: openRedisClient(redisAddress(url!)), namespace: 'steps' })
    : new SqliteStore({ file })
const stopping = new AbortController()
let running: Promise<void> | undefined

async function claimOn(queues: readonly string[]): Promise<void> {
  const by = { worker: name, leaseMs: 10_000 }
  let turn = 0
  while (!stopping.signal.aborted) {
    try {
      const from = mono()
      const { claims, waits, more } = await store.claim(
        queues.map((_, i) => ({ queue: queues[(i + turn) % queues.length]!, limit: 20 })),
        by,
      )
      const to = mono()
      turn += 1
      const starts = claims.map(({ queue, id, group, payload, payloads }): Start => {
        const texts = payloads?.map((one) => String(one.payload)) ?? [String(payload)]
        return { queue, id, payloads: texts, from, to, ...(group === undefined ? {} : { group }) }
      })
      process.send!({ starts, asked: { from, to } })
      await store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' })))
      if (claims.length > 0 || more) continue
      const leads = waits.filter(({ lead }) => lead).map(({ forMs }) => forMs ?? longPollMs)
      await store.wait(queues, Math.max(1, Math.min(longPollMs, ...leads)), stopping.signal)
    } catch (error) {
      // The server is starting again.
      process.send!({ error: String(error) })
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}

async function obey(order: Order): Promise<void> {
  if (order.word === 'open') await store.open(order.queues)
  else if (order.word === 'claim') running = claimOn(order.queues)
  else if (order.word === 'enqueue') await store.enqueue(order.calls)
  else {
    stopping.abort()
    await running
    await store.close()
    process.disconnect()
    return
  }
  process.send!({ done: true })
}

let last: Promise<unknown> = Promise.resolve()
process.on('message', (order: Order) => {
  last = last.then(() => obey(order)).catch((error) => process.send!({ error: String(error), done: true }))
})
process.send!({ done: true })
