/** The queues of a Redis store as one handle knows them: in which shards each lies. */

import { hasCode } from '../../../core/error-codes.js'
import {
  ConfigConflictError,
  StoreCorruptError,
  StoreUnavailableError,
  UnknownQueueError,
} from '../../../core/errors.js'
import { refuseOtherThrottle, type Throttle } from '../../../core/queue/throttle.js'
import type { QueueSettings, StoredQueue } from '../../contract/queue-settings.js'
import { refuseGroupBound, refuseOtherForm } from '../../rules/queue-form.js'
import type { RedisArgument, RedisClient, RedisReply } from '../client/redis-client.js'
import { listIn, numberIn, textIn } from '../client/redis-reply.js'
import { ScriptRefusal } from '../client/redis-script.js'
import { queuesKey } from '../layout/redis-keys.js'
import {
  layoutFor,
  layoutIn,
  layoutText,
  queueIn,
  type RedisLayout,
  type RedisQueue,
  type RedisShard,
} from '../layout/redis-layout.js'
import type { ShardScript } from '../lua/prelude.js'
import { runOn, type ScriptPair, scriptFor } from '../lua/script-kinds.js'
import { RedisScopes } from '../throttle/redis-scopes.js'
import { layoutScript } from './layout-script.js'
import { openScript } from './open-script.js'
import { formIn, settingArgs, storedIn } from './redis-settings.js'
import { namingWrongType } from './redis-wrong-type.js'

/** A shard is not where it was thought to be, and by now it is known where it is: what was asked of it was not done. */
export class ShardMoved extends Error {
  override readonly name = 'ShardMoved'
}

/** How often what was asked follows a shard that moves. A queue moves once, in seconds. */
const mostMoves = 20

/** Thrown where it is as if shards moved for ever. */
export function neverSettled(cause?: unknown): StoreUnavailableError {
  return new StoreUnavailableError(
    'a shard was looked for in other places again and again and is in none. What was asked was not done; try again, and run `millrace fsck` where it goes on.',
    { inDoubt: false, cause },
  )
}

export class RedisQueues {
  readonly scopes: RedisScopes
  readonly #client: RedisClient
  readonly #namespace: string
  readonly #queues = new Map<string, RedisQueue>()
  /** What this handle opened, for a server whose data were thrown away under it. */
  readonly #opened = new Map<string, QueueSettings>()

  constructor(client: RedisClient, namespace: string) {
    this.#client = client
    this.#namespace = namespace
    this.scopes = new RedisScopes(client, namespace)
  }

