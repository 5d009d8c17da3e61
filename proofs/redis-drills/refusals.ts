/** Refusals: a Redis that answers, but not with what was asked — full, replica, loading, forgetful, busy, unable to save. */

import { appendFile, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type RedisServer, RespError, startRedis } from 'millrace/store-testing'
import { StoreFullError } from '#src/core/errors.js'
import { RespClient } from '#src/store-testing/servers/resp-client.js'
import type { ClaimKey, SettleItem } from '#src/stores/contract/settle.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { Traffic, type TrafficPlan, type Verdict } from './traffic.js'

/** The memory is used up before any worker is there; then one comes, and then there is room again. */
export async function full(plan: { readonly maxmemory: string }) {
  const server = await startRedis({ config: [`maxmemory ${plan.maxmemory}`] })
  const traffic = new Traffic({ url: server.url, bytes: 1_000 })
  const store = new RedisStore({ client: openRedisClient(redisAddress(server.url)), namespace: 'drill' })
  try {
    let error: Error | undefined
    while (error === undefined) error = await traffic.enqueue()
    const [first] = traffic.refusals
    const settles = await settledWhileFull(store)
    const job = traffic.producer.job(traffic.task, [...traffic.acknowledged].at(-1)!)
    const cancelled = await job.cancel()
    traffic.acknowledged.delete(job.id)
    const refused = await traffic.enqueue()
    let storeFailed = 0
    traffic.consumer.on('store.failed', () => {
      storeFailed += 1
    })
    // One that is started only now, as after a deployment.
    await traffic.work()
    const verdict = await traffic.verdict()
    const later = await traffic.enqueue()
    return {
      error: error.name,
      isFull: error instanceof StoreFullError && refused instanceof StoreFullError,
      refusedMs: Math.round(first!.ms),
      settles,
      cancelled,
      acceptedLater: later === undefined,
      storeFailed,
      ...verdict,
    }
  } finally {
    await store.close()
    await traffic.close()
    await server.stop()
  }
}

/** Every way to end a claim, and to keep it, while there is no memory; what is left is given back. */
async function settledWhileFull(store: RedisStore): Promise<string[]> {
  const { claims } = await store.claim([{ queue: 'default', limit: 5 }], { worker: 'drill', leaseMs: 5_000 })
  const keys: ClaimKey[] = claims.map(({ queue, id, fence }) => ({ queue, id, fence }))
  const beat = { startedMs: 0, host: 'drill', progress: { fraction: 0.5 } } as const
  const extended = await store.extend(keys.map((key) => ({ ...key, leaseMs: 10_000, beat })))
  const ends: SettleItem[] = [
    { ...keys[0]!, kind: 'retry', delayMs: 0, error: 'x'.repeat(1_000) },
    { ...keys[1]!, kind: 'release', delayMs: 0 },
    { ...keys[2]!, kind: 'release', delayMs: 10 },
    { ...keys[3]!, kind: 'bury', reason: 'drill' },
    { ...keys[4]!, kind: 'retry', delayMs: 10 },
  ]
  const settled = await store.settle(ends)
  const revived = await store.records.morgue.revive('default', { ids: [keys[3]!.id] })
  const { depths } = await store.depth(['default'])
  return [...extended, ...settled, `revived ${revived.changed}`, `running ${depths[0]!.running}`]
}

export interface RefusalOutcome extends Verdict {
  /** From the moment the fault is over to the next claim that brings jobs, and to the next enqueue accepted. */
  readonly resumedMs: number
  readonly acceptedMs: number
  readonly storeFailed: number
  /** What producers were told, each once. */
  readonly said: readonly string[]
}

interface Fault {
  readonly config?: readonly string[]
  readonly plan?: Partial<TrafficPlan>
  /** Resolves when the fault is over. */
  befall(server: RedisServer, traffic: Traffic): Promise<void>
}

async function under({ config = [], plan = {}, befall }: Fault): Promise<RefusalOutcome> {
  const server = await startRedis({ config })
  const traffic = await Traffic.start({ url: server.url, ...plan })
  try {
    let storeFailed = 0
    traffic.consumer.on('store.failed', () => {
      storeFailed += 1
    })
    await delay(300)
    await befall(server, traffic)
    const [resumedMs, acceptedMs] = await Promise.all([traffic.claimed(), traffic.accepted()])
    const verdict = await traffic.verdict()
    const said = new Set(traffic.refusals.map(({ error }) => `${error.name}: ${error.message}`))
    return {
      resumedMs: Math.round(resumedMs),
      acceptedMs: Math.round(acceptedMs),
      storeFailed,
      said: [...said],
      ...verdict,
    }
  } finally {
    await traffic.close()
    await server.stop()
  }
}

