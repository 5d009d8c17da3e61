/** The queues of a Redis store as one handle knows them: in which shards each lies. */

import { crc32 } from 'node:zlib'
import { StoreCorruptError, UnknownQueueError } from '../../core/errors.js'
import { type QueueForm, refuseOtherForm } from '../../core/queue.js'
import type { QueueSettings, StoredQueue } from '../store.js'
import { namingForeignKey } from './redis-foreign-key.js'
import { keysOf, queuesKey, shardTag } from './redis-keys.js'
import { type RedisArgument, type RedisPort, type RedisReply, ScriptRefusal } from './redis-port.js'
import { listIn, numberIn, textIn } from './redis-reply.js'
import type { RedisScript } from './redis-script.js'
import type { RedisScripts } from './redis-scripts.js'

export interface RedisShard {
  readonly queue: string
  /** As every script is given them. */
  readonly keys: readonly string[]
}

export class RedisQueues {
  readonly #port: RedisPort
  readonly #scripts: RedisScripts
  readonly #namespace: string
  readonly #shards = new Map<string, readonly RedisShard[]>()
  /** What this handle opened, for a server whose data were thrown away under it. */
  readonly #opened = new Map<string, QueueSettings>()

  constructor(port: RedisPort, scripts: RedisScripts, namespace: string) {
    this.#port = port
    this.#scripts = scripts
    this.#namespace = namespace
  }

