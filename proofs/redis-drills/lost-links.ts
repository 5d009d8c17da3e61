/** Lost links: nobody answers — connections that hang, replies that never come, a server that is not there. */

import { setTimeout as delay } from 'node:timers/promises'
import { faultProxy, startRedis } from 'millrace/store-testing'
import { StoreUnavailableError } from '#src/core/errors.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { Traffic } from './traffic.js'

const never = new AbortController().signal

/** For so long nothing passes, and nobody is told: calls and a blocking read under way, then work as if nothing had been. */
export async function halfOpen(plan: { readonly forMs: number }) {
  const server = await startRedis()
  const proxy = await faultProxy(server)
  const client = openRedisClient(redisAddress(proxy.url))
  const store = new RedisStore({ client, namespace: 'drill' })
  const traffic = await Traffic.start({ url: server.url, workersUrl: proxy.url })
  try {
    await store.depth(['default'])
    await client.pop(['bell'], 100, never)
    await proxy.inject('blackHole')
    const startedAt = performance.now()
    const ended = async (work: Promise<unknown>) => {
      const isUnavailable = await work.then(
        () => false,
        (error: unknown) => error instanceof StoreUnavailableError,
      )
      return { isUnavailable, ms: Math.round(performance.now() - startedAt) }
    }
    const [call, pop] = await Promise.all([
      ended(store.depth(['default'])),
      ended(client.pop(['bell'], 500, never)),
      delay(plan.forMs),
    ])
    await proxy.inject('none')
    const resumedMs = Math.round(await traffic.claimed())
    return { call, pop, resumedMs, ...(await traffic.verdict()) }
  } finally {
    await store.close()
    await traffic.close()
    await proxy.close()
    await server.stop()
  }
}

/** The server does what it is told and its answers are lost, again and again, between everybody and the server. */
export async function repliesLost(plan: { readonly rounds: number }) {
  const server = await startRedis()
  const proxy = await faultProxy(server)
  const traffic = await Traffic.start({ url: proxy.url })
  try {
    let outcomes = 0
    traffic.producer.on('job.enqueued', ({ outcome }) => {
      if (outcome !== 'added') outcomes += 1
    })
    const refused = { lost: 0, gone: 0 }
    traffic.consumer.on('settle.refused', ({ answer }) => {
      refused[answer] += 1
    })
    for (let i = 0; i < plan.rounds; i += 1) {
      await delay(200)
      const lost = proxy.replyLost()
      await proxy.inject('dropReplies')
      await lost
      await delay(20)
      await proxy.inject('none')
      proxy.cut()
      await traffic.claimed()
    }
    const verdict = await traffic.verdict()
    const [depth] = await traffic.producer.depths()
    return { countedTwice: outcomes, settlesRefused: refused, processed: depth!.processed, ...verdict }
  } finally {
    await traffic.close()
    await proxy.close()
    await server.stop()
  }
}

/** No server: what producers are told and when, before they ever had one and afterwards; a worker that is started waits. */
export async function noServer(plan: { readonly forMs: number }) {
  const server = await startRedis({ config: ['appendonly yes', 'appendfsync always'] })
  const early = new Traffic({ url: server.url })
  const late = new Traffic({ url: server.url })
  try {
    await early.enqueue()
    await server.kill()
    const startedAt = performance.now()
    const starting = late.work()
    const [had, never] = await Promise.all([early.enqueue(), late.enqueue()])
    const many = await Promise.all(Array.from({ length: 100 }, () => early.enqueue()))
    await delay(Math.max(0, plan.forMs - (performance.now() - startedAt)))
    // Heard from before the server is back: the worker may have its job before the restart is known to be over.
    const [backAt, claimedAt] = await Promise.all([
      server.restart().then(() => performance.now()),
      late.claimed().then(() => performance.now()),
      starting,
    ])
    const workerMs = Math.max(0, Math.round(claimedAt - backAt))
    return {
      isUnavailable: [had, never, ...many].every((error) => error instanceof StoreUnavailableError),
      hadServerMs: Math.round(early.refusals[0]!.ms),
      neverHadServerMs: Math.round(late.refusals[0]!.ms),
      slowestMs: Math.round(Math.max(...early.refusals.map(({ ms }) => ms))),
      workerMs,
      message: had!.message,
    }
  } finally {
    await early.close()
    await late.close()
    await server.stop()
  }
}
