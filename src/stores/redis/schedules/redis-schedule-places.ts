/**
 * The places of the schedules of a Redis store. A schedule is stored in the shard that its jobs go to, because one
 * script ticks it and enqueues them. The index of the namespace says which shard that is. A record that the index does
 * not point to is no schedule: a writer that died halfway may leave such a record, and nobody ticks it.
 */

import type { ScheduleDefinition, StoredSchedule } from '../../contract/schedules.js'
import { shardOf } from '../../rules/payloads.js'
import { placeOf } from '../../rules/schedule-record.js'
import type { RedisClient } from '../client/redis-client.js'
import { listIn, textIn } from '../client/redis-reply.js'
import { scheduleIndexKeys, scheduleKeys } from '../redis-keys.js'
import { liveShards, type RedisQueue, type RedisShard, shardHolding } from '../redis-layout.js'
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

  /** The tags of the shards that the schedules are in; undefined for names without a schedule. */
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

  /** The shard that a schedule with this definition belongs in. */
  async shardFor(definition: ScheduleDefinition): Promise<RedisShard> {
    const [queue] = await this.#queues.findNow([definition.queue])
    return definition.job.id === undefined
      ? queue!.shards[shardOf(placeOf(definition), queue!.shards.length)]!
      : shardHolding(queue!, definition.job.id)
  }

  /** Registers the place under the name. False if the name was already registered. */
  async register(name: string, tag: string): Promise<boolean> {
    await this.#client.command('HSET', [this.#places, tag, '1'])
    return (await this.#client.command('HSETNX', [this.#index, name, tag])) === 1
  }

  /** Registers a record that has just been written, in case a call that removed its predecessor took the name out. */
  async confirm(name: string, tag: string): Promise<void> {
    await this.#client.command('HSETNX', [this.#index, name, tag])
  }

  /** Call it once the record is gone. False if the name no longer points to this place. */
  async unregister(name: string, tag: string): Promise<boolean> {
    if ((await this.#client.run(compareAndSetScript, [this.#index], [name, tag])) === 0) return false
    // Another process may have written a new record while it saw the name registered.
    const isThere = await this.#client.command('HEXISTS', [scheduleKeys(tag)[0]!, name])
    if (isThere === 1) await this.confirm(name, tag)
    return true
  }

  /**
   * Moves a schedule to another shard: writes its record there, points the index to it, and removes the old record. If
   * it ends halfway, it may be repeated. `old` is the revision of the old record.
   */
  async move(schedule: RedisSchedule, from: string, shard: RedisShard, old: string): Promise<void> {
    const { name } = schedule.definition
    await this.#client.command('HSET', [this.#places, shard.tag, '1'])
    const { revision, nextAt = -1, updatedAt } = schedule
    const args = ['adopt', name, recordText(schedule), revision, String(nextAt), String(updatedAt)]
    await this.#queues.runOver([shard], writeScheduleScripts, args, undefined, scheduleKeys(shard.tag))
    await this.#client.run(compareAndSetScript, [this.#index], [name, from, shard.tag])
    const [at] = await this.of([name])
    // Another process was faster: the schedule is in another shard, or gone.
    if (at !== shard.tag) await this.end(name, shard.tag, revision)
    await this.end(name, from, old)
  }

  /** Removes the record if it has this revision. Returns whether it did. */
  async end(name: string, tag: string, revision: string): Promise<boolean> {
    return (await this.#client.run(endScheduleScript, scheduleKeys(tag), ['remove', name, revision])) !== null
  }

  /**
   * The shard that a schedule of this queue ticks in; undefined if there is none. If its queue has moved to other
   * shards, the schedule is moved too, because its old shard is closed and ticks no more.
   */
  async following(name: string, queueName: string): Promise<{ shard: RedisShard; queue: RedisQueue } | undefined> {
    const [tag] = await this.of([name])
    if (tag === undefined) return undefined
    // Asked after the index, so that the answer includes every shard that the index may point to.
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

  /** Forgets a closed shard as a place once its last schedule has gone. A closed shard never gets another schedule. */
  async #leave(tag: string): Promise<void> {
    const left = await this.#client.command('EXISTS', [scheduleKeys(tag)[0]!])
    if (left === 0) await this.#client.command('HDEL', [this.#places, tag])
  }
}