  async open(queues: readonly QueueSettings[]): Promise<StoredQueue[]> {
    const names = queues.map(({ name }) => name)
    const stored = await this.#layouts(names)
    // All are looked at before the first is written.
    await Promise.all(
      queues.map(async (settings, i) => {
        const layout = stored[i]
        if (layout === undefined) return
        const queue = queueIn(this.#namespace, settings.name, layout)
        const reply = await this.#run(queue.shards[0]!, openScript, ['0']).catch(unlessDamaged)
        if (reply !== null) refuseOtherForm(settings.name, formIn(reply), settings)
      }),
    )
    await this.#refuseLimits(queues, stored)
    const written = await Promise.allSettled(queues.map((settings, i) => this.#write(settings, stored[i])))
    const isAnySound = written.some(({ status }) => status === 'fulfilled')
    return written.map((one, i) => {
      if (one.status === 'fulfilled') return one.value
      // The others are served; whoever asks for something of this one is told.
      if (!isAnySound || !hasCode(one.reason, 'store-corrupt')) throw one.reason
      return this.#openDamaged(queues[i]!, stored[i])
    })
  }

  /** As it is declared: what is stored of it cannot be read. */
  #openDamaged(settings: QueueSettings, stored: RedisLayout | undefined): StoredQueue {
    const { name, kind, order, exclusive = 'id', throttle, maxRunning } = settings
    const queue = queueIn(this.#namespace, name, stored ?? layoutFor(settings))
    this.#queues.set(name, queue)
    this.#opened.set(name, settings)
    return {
      ...{ name, kind, order, exclusive, shards: queue.shards.length, paused: false, draining: false },
      ...(throttle === undefined ? {} : { throttle }),
      ...(maxRunning === undefined ? {} : { maxRunning }),
    }
  }

  /** Throws `UnknownQueueError` where one is not there; nothing was asked of any then. */
  async find(names: readonly string[]): Promise<RedisQueue[]> {
    const unknown = [...new Set(names.filter((name) => !this.#queues.has(name)))]
    if (unknown.length > 0) await this.#look(unknown)
    return names.map((name) => this.#queues.get(name)!)
  }

  /** The same, with ordered queues looked up anew: they may be on their way to other shards. */
  async findNow(names: readonly string[]): Promise<RedisQueue[]> {
    const doubtful = [...new Set(names)].filter((name) => this.#queues.get(name)?.layout.kind !== 'plain')
    if (doubtful.length > 0) await this.#look(doubtful)
    return names.map((name) => this.#queues.get(name)!)
  }

  /** The same, with all looked up anew: they may have been given limits. */
  async findLimits(names: readonly string[]): Promise<RedisQueue[]> {
    await this.#look(names)
    return names.map((name) => this.#queues.get(name)!)
  }

  /** The server's clock, in ms. */
  async now(): Promise<number> {
    const [seconds, microseconds] = listIn(await this.#client.command('TIME', []))
    return numberIn(seconds) * 1_000 + Math.floor(numberIn(microseconds) / 1_000)
  }

  /** The names of all queues of the namespace, in no order. */
  async names(): Promise<string[]> {
    return listIn(await this.#client.command('HKEYS', [queuesKey(this.#namespace)])).map(textIn)
  }

  /** The queue as it is stored. Throws `UnknownQueueError` where it is registered and nothing is stored of it. */
  async stored(name: string): Promise<StoredQueue> {
    const [queue] = await this.findLimits([name])
    // On the way to others the first may be gone already.
    for (const shard of [queue!.shards[0]!, ...queue!.next.slice(0, 1)]) {
      const reply = await this.run(shard, openScript, ['0'])
      if (reply !== null) return this.#storedIn(queue!, reply)
    }
    await this.#restore(name)
    return this.stored(name)
  }

  /** Writes the layout down where the stored one is still `before`; whether it was. */
  async change(name: string, before: RedisLayout, after: RedisLayout): Promise<boolean> {
    const args = [name, layoutText(before), layoutText(after)]
    const isDone = (await this.#client.run(layoutScript, [queuesKey(this.#namespace)], args)) === 1
    if (isDone) this.#queues.set(name, queueIn(this.#namespace, name, after))
    if (isDone && after.scope !== undefined) await this.scopes.moved(after.scope)
    return isDone
  }

  /**
   * Runs a script on a shard. Where the shard is not there any more (its data were thrown away), it is made anew with the
   * settings it was opened with, and the script is run again; throws `UnknownQueueError` where it was not opened here, and
   * `ShardMoved` where the queue lies in other shards by now.
   */
  async run(
    shard: RedisShard,
    script: ShardScript | ScriptPair,
    args: readonly RedisArgument[],
    replicas?: number,
  ): Promise<RedisReply> {
    return this.runOver([shard], script, args, replicas)
  }

  /** The same over several shards of one kind, which must lie on one server. `behind`: what the script is given besides. */
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

  /** Runs a script on a shard, be it there or not. */
  ask(shard: RedisShard, script: ShardScript | ScriptPair, args: readonly RedisArgument[]): Promise<RedisReply> {
    return this.#run(shard, script, args)
  }

  /** Makes the shards that the layout is on its way to, with these settings and beginnings as the open script is given them. */
  async make(
    name: string,
    layout: RedisLayout,
    settings: readonly string[],
    beginning: readonly string[],
  ): Promise<void> {
    const { next } = queueIn(this.#namespace, name, layout)
    await Promise.all(next.map((shard) => this.#run(shard, openScript, ['1', ...settings, ...beginning])))
  }

  /** Asks again as long as shards move under what is asked. */
  async following<T>(ask: () => Promise<T>): Promise<T> {
    for (let moves = 0; ; moves += 1) {
      try {
        return await ask()
      } catch (error) {
        if (!(error instanceof ShardMoved)) throw error
        if (moves === mostMoves) throw neverSettled(error)
      }
    }
  }

  /** The shards are limited otherwise than they were given: what is known of their queues is looked at anew. */
  async #limitedElse(shards: readonly RedisShard[]): Promise<ShardMoved> {
    const names = [...new Set(shards.map(({ queue }) => queue))]
    await this.#look(names)
    for (const name of names) {
      const scope = this.#queues.get(name)?.layout.scope
      if (scope !== undefined) this.scopes.forget(scope)
    }
    return new ShardMoved('a shard is limited otherwise')
  }

  /** One of the shards is not there, or closed. Resolves where they were made anew; throws `ShardMoved` where they lie elsewhere. */
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
    // Kept where it is made anew: whoever looks for it meanwhile would not find it.
    if (settings !== undefined) return void (await this.open([settings]))
    this.#queues.delete(queue)
    throw new UnknownQueueError(queue, await this.names())
  }

  async #write(settings: QueueSettings, stored: RedisLayout | undefined): Promise<StoredQueue> {
    const { name, kind } = settings
    const layout = await this.#fixLayout(settings, stored)
    if (layout.kind !== kind) refuseOtherForm(name, { ...settings, kind: layout.kind }, settings)
    const queue = queueIn(this.#namespace, name, layout)
    const isMoving = layout.towards !== undefined
    // Another process may have been first: who makes the first shard decides the form of all. On the way to other shards
    // they are made by whoever brings the queue there.
    const args = [isMoving ? '2' : '1', ...settingArgs(settings, layout.shards)]
    if (settings.throttle !== undefined)
      refuseOtherThrottle(name, await this.scopes.join(name, settings.throttle), settings.throttle)
    const [first, ...others] = queue.shards
    let reply = await this.#run(first!, openScript, args)
    if (reply !== null) refuseOtherForm(name, formIn(reply), settings)
    await Promise.all(others.map((shard) => this.#run(shard, openScript, args)))
    // As `stored` tells it: the new shards learn last whether the queue is paused.
    for (const shard of queue.next) {
      const made = await this.#run(shard, openScript, ['2', ...settingArgs(settings, queue.next.length)])
      reply ??= made
    }
    this.#queues.set(name, queue)
    this.#opened.set(name, settings)
    return this.#storedIn(queue, reply)
  }

  /** Of the number of shards the first that was ever said counts; limits are written down here before any shard knows of them. */
  async #fixLayout(settings: QueueSettings, stored: RedisLayout | undefined): Promise<RedisLayout> {
    const { name } = settings
    const key = queuesKey(this.#namespace)
    let isKnown = stored !== undefined
    for (;;) {
      if (!isKnown) await this.#client.command('HSETNX', [key, name, layoutText(layoutFor(settings))])
      const text = await this.#client.command('HGET', [key, name])
      isKnown = text !== null
      // The server has lost its data meanwhile: the queue is a new one.
      if (!isKnown) continue
      const before = layoutOf(name, text)
      const after = layoutFor(settings, before)
      if (layoutText(after) === layoutText(before) || (await this.change(name, before, after))) return after
    }
  }

  /** Throws where one is stored with another throttle, be it that of another queue here, or lies where it cannot be limited. */
  async #refuseLimits(queues: readonly QueueSettings[], layouts: readonly (RedisLayout | undefined)[]): Promise<void> {
    const asked = new Map<string, Throttle>()
    for (const [i, { name, throttle }] of queues.entries()) {
      if (throttle === undefined) continue
      const stored = await this.scopes.throttle(layouts[i]?.scope ?? throttle.scope).catch(unlessDamaged)
      refuseOtherThrottle(name, stored ?? asked.get(throttle.scope), throttle)
      asked.set(throttle.scope, throttle)
    }
    for (const [i, settings] of queues.entries())
      if (layouts[i] !== undefined) this.#refuseElsewhere(settings, layouts[i])
  }

  /** What is counted together must lie together: a plain queue in one shard, and on a cluster all of it in one place. */
  #refuseElsewhere(settings: QueueSettings, { kind, shards, towards, place, scope }: RedisLayout): void {
    const { name, throttle, maxRunning } = settings
    if (throttle === undefined && maxRunning === undefined) return
    if (kind === 'ordered') refuseGroupBound(name, maxRunning, towards ?? shards)
    const limit = throttle === undefined ? 'maxRunning' : 'throttle'
    const remedy = `Its jobs lie where nothing can count them together. Give a new queue the ${limit} from its first use, and drain this one.`
    if (kind === 'plain' && shards > 1) throw new ConfigConflictError(name, 'shards', shards, 1, remedy)
    if (!this.#client.isCluster) return
    const at = place ?? (kind === 'plain' ? name : undefined)
    const wanted = throttle?.scope ?? scope ?? at ?? name
    if (at !== wanted) throw new ConfigConflictError(name, 'the place', at ?? 'of each shard', wanted, remedy)
  }

  async #storedIn(queue: RedisQueue, reply: RedisReply): Promise<StoredQueue> {
    const { scope } = queue.layout
    // A damaged throttle keeps nobody from the list of queues; who claims from its queues is told.
    const throttle = scope === undefined ? undefined : await this.scopes.throttle(scope).catch(unlessDamaged)
    return { ...storedIn(queue, reply), ...(throttle == null ? {} : { throttle }) }
  }

  async #look(names: readonly string[]): Promise<void> {
    const layouts = await this.#layouts(names)
    for (const [i, name] of names.entries()) {
      const layout = layouts[i]
      if (layout === undefined) {
        // Its data were thrown away: what was opened here is made anew.
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
    const reply = await this.#client.command('HMGET', [queuesKey(this.#namespace), ...names])
    return listIn(reply).map((text, i) => (text === null ? undefined : layoutOf(names[i]!, text)))
  }

  #run(shard: RedisShard, script: ShardScript | ScriptPair, args: readonly RedisArgument[]): Promise<RedisReply> {
    return runOn(this.#client, shard, script, args)
  }
}

/** It cannot be read. */
function unlessDamaged(error: unknown): null {
  if (hasCode(error, 'store-corrupt')) return null
  throw error
}

/**
 * The answer of one queue among all of a namespace; undefined where that one is registered and nothing is stored of it:
 * it is being made, or whoever was to make it ended too soon.
 */
export async function unlessUnknown<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (hasCode(error, 'queue-unknown')) return undefined
    throw error
  }
}

function layoutOf(name: string, text: RedisReply): RedisLayout {
  const layout = layoutIn(textIn(text))
  if (layout !== undefined) return layout
  throw new StoreCorruptError(
    `the registry says that queue '${name}' has '${textIn(text)}' shards, which cannot be. Run \`millrace fsck\`.`,
  )
}
