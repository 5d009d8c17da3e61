/** A Redis scene: a store under a namespace of its own with one queue, and the keys of that queue in your hand. */

import type { ClusterServers, RedisServer } from 'millrace/store-testing'
import { afterAll } from 'vitest'
import type { Claim } from '#src/stores/contract/claim.js'
import type { NewJob } from '#src/stores/contract/new-job.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import type { SettleItem } from '#src/stores/contract/settle.js'
import type { StoreHealth } from '#src/stores/contract/store-health.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import type { RedisArgument, RedisClient, RedisReply } from '#src/stores/redis/client/redis-client.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { listIn } from '#src/stores/redis/client/redis-reply.js'
import { queuesKey, type ShardKey, shardTag } from '#src/stores/redis/redis-keys.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { changed } from '../../changed.js'
import { workerRedis } from '../../worker-redis.js'

export const queue = 'mail'
export const settings: QueueSettings = { name: queue, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }

export interface Login {
  readonly username: string
  readonly password: string
}

export function connect(server: { readonly port: number }, login: Partial<Login> = {}): RedisClient {
  return openRedisClient(redisAddress({ hosts: [`127.0.0.1:${server.port}`], ...login }))
}

export function connectCluster(cluster: ClusterServers, login: Partial<Login> = {}): RedisClient {
  const hosts = cluster.servers.map(({ host, port }) => ({ host, port }))
  return openRedisClient(redisAddress({ kind: 'cluster', hosts, ...login }))
}

/** The server of this process, with a client that is closed after the file of tests that asks. */
export async function sharedRedis(): Promise<{ readonly server: RedisServer; readonly client: RedisClient }> {
  const server = await workerRedis()
  const client = connect(server)
  afterAll(() => client.close())
  return { server, client }
}

/** What a test does before each script is sent, and with each answer. */
interface Beside {
  readonly before?: (script: string, args: readonly RedisArgument[]) => unknown
  readonly after?: (script: string, reply: RedisReply) => unknown
}

/** The same client with a test beside its scripts. */
export function besideScripts(client: RedisClient, { before, after }: Beside): RedisClient {
  return changed(client, {
    async run(script, keys, args, replicas) {
      await before?.(script.name, args)
      const reply = await client.run(script, keys, args, replicas)
      await after?.(script.name, reply)
      return reply
    },
  })
}

let made = 0

export class RedisScene {
  readonly namespace: string
  readonly client: RedisClient
  readonly store: RedisStore
  #calls = 0

  constructor(client: RedisClient, { namespace = `scene-${process.pid}-${++made}`, replicas = 0 } = {}) {
    this.namespace = namespace
    this.client = client
    this.store = new RedisStore({ client, namespace, replicas })
  }

  /** With the queue open, and a job of every kind in it. */
  static async busy(client: RedisClient): Promise<RedisScene> {
    const scene = new RedisScene(client)
    await scene.store.open([settings])
    await scene.fill()
    return scene
  }

  /** Another handle on the same client, with a test beside its scripts. */
  beside(how: Beside): RedisStore {
    return new RedisStore({ client: besideScripts(this.client, how), namespace: this.namespace })
  }

  get health(): StoreHealth {
    return this.store.health
  }

  get queues(): string {
    return queuesKey(this.namespace)
  }

  key(name: ShardKey): string {
    return `${shardTag(this.namespace, queue, 0, 1)}:${name}`
  }

  /** One command on a key of the queue. */
  raw(command: string, name: ShardKey, ...args: RedisArgument[]) {
    return this.client.command(command, [this.key(name), ...args])
  }

  /** The members of a sorted set or the elements of the ready list. */
  async all(name: ShardKey): Promise<Buffer[]> {
    return listIn(await this.raw(name === 'ready-list' ? 'LRANGE' : 'ZRANGE', name, '0', '-1')) as Buffer[]
  }

  /** The fields of a hash, byte by byte. */
  async fields(name: ShardKey): Promise<string[]> {
    return (listIn(await this.raw('HKEYS', name)) as Buffer[]).map((field) => field.toString('latin1'))
  }

  async field(name: ShardKey, field: string): Promise<Buffer> {
    return (await this.raw('HGET', name, field)) as Buffer
  }

  async add(...jobs: (Partial<NewJob> & { readonly id: string })[]): Promise<void> {
    const given = jobs.map((job) => ({ task: 'send', payload: '{}', priority: 0, rememberMs: 0, ...job }))
    await this.store.enqueue([{ callId: `call-${++this.#calls}`, queue, jobs: given }])
  }

  async take(limit = 1, leaseMs = 600_000): Promise<readonly Claim[]> {
    return (await this.store.claim([{ queue, limit }], { worker: 'worker-1', leaseMs })).claims
  }

  async end({ id, fence }: Claim, how: object): Promise<void> {
    await this.store.settle([{ queue, id, fence, ...how } as SettleItem])
  }

  async fill(): Promise<void> {
    const ends: readonly [string, object, Partial<NewJob>][] = [
      ['kept', { kind: 'complete', result: { payload: '1', keepMs: 600_000 } }, {}],
      ['remembered', { kind: 'complete' }, { rememberMs: 600_000, meta: '{}', codec: 'plain' }],
      ['dead', { kind: 'bury', error: 'broken', reason: 'unrecoverable' }, {}],
      ['cancelled', { kind: 'cancel', run: { startedMs: 5, host: 'box', pid: 7 } }, {}],
    ]
    for (const [id, how, job] of ends) {
      await this.add({ id, ...job })
      await this.end((await this.take())[0]!, how)
    }
    await this.add({ id: 'suspect' })
    await this.take(1, 1)
    while ((await this.store.claim([{ queue, limit: 0 }], { worker: 'finder', leaseMs: 1 })).crashed.length === 0);
    await this.add({ id: 'failed' })
    await this.end((await this.take())[0]!, { kind: 'retry', delayMs: 0, error: 'once' })
    await this.add({ id: 'running', rememberMs: 1_000 })
    const claims = await this.take(2)
    await this.end(claims.find(({ id }) => id === 'failed')!, { kind: 'retry', delayMs: 0, error: 'twice' })
    const { fence } = claims.find(({ id }) => id === 'running')!
    const beat = { startedMs: 0, host: 'here', checkpoint: { payload: '1' }, log: 'one' } as const
    await this.store.extend([{ queue, id: 'running', fence, leaseMs: 600_000, beat }])
    await this.add({ id: 'line-1' }, { id: 'line-2' }, { id: 'line-3' }, { id: 'line-4', payload: Buffer.from('x') })
    await this.store.records.delete(queue, { ids: ['line-3'] })
    await this.add({ id: 'urgent', priority: 5 }, { id: 'due-later', delayMs: 3_600_000 })
  }
}