/** The server is made a replica for so long, and a master again. What blocks on it is unblocked with an error. */
export function demoted(plan: { readonly forMs: number }): Promise<RefusalOutcome> {
  return under({
    async befall(server) {
      await server.ask('REPLICAOF', server.host, 1)
      await delay(plan.forMs)
      await server.ask('REPLICAOF', 'NO', 'ONE')
    },
  })
}

/** The server is killed, and loads what it has for seconds when it is started again. */
export async function loading(plan: {
  readonly ballast: number
}): Promise<RefusalOutcome & { readonly loadedMs: number }> {
  let loadedMs = 0
  const outcome = await under({
    config: ['appendonly yes', 'appendfsync always'],
    async befall(server) {
      for (let i = 0; i < plan.ballast; i += 1) await server.ask('SET', `ballast-${i}`, 'x'.repeat(2_048))
      await server.kill()
      const slow = ['key-load-delay 3000', 'loading-process-events-interval-bytes 1024']
      await appendFile(join(server.directory, 'redis.conf'), `${slow.join('\n')}\n`)
      const startedAt = performance.now()
      await server.restart()
      loadedMs = Math.round(performance.now() - startedAt)
    },
  })
  return { ...outcome, loadedMs }
}

/** The server forgets its scripts again and again. */
export function forgotten(plan: { readonly forMs: number; readonly everyMs: number }): Promise<RefusalOutcome> {
  return under({
    async befall(server) {
      for (const until = performance.now() + plan.forMs; performance.now() < until; ) {
        await server.ask('SCRIPT', 'FLUSH')
        await delay(plan.everyMs)
      }
    },
  })
}

/** Somebody else's script keeps the server for so long, until it is killed. */
export function busy(plan: { readonly forMs: number }): Promise<RefusalOutcome> {
  return under({
    config: ['busy-reply-threshold 100'],
    async befall(server) {
      const stranger = new RespClient(server.port, server.host, 2 * plan.forMs)
      const killed = stranger.call('EVAL', 'while true do end', 0).catch((error: unknown) => {
        if (!(error instanceof RespError)) throw error
      })
      await delay(plan.forMs)
      await server.ask('SCRIPT', 'KILL')
      await killed
      stranger.close()
    },
  })
}

/** The directory of its snapshots is removed, and a snapshot fails; then it is back, and one succeeds. */
export function unsaved(plan: { readonly forMs: number }): Promise<RefusalOutcome> {
  return under({
    config: ['enable-protected-configs local', 'stop-writes-on-bgsave-error yes'],
    async befall(server) {
      const directory = join(server.directory, 'snapshots')
      await mkdir(directory)
      await server.ask('CONFIG', 'SET', 'dir', directory)
      await server.ask('CONFIG', 'SET', 'save', '3600 1')
      await rm(directory, { recursive: true })
      await saved(server, 'err')
      await delay(plan.forMs)
      await mkdir(directory)
      await server.ask('CONFIG', 'SET', 'dir', directory)
      await saved(server, 'ok')
    },
  })
}

async function saved(server: RedisServer, status: 'ok' | 'err'): Promise<void> {
  await server.ask('BGSAVE')
  while (!String(await server.ask('INFO', 'persistence')).includes(`rdb_last_bgsave_status:${status}`)) await delay(20)
}

/** Workers that rest are unblocked: by an operator, with an error, and by a demotion. Then there is a job. */
export async function unblocked() {
  const server = await startRedis()
  const traffic = new Traffic({ url: server.url })
  try {
    await traffic.work()
    const startedMs: number[] = []
    const faults = [
      async () => {
        const clients = String(await server.ask('CLIENT', 'LIST'))
        const [, id] = /\bid=(\d+) .*cmd=bzpopmin/.exec(clients)!
        await server.ask('CLIENT', 'UNBLOCK', id!, 'ERROR')
      },
      async () => {
        await server.ask('REPLICAOF', server.host, 1)
        await delay(500)
        await server.ask('REPLICAOF', 'NO', 'ONE')
      },
    ]
    for (const fault of faults) {
      while (!String(await server.ask('CLIENT', 'LIST')).includes('cmd=bzpopmin')) await delay(20)
      await fault()
      const started = traffic.claimed()
      await traffic.enqueue()
      startedMs.push(Math.round(await started))
    }
    return { startedMs, ...(await traffic.verdict()) }
  } finally {
    await traffic.close()
    await server.stop()
  }
}
