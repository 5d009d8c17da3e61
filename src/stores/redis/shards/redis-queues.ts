/** The queues of a Redis store as a handle knows them, with their shards. */

import { ConfigConflictError, hasCode, StoreUnavailableError, UnknownQueueError } from '../../../core/errors.js'
import type { QueueLimits } from '../../../core/queue/queue-limits.js'
import { refuseOtherThrottle, type Throttle } from '../../../core/queue/throttle.js'
import { keptCall } from '../../../core/values/kept-call.js'
import type { QueueSettings, StoredQueue } from '../../contract/queue-settings.js'
import { boundsOf, changedLimits, limitsIn, saidLimits } from '../../rules/limit-rules.js'
import { refuseGroupBound, refuseOtherForm } from '../../rules/queue-form.js'
import type { RedisArgument, RedisClient, RedisReply } from '../client/redis-client.js'
import { listIn, numberIn, textIn } from '../client/redis-reply.js'
import { redisScript, ScriptRefusal, type ShardScript } from '../client/redis-script.js'
import { runOn, type ScriptPair, scriptFor } from '../lua/script-kinds.js'
import { joinIndexKeys, queuesKey } from '../redis-keys.js'
import {
  layoutFor,
  layoutOf,
  layoutText,
  liveShards,
  queueIn,
  type RedisLayout,
  type RedisQueue,
  type RedisShard,
} from '../redis-layout.js'
import { namingWrongType } from './redis-damage.js'
import { RedisJoinReports } from './redis-join-reports.js'
import { RedisScopes } from './redis-scopes.js'
import { formIn, giveSettings, isSaid, nextSaid, openScript, saidIn, stateOf, storedIn } from './redis-settings.js'
import { bringUpToDate, keepVersion } from './redis-version.js'

/** A shard is no longer where the caller looked. The handle knows its new place by now. The call was not executed. */
export class ShardMoved extends Error {
  override readonly name = 'ShardMoved'
}

/** How often a call follows a moving shard. A queue moves once, in seconds. */
const mostMoves = 20

/**
 * The value of a registered queue among those that are swept; of one in which a sweep has found nothing to look after, since
 * when.
 */
export const registeredSwept = '1'

export class RedisQueues {
  readonly scopes: RedisScopes
  /** What members have to tell to joins in other shards. */
  readonly reports: RedisJoinReports
  readonly #client: RedisClient
  readonly #namespace: string
  readonly #queues = new Map<string, RedisQueue>()
  /** The settings of the queues that this handle opened, to create them again if the server loses its data. */
  readonly #opened = new Map<string, QueueSettings>()
  /** Each handle looks once whether the namespace has its version, and brings it up to date. */
  readonly #isUpToDate = keptCall(() => bringUpToDate(this.#client, this.#namespace))

  constructor(client: RedisClient, namespace: string) {
    this.#client = client
    this.#namespace = namespace
    this.scopes = new RedisScopes(client, namespace)
    this.reports = new RedisJoinReports(this)
  }

