/**
 * The places of the schedules of a Redis store. A schedule lies in the shard that its jobs go to, where one script ticks and
 * enqueues; the index of the namespace says which shard that is. What the index does not point at is no schedule: a writer that
 * died half way may leave a record behind, which nobody ticks.
 */

import type { ScheduleDefinition, StoredSchedule } from '../../contract/schedules.js'
import { shardOf } from '../../rules/payloads.js'
import { placeOf } from '../../rules/schedule-record.js'
import type { RedisClient } from '../client/redis-client.js'
import { listIn, textIn } from '../client/redis-reply.js'
import { scheduleIndexKeys, scheduleKeys } from '../layout/redis-keys.js'
import { liveShards, type RedisQueue, type RedisShard, shardHolding } from '../layout/redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { recordIn, recordText } from './redis-schedule-record.js'
import { compareAndSetScript, endScheduleScript, writeScheduleScripts } from './schedule-scripts.js'

export type RedisSchedule = Omit<StoredSchedule, 'shards'>

export class RedisSchedulePlaces {
  readonly #client: RedisClient
  readonly #queues: RedisQueues
  readonly #index: string
  readonly #places: string

  constructor(client: RedisClient, queues: RedisQueues, namespace: string) {
    this.#client = client
    this.#queues = queues
    ;[this.#index, this.#places] = scheduleIndexKeys(namespace)
  }

  /** Where they lie; undefined for those that are none. */
  async of(names: readonly string[]): Promise<(string | undefined)[]> {
    if (names.length === 0) return []
    const tags = listIn(await this.#client.command('HMGET', [this.#index, ...names]))
    return tags.map((tag) => (tag === null ? undefined : textIn(tag)))
  }

  async names(): Promise<string[]> {
    return listIn(await this.#client.command('HKEYS', [this.#index])).map(textIn)
  }

  async read(name: string, tag: string): Promise<RedisSchedule | undefined> {
    const text = await this.#client.command('HGET', [scheduleKeys(tag)[0]!, name])
    return text === null ? undefined : recordIn(textIn(text))
  }

  /** The shard that such a schedule is to lie in. */
  async shardFor(definition: ScheduleDefinition): Promise<RedisShard> {
    const [queue] = await this.#queues.findNow([definition.queue])
    return definition.job.id === undefined
      ? queue!.shards[shardOf(placeOf(definition), queue!.shards.length)]!
      : shardHolding(queue!, definition.job.id)
  }

  /** Whether nothing was registered under this name, and now this place is. */
  async register(name: string, tag: string): Promise<boolean> {
    await this.#client.command('HSET', [this.#places, tag, '1'])
    return (await this.#client.command('HSETNX', [this.#index, name, tag])) === 1
  }

  /** What was written there is told of, though whoever removed the one before has just taken the name out. */
  async confirm(name: string, tag: string): Promise<void> {
    await this.#client.command('HSETNX', [this.#index, name, tag])
  }

  /** Once its record is gone. False where the name does not stand for this place any more. */
  async unregister(name: string, tag: string): Promise<boolean> {
    if ((await this.#client.run(compareAndSetScript, [this.#index], [name, tag])) === 0) return false
    // Somebody may have written another and seen the name stand there.
    const isThere = await this.#client.command('HEXISTS', [scheduleKeys(tag)[0]!, name])
    if (isThere === 1) await this.confirm(name, tag)
    return true
  }

  /**
   * Writes a record that lay elsewhere into this shard, then points the index there, then takes the other out. Wherever that
   * ends half way, it may be done again. `old`: the revision of the one that lies elsewhere.
   */
  async move(schedule: RedisSchedule, from: string, shard: RedisShard, old: string): Promise<void> {
    const { name } = schedule.definition
    await this.#client.command('HSET', [this.#places, shard.tag, '1'])
    const { revision, nextAt = -1, updatedAt } = schedule
    const args = ['adopt', name, recordText(schedule), revision, String(nextAt), String(updatedAt)]
    await this.#queues.runOver([shard], writeScheduleScripts, args, undefined, scheduleKeys(shard.tag))
    await this.#client.run(compareAndSetScript, [this.#index], [name, from, shard.tag])
    const [at] = await this.of([name])
    // Others were faster, and it lies elsewhere or is gone.
    if (at !== shard.tag) await this.end(name, shard.tag, revision)
    await this.end(name, from, old)
  }

  /** Takes the record out if it has this revision; whether it did. */
  async end(name: string, tag: string, revision: string): Promise<boolean> {
    return (await this.#client.run(endScheduleScript, scheduleKeys(tag), ['remove', name, revision])) !== null
  }

  /**
   * The shard that a schedule of this queue ticks in; undefined where there is none. Where its queue has gone to other shards,
   * the schedule follows: the one it lay in is closed, and ticks no more.
   */
  async following(name: string, queueName: string): Promise<{ shard: RedisShard; queue: RedisQueue } | undefined> {
    const [tag] = await this.of([name])
    if (tag === undefined) return undefined
    // Asked for later, so that it knows of every shard that the index may point at.
    const [queue] = await this.#queues.findNow([queueName])
    const shard = liveShards(queue!).find((one) => one.tag === tag)
    if (shard !== undefined) return { shard, queue: queue! }
    const schedule = await this.read(name, tag)
    if (schedule === undefined || schedule.definition.queue !== queueName) return undefined
    const to = await this.shardFor(schedule.definition)
    if (to.tag === tag) return { shard: to, queue: queue! }
    await this.move(schedule, tag, to, schedule.revision)
    await this.#leave(tag)
    return { shard: to, queue: queue! }
  }

  /** Nobody looks there any more, once the last schedule has gone: a shard that is closed is never given another. */
  async #leave(tag: string): Promise<void> {
    const left = await this.#client.command('EXISTS', [scheduleKeys(tag)[0]!])
    if (left === 0) await this.#client.command('HDEL', [this.#places, tag])
  }
}