  async open(queues: readonly QueueSettings[]): Promise<StoredQueue[]> {
    const names = queues.map(({ name }) => name)
    const stored = await this.#storedShards(names)
    // All are looked at before the first is written.
    await Promise.all(
      queues.map(async (settings, i) => {
        if (stored[i] === undefined) return
        const reply = await this.#run(this.#shardsOf(settings.name, stored[i])[0]!, this.#scripts.open, ['0'])
        if (reply !== null) refuseOtherForm(settings.name, formIn(reply), settings)
      }),
    )
    return Promise.all(queues.map((settings, i) => this.#write(settings, stored[i])))
  }

  /** The shards of each queue. Throws `UnknownQueueError` where one is not there; nothing was asked of any then. */
  async find(names: readonly string[]): Promise<(readonly RedisShard[])[]> {
    const unknown = [...new Set(names.filter((name) => !this.#shards.has(name)))]
    if (unknown.length > 0) {
      const stored = await this.#storedShards(unknown)
      for (const [i, name] of unknown.entries()) {
        if (stored[i] === undefined) throw new UnknownQueueError(name, await this.names())
        this.#shards.set(name, this.#shardsOf(name, stored[i]))
      }
    }
    return names.map((name) => this.#shards.get(name)!)
  }

  /** Known already, without asking. */
  known(name: string): readonly RedisShard[] | undefined {
    return this.#shards.get(name)
  }

  /** The names of all queues of the namespace, in no order. */
  async names(): Promise<string[]> {
    return listIn(await this.#port.command('HKEYS', [queuesKey(this.#namespace)])).map(textIn)
  }

  /** The queue as it is stored. Throws `UnknownQueueError` where it is registered and nothing is stored of it. */
  async stored(name: string): Promise<StoredQueue> {
    const [shards] = await this.find([name])
    const reply = await this.run(shards![0]!, this.#scripts.open, ['0'])
    if (reply !== null) return { name, ...storedIn(reply) }
    await this.#restore(name)
    return this.stored(name)
  }

  /** The shard that an id lies in. */
  shardOf(shards: readonly RedisShard[], id: string): RedisShard {
    return shards.length === 1 ? shards[0]! : shards[crc32(id) % shards.length]!
  }

  /**
   * Runs a script on a shard. Where the shard is not there any more (its data were thrown away), it is made anew with the
   * settings it was opened with, and the script is run again; throws `UnknownQueueError` where it was not opened here.
   */
  async run(
    shard: RedisShard,
    script: RedisScript,
    args: readonly RedisArgument[],
    replicas?: number,
  ): Promise<RedisReply> {
    return this.runOver([shard], script, args, replicas)
  }

  /** The same over several shards, which must lie on one server. */
  async runOver(
    shards: readonly RedisShard[],
    script: RedisScript,
    args: readonly RedisArgument[],
    replicas?: number,
  ): Promise<RedisReply> {
    const keys = shards.length === 1 ? shards[0]!.keys : shards.flatMap((shard) => shard.keys)
    try {
      return await this.#port.run(script, keys, args, replicas)
    } catch (error) {
      if (error instanceof StoreCorruptError) throw await namingForeignKey(this.#port, shards, error).catch(() => error)
      if (!(error instanceof ScriptRefusal) || error.word !== 'unknown') throw error
      for (const queue of new Set(shards.map((shard) => shard.queue))) await this.#restore(queue)
      return this.#port.run(script, keys, args, replicas)
    }
  }

  async #restore(queue: string): Promise<void> {
    const settings = this.#opened.get(queue)
    // Kept where it is made anew: whoever looks for it meanwhile would not find it.
    if (settings !== undefined) return void (await this.open([settings]))
    this.#shards.delete(queue)
    throw new UnknownQueueError(queue, await this.names())
  }

  async #write(settings: QueueSettings, storedShards: number | undefined): Promise<StoredQueue> {
    const { name, kind, order, maxPending, maxCrashes, resultsCount, dead } = settings
    const count = storedShards ?? (await this.#fixShards(settings))
    const shards = this.#shardsOf(name, count)
    const share = (bound: number | undefined) => (bound === undefined ? '' : String(Math.ceil(bound / count)))
    const args = [
      '1',
      kind,
      order,
      share(maxPending),
      String(maxCrashes),
      share(resultsCount),
      dead.ageMs === undefined ? '' : String(Math.ceil(dead.ageMs)),
      share(dead.count),
    ]
    const [first, ...others] = shards
    const reply = await this.#run(first!, this.#scripts.open, args)
    // Another process may have been first: who makes the first shard decides the form of all.
    refuseOtherForm(name, formIn(reply), settings)
    await Promise.all(others.map((shard) => this.#run(shard, this.#scripts.open, args)))
    this.#shards.set(name, shards)
    this.#opened.set(name, settings)
    return { name, ...storedIn(reply) }
  }

  /** Of the number of shards the first that was ever said counts. */
  async #fixShards({ name, shards = 1 }: QueueSettings): Promise<number> {
    const key = queuesKey(this.#namespace)
    await this.#port.command('HSETNX', [key, name, String(shards)])
    return numberIn(await this.#port.command('HGET', [key, name]))
  }

  async #storedShards(names: readonly string[]): Promise<(number | undefined)[]> {
    if (names.length === 0) return []
    const reply = await this.#port.command('HMGET', [queuesKey(this.#namespace), ...names])
    return listIn(reply).map((count) => (count === null ? undefined : numberIn(count)))
  }

  #shardsOf(queue: string, count: number): RedisShard[] {
    return Array.from({ length: count }, (_, shard) => ({
      queue,
      keys: keysOf(shardTag(this.#namespace, queue, shard, count)),
    }))
  }

  #run(shard: RedisShard, script: RedisScript, args: readonly RedisArgument[]): Promise<RedisReply> {
    return this.#port.run(script, shard.keys, args)
  }
}

/**
 * The answer of one queue among all of a namespace; undefined where that one is registered and nothing is stored of it:
 * it is being made, or whoever was to make it ended too soon.
 */
export async function unlessUnknown<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof UnknownQueueError) return undefined
    throw error
  }
}

function storedIn(reply: RedisReply): Omit<StoredQueue, 'name'> {
  const [, , paused, draining] = listIn(reply)
  return { ...formIn(reply), paused: paused === 1, draining: draining === 1 }
}

function formIn(reply: RedisReply): QueueForm {
  const [kind, order] = listIn(reply)
  return { kind: textIn(kind) as QueueForm['kind'], order: textIn(order) as QueueForm['order'] }
}