  async open(queues: readonly QueueSettings[], { follows } = { follows: false }): Promise<StoredQueue[]> {
    const names = queues.map(({ name }) => name)
    const stored = await this.#layouts(names)
    // All are checked before the first is written.
    await Promise.all(
      queues.map(async (settings, i) => {
        const layout = stored[i]
        if (layout === undefined) return
        const queue = queueIn(this.#namespace, settings.name, layout)
        const reply = await this.#run(queue.shards[0]!, openScript, ['0']).catch(unlessDamaged)
        if (reply === null) return
        refuseOtherForm(settings.name, formIn(reply), settings)
        if (!follows) saidLimits(settings.name, saidIn(reply).limits, settings)
      }),
    )
    await this.#refuseLimits(queues, stored, follows)
    const written = await Promise.allSettled(queues.map((settings, i) => this.#open(settings, stored[i], follows)))
    const isAnySound = written.some(({ status }) => status === 'fulfilled')
    return written.map((one, i) => {
      if (one.status === 'fulfilled') return one.value
      // The other queues work. A call for this one reports the damage.
      if (!isAnySound || !hasCode(one.reason, 'store-corrupt')) throw one.reason
      return this.#openDamaged(queues[i]!, stored[i])
    })
  }

  /** Answers with the declared settings, because the stored ones are unreadable. */
  #openDamaged(settings: QueueSettings, stored: RedisLayout | undefined): StoredQueue {
    const { name, kind, order, exclusive = 'id', throttle } = settings
    const { maxRunning } = boundsOf(limitsIn(settings))
    const queue = queueIn(this.#namespace, name, stored ?? layoutFor(settings))
    this.#queues.set(name, queue)
    this.#opened.set(name, settings)
    return {
      ...{ name, kind, order, exclusive, shards: queue.shards.length, paused: false, draining: false },
      limits: limitsIn(settings),
      ...(throttle === undefined ? {} : { throttle }),
      ...(maxRunning === undefined ? {} : { maxRunning }),
    }
  }

  /** Throws `UnknownQueueError` if one does not exist. Then no call was made to any. */
  async find(names: readonly string[]): Promise<RedisQueue[]> {
    const unknown = [...new Set(names.filter((name) => !this.#queues.has(name)))]
    if (unknown.length > 0) await this.#look(unknown)
    return names.map((name) => this.#queues.get(name)!)
  }

  /** The same, but looks up ordered queues again: they may be moving to other shards. */
  async findNow(names: readonly string[]): Promise<RedisQueue[]> {
    const doubtful = [...new Set(names)].filter((name) => this.#queues.get(name)?.layout.kind !== 'plain')
    if (doubtful.length > 0) await this.#look(doubtful)
    return names.map((name) => this.#queues.get(name)!)
  }

  /** The same, but looks up all queues again: they may have new limits. */
  async findLimits(names: readonly string[]): Promise<RedisQueue[]> {
    await this.#look(names)
    return names.map((name) => this.#queues.get(name)!)
  }

  /** The server's time in ms. */
  async now(): Promise<number> {
    const [seconds, microseconds] = listIn(await this.#client.command('TIME', []))
    return numberIn(seconds) * 1_000 + Math.floor(numberIn(microseconds) / 1_000)
  }

  /** The names of all queues of the namespace, in no order. */
  async names(): Promise<string[]> {
    return listIn(await this.#client.command('HKEYS', [queuesKey(this.#namespace)])).map(textIn)
  }

  /** Sweeps of joins, of waits for signals and of interrupted moves look only into the queues that are registered so. */
  async registerSwept(names: readonly string[]): Promise<void> {
    const fields = [...new Set(names)].flatMap((name) => [name, registeredSwept])
    await this.#client.command('HSET', [joinIndexKeys(this.#namespace)[0], ...fields])
  }

  /** The queue as it is stored. Throws `UnknownQueueError` if it is registered but nothing of it is stored. */
  async stored(name: string): Promise<StoredQueue> {
    const [queue] = await this.findLimits([name])
    const reply = await stateOf(this.#client, queue!)
    if (reply !== null) return this.#storedIn(queue!, reply)
    await this.#restore(name)
    return this.stored(name)
  }

  /** See `Records.setLimits`. */
  async setLimits(name: string, change: QueueLimits): Promise<QueueLimits> {
    const { kind, order, exclusive, shards } = await this.stored(name)
    const settings: QueueSettings = { name, kind, order, exclusive, shards, maxRunning: change.maxRunning ?? 'none' }
    const layout = this.#queues.get(name)!.layout
    refuseElsewhere(settings, layout, this.#client.isCluster)
    return (await this.#write(settings, layout, (said = {}) => changedLimits(said, change))).limits
  }

  /** Stores the layout `after` if the stored one is still `before`. Returns whether it was. */
  async change(name: string, before: RedisLayout, after: RedisLayout): Promise<boolean> {
    const args = [name, layoutText(before), layoutText(after)]
    const isDone = (await this.#client.run(layoutScript, [queuesKey(this.#namespace)], args)) === 1
    if (isDone) this.#queues.set(name, queueIn(this.#namespace, name, after))
    if (isDone && after.scope !== undefined) await this.scopes.moved(after.scope)
    return isDone
  }

  /**
   * Runs a script on a shard. If the shard does not exist, because the server lost its data, creates it with the
   * settings it was opened with, and runs the script again. Throws `UnknownQueueError` if it was not opened here, and
   * `ShardMoved` if the queue has moved to other shards.
   */
  async run(
    shard: RedisShard,
    script: ShardScript | ScriptPair,
    args: readonly RedisArgument[],
    replicas?: number,
  ): Promise<RedisReply> {
    return this.runOver([shard], script, args, replicas)
  }

  /** The same over several shards of one kind, which must be on one server. `behind`: further keys for the script. */
  async runOver(
    shards: readonly RedisShard[],
    given: ShardScript | ScriptPair,
    args: readonly RedisArgument[],
    replicas?: number,
    behind: readonly string[] = [],
  ): Promise<RedisReply> {
    const script = scriptFor(shards[0]!.kind, given)(this.#client.isCluster)
    const own = shards.length === 1 ? shards[0]!.keys : shards.flatMap((shard) => shard.keys)
    const keys = behind.length === 0 ? own : [...own, ...behind]
    try {
      return await this.#client.run(script, keys, args, replicas)
    } catch (error) {
      if (hasCode(error, 'store-corrupt')) throw await namingWrongType(this.#client, shards, error).catch(() => error)
      if (!(error instanceof ScriptRefusal)) throw error
      if (error.word === 'limited') throw await this.#limitedElse(shards)
      if (error.word !== 'unknown' && error.word !== 'moved') throw error
      await this.#follow(shards)
      return this.#client.run(script, keys, args, replicas)
    }
  }

  /**
   * Runs a script on all shards of a queue. If a reshard has begun meanwhile, it may have read before what its shards are to take over:
   * then they are asked too, and the others again. Returns all replies.
   */
  runEverywhere(name: string, script: ScriptPair, args: readonly RedisArgument[]): Promise<RedisReply[]> {
    return this.following(async () => {
      const replies: RedisReply[] = []
      for (let asked: string | undefined; ; ) {
        const [queue] = await this.findNow([name])
        const layout = layoutText(queue!.layout)
        if (layout === asked) return replies
        asked = layout
        replies.push(...(await Promise.all(liveShards(queue!).map((shard) => this.run(shard, script, args)))))
      }
    })
  }

  /** Runs a script on a shard, whether or not the shard exists. */
  ask(shard: RedisShard, script: ShardScript | ScriptPair, args: readonly RedisArgument[]): Promise<RedisReply> {
    return this.#run(shard, script, args)
  }

  /** Creates the shards that the layout moves to. `settings` and `beginning` are arguments of the open script. */
  async make(
    name: string,
    layout: RedisLayout,
    settings: readonly string[],
    beginning: readonly string[],
  ): Promise<void> {
    const { next } = queueIn(this.#namespace, name, layout)
    await Promise.all(next.map((shard) => this.#run(shard, openScript, ['1', ...settings, ...beginning])))
  }

  /** Asks again while shards of the call are moving. */
  async following<T>(ask: () => Promise<T>): Promise<T> {
    for (let moves = 0; ; moves += 1) {
      try {
        return await ask()
      } catch (error) {
        if (!(error instanceof ShardMoved)) throw error
        if (moves === mostMoves)
          throw new StoreUnavailableError(
            'a shard was looked for in other places again and again and is in none. What was asked was not done; try again, and run `millrace fsck` where it goes on.',
            { inDoubt: false, cause: error },
          )
      }
    }
  }

  /** The limits of the shards are not those that the call assumed: looks up their queues again. */
  async #limitedElse(shards: readonly RedisShard[]): Promise<ShardMoved> {
    const names = [...new Set(shards.map(({ queue }) => queue))]
    await this.#look(names)
    for (const name of names) {
      const scope = this.#queues.get(name)?.layout.scope
      if (scope !== undefined) this.scopes.forget(scope)
    }
    return new ShardMoved('a shard is limited otherwise')
  }

  /**
   * A shard is missing or closed. Resolves if the shards were created again; throws `ShardMoved` if they have moved.
   */
  async #follow(shards: readonly RedisShard[]): Promise<void> {
    let hasMoved = false
    for (const name of new Set(shards.map(({ queue }) => queue))) {
      const of = shards.filter(({ queue }) => queue === name)
      if (of[0]!.kind === 'plain') await this.#restore(name)
      else hasMoved = (await this.#hasMoved(name, of)) || hasMoved
    }
    if (hasMoved) throw new ShardMoved('a shard has moved')
  }

  async #hasMoved(name: string, shards: readonly RedisShard[]): Promise<boolean> {
    const before = this.#queues.get(name)
    const [layout] = await this.#layouts([name])
    if (layout === undefined) await this.#restore(name)
    else if (before === undefined || layoutText(layout) !== layoutText(before.layout))
      this.#queues.set(name, queueIn(this.#namespace, name, layout))
    const queue = this.#queues.get(name)!
    const known = new Set([...queue.shards, ...queue.next].map(({ tag }) => tag))
    if (!shards.every(({ tag }) => known.has(tag))) return true
    const replies = await Promise.all(shards.map((shard) => this.#run(shard, openScript, ['closed'])))
    const lost = shards.filter((_, i) => replies[i] === 1)
    if (lost.length === 0) return false
    if (queue.next.length > 0) for (const { tag } of lost) queue.closed.add(tag)
    else await this.#restore(name)
    return queue.next.length > 0
  }

  async #restore(queue: string): Promise<void> {
    const settings = this.#opened.get(queue)
    // Stays known while it is created again, so that concurrent calls find it.
    if (settings !== undefined) {
      const [layout] = await this.#layouts([queue])
      return void (await this.#write(settings, layout, (said = limitsIn(settings)) => said, false))
    }
    this.#queues.delete(queue)
    throw new UnknownQueueError(queue, await this.names())
  }

  async #open(settings: QueueSettings, stored: RedisLayout | undefined, follows: boolean): Promise<StoredQueue> {
    const { name } = settings
    const queue = follows && stored !== undefined ? queueIn(this.#namespace, name, stored) : undefined
    const reply = queue === undefined ? null : await stateOf(this.#client, queue)
    if (reply === null) return this.#write(settings, stored, (said = {}) => saidLimits(name, said, settings))
    this.#queues.set(name, queue!)
    this.#opened.set(name, settings)
    return this.#storedIn(queue!, reply)
  }

  /** `decide`: the limits that are said from now on, by those that were; undefined if nothing is stored of the queue. */
  async #write(
    settings: QueueSettings,
    stored: RedisLayout | undefined,
    decide: (said?: QueueLimits) => QueueLimits,
    comparesThrottle = true,
  ): Promise<StoredQueue> {
    const { name, kind, throttle } = settings
    const layout = await this.#fixLayout(settings, stored)
    if (layout.kind !== kind) refuseOtherForm(name, { ...settings, kind: layout.kind }, settings)
    const queue = queueIn(this.#namespace, name, layout)
    const joined = throttle && (await this.scopes.join(name, throttle))
    if (throttle !== undefined && comparesThrottle) refuseOtherThrottle(name, joined, throttle)
    for (;;) {
      const said = nextSaid(await stateOf(this.#client, queue), decide)
      const reply = await giveSettings(this.#client, queue, settings, said)
      // Another process has said something meanwhile.
      if (reply !== null && !isSaid(reply, said)) continue
      this.#queues.set(name, queue)
      this.#opened.set(name, settings)
      return this.#storedIn(queue, reply)
    }
  }

  /** The first stored number of shards counts for good. Limits are stored here before any shard knows them. */
  async #fixLayout(settings: QueueSettings, stored: RedisLayout | undefined): Promise<RedisLayout> {
    const { name } = settings
    const key = queuesKey(this.#namespace)
    let isKnown = stored !== undefined
    for (;;) {
      if (!isKnown) {
        await keepVersion(this.#client, this.#namespace)
        await this.#client.command('HSETNX', [key, name, layoutText(layoutFor(settings))])
      }
      const text = await this.#client.command('HGET', [key, name])
      isKnown = text !== null
      // The server has lost its data meanwhile, so this is a new queue.
      if (!isKnown) continue
      const before = layoutOf(name, textIn(text))
      const after = layoutFor(settings, before)
      if (layoutText(after) === layoutText(before) || (await this.change(name, before, after))) return after
    }
  }

  /**
   * Throws if a throttle differs from that stored or declared for its scope, or a queue is where it cannot be limited.
   */
  async #refuseLimits(
    queues: readonly QueueSettings[],
    layouts: readonly (RedisLayout | undefined)[],
    follows: boolean,
  ): Promise<void> {
    const asked = new Map<string, Throttle>()
    for (const [i, { name, throttle }] of queues.entries()) {
      if (throttle === undefined || (follows && layouts[i] !== undefined)) continue
      const stored = await this.scopes.throttle(layouts[i]?.scope ?? throttle.scope).catch(unlessDamaged)
      refuseOtherThrottle(name, stored ?? asked.get(throttle.scope), throttle)
      asked.set(throttle.scope, throttle)
    }
    for (const [i, settings] of queues.entries())
      if (layouts[i] !== undefined && !follows) refuseElsewhere(settings, layouts[i], this.#client.isCluster)
  }

  async #storedIn(queue: RedisQueue, reply: RedisReply): Promise<StoredQueue> {
    const { scope } = queue.layout
    // A damaged throttle must not break the list of queues. Claims from its queues report it.
    const throttle = scope === undefined ? undefined : await this.scopes.throttle(scope).catch(unlessDamaged)
    return { ...storedIn(queue, reply), ...(throttle == null ? {} : { throttle }) }
  }

  async #look(names: readonly string[]): Promise<void> {
    const layouts = await this.#layouts(names)
    for (const [i, name] of names.entries()) {
      const layout = layouts[i]
      if (layout === undefined) {
        // The server lost its data: queues that were opened here are created again.
        if (this.#opened.has(name)) await this.#restore(name)
        else throw new UnknownQueueError(name, await this.names())
      } else {
        const known = this.#queues.get(name)
        if (known === undefined || layoutText(known.layout) !== layoutText(layout))
          this.#queues.set(name, queueIn(this.#namespace, name, layout))
      }
    }
  }

  async #layouts(names: readonly string[]): Promise<(RedisLayout | undefined)[]> {
    if (names.length === 0) return []
    await this.#isUpToDate()
    const reply = await this.#client.command('HMGET', [queuesKey(this.#namespace), ...names])
    return listIn(reply).map((text, i) => (text === null ? undefined : layoutOf(names[i]!, textIn(text))))
  }

  #run(shard: RedisShard, script: ShardScript | ScriptPair, args: readonly RedisArgument[]): Promise<RedisReply> {
    return runOn(this.#client, shard, script, args)
  }
}

/**
 * Throws if a stored queue is to have a limit that its layout does not allow: what is counted together must be together,
 * a plain queue in one shard, and on a cluster everything in one place.
 */
function refuseElsewhere(
  { name, throttle, maxRunning }: QueueSettings,
  { kind, shards, towards, place, scope }: RedisLayout,
  isCluster: boolean,
): void {
  if (throttle === undefined && (maxRunning === undefined || maxRunning === 'none')) return
  if (kind === 'ordered') refuseGroupBound(name, maxRunning, towards ?? shards)
  const limit = throttle === undefined ? 'maxRunning' : 'throttle'
  const remedy = `Its jobs lie where nothing can count them together. Give a new queue the ${limit} from its first use, and drain this one.`
  if (kind === 'plain' && shards > 1) throw new ConfigConflictError(name, 'shards', shards, 1, remedy)
  if (!isCluster) return
  const at = place ?? (kind === 'plain' ? name : undefined)
  const wanted = throttle?.scope ?? scope ?? at ?? name
  if (at !== wanted) throw new ConfigConflictError(name, 'the place', at ?? 'of each shard', wanted, remedy)
}

/** Null for a damaged throttle. Throws other errors. */
function unlessDamaged(error: unknown): null {
  if (hasCode(error, 'store-corrupt')) return null
  throw error
}

/**
 * The answer for one of all queues of a namespace. Undefined if it is registered but nothing of it is stored: it is
 * being created, or its creator ended too soon.
 */
export async function unlessUnknown<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (hasCode(error, 'queue-unknown')) return undefined
    throw error
  }
}

/**
 * KEYS: the queues of the namespace.
 * ARGV: queue, its layout as the caller read it, its new layout.
 * Returns 1, or 0 if the stored layout is another by now.
 */
const layoutLua = `
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
`

/** The layout script: changes the layout of a queue, unless it has changed since the caller read it. */
const layoutScript = redisScript('layout', layoutLua, { whenFull: true })
