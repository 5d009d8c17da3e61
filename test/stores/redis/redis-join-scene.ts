/**
 * Joins on Redis: handles on one namespace, each like a process of its own that dies before one of its scripts if the test
 * says so, and a clock that the test moves.
 */

import { defaultStartAt } from 'millrace/store-testing'
import { onTestFinished } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import { JoinScene, members } from '#src/store-testing/contract/scenes/join-scene.js'
import { auditedClient } from '#src/store-testing/harness/redis-audit.js'
import type { StoreHarness } from '#src/store-testing/harness/store-harness.js'
import type { RedisArgument, RedisClient, RedisReply } from '#src/stores/redis/client/redis-client.js'
import { bytesIn } from '#src/stores/redis/client/redis-reply.js'
import { keyNames, type ShardKey, shardTag } from '#src/stores/redis/redis-keys.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { workerRedis } from '../../worker-redis.js'
import { connect } from './redis-scene.js'

/** Whether the process dies before this script; it is asked for each of them, by name. */
export type Death = (script: string) => boolean

/** Whether the server is away for this script. */
type Outage = (script: string, args: readonly RedisArgument[]) => boolean

/** Done before each script. */
type Meanwhile = (script: string) => Promise<void>

let made = 0

export class RedisJoins {
  readonly namespace = `joins-${process.pid}-${++made}`
  now = defaultStartAt

  /** A handle of a process of its own. */
  async open(
    dies: Death = () => false,
    isAway: Outage = () => false,
    meanwhile: Meanwhile = async () => {},
  ): Promise<RedisStore> {
    const inner = mortal(connect(await workerRedis()), { dies, isAway, meanwhile })
    const client = auditedClient(inner, this.namespace, () => this.now)
    const store = new RedisStore({ client, namespace: this.namespace })
    onTestFinished(() => store.close())
    return store
  }

  /** A scene of the contract on such a handle, with its queues. `shards`: of the queue of members. */
  async scene(dies?: Death, shards = 1, meanwhile?: Meanwhile): Promise<JoinScene> {
    const advance = async (ms: number) => {
      this.now += ms
    }
    const scene = new JoinScene({ name: 'redis', advance } as StoreHarness, await this.open(dies, undefined, meanwhile))
    await scene.openQueue()
    await scene.openQueue({ name: members, shards })
    return scene
  }

  /** One command; its answer as texts. */
  async command(name: string, ...args: RedisArgument[]): Promise<string[]> {
    return (await this.#asked(name, args)).map(String)
  }

  /** Damages the value of a field. */
  async spoil(queue: string, name: ShardKey, field: string, change: (value: Buffer) => Buffer): Promise<void> {
    const key = this.key(queue, name)
    const [value] = await this.#asked('HGET', [key, field])
    await this.#asked('HSET', [key, field, change(bytesIn(value!))])
  }

  /** Saves a queue of one shard as it is; the answer brings it back, as a failover to a replica that was behind does. */
  async saved(queue: string): Promise<() => Promise<void>> {
    const keys = keyNames('plain').map((name) => this.key(queue, name))
    for (const key of keys) await this.command('COPY', key, `${key}:saved`, 'REPLACE')
    return async () => {
      await this.command('DEL', ...keys)
      for (const key of keys) await this.command('COPY', `${key}:saved`, key)
    }
  }

  async #asked(name: string, args: readonly RedisArgument[]): Promise<readonly RedisReply[]> {
    const client = connect(await workerRedis())
    const reply = await client.command(name, args)
    await client.close()
    return Array.isArray(reply) ? reply : [reply]
  }

  key(queue: string, name: ShardKey, shard = 0, shards = 1): string {
    return `${shardTag(this.namespace, queue, shard, shards)}:${name}`
  }
}

/** From its death on, every call of the client is refused. */
function mortal(
  client: RedisClient,
  { dies, isAway, meanwhile }: { readonly dies: Death; readonly isAway: Outage; readonly meanwhile: Meanwhile },
): RedisClient {
  let isDead = false
  const alive = () => {
    if (isDead) throw new StoreUnavailableError('the process has died', { inDoubt: false })
  }
  return {
    get isCluster() {
      return client.isCluster
    },
    async run(script, keys, args, replicas): Promise<RedisReply> {
      isDead ||= dies(script.name)
      alive()
      if (isAway(script.name, args)) throw new StoreUnavailableError('the server is away', { inDoubt: false })
      await meanwhile(script.name)
      return client.run(script, keys, args, replicas)
    },
    async command(name: string, args: readonly RedisArgument[]) {
      alive()
      return client.command(name, args)
    },
    pop: (keys, forMs, signal) => client.pop(keys, forMs, signal),
    popAndRun: (keys, forMs, signal, call) => client.popAndRun(keys, forMs, signal, call),
    listen: (channel, heard) => client.listen(channel, heard),
    reach: () => client.reach(),
    close: () => client.close(),
  }
}
