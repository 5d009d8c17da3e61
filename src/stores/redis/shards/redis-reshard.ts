/**
 * Resharding on a Redis store. It first holds the old shards. Once no job runs in them, it moves their jobs, batch by
 * batch, into shards of the next generation, which do not grant yet. An old shard that is found empty closes in the
 * same step, and callers that push into it are sent to the new one. When all old shards are closed, the new ones grant.
 * Each step changes one shard; if the work is interrupted, the next call continues it.
 */

import type { Step } from '../../contract/job-records.js'
import { stepLimit, stepPayloads } from '../../rules/bounds.js'
import { refusePlain, refuseSelf, refuseSpreading, reshardUnderWay } from '../../rules/queue-form.js'
import type { RedisQueue } from '../redis-layout.js'
import type { RedisQueues } from './redis-queues.js'
import { gotFromOthers, type RedisShardMigration, type ShardState } from './redis-shard-migration.js'

type ShardMeta = ReadonlyMap<string, string>

export class RedisReshard {
  readonly #queues: RedisQueues
  readonly #migration: RedisShardMigration

  constructor(queues: RedisQueues, migration: RedisShardMigration) {
    this.#queues = queues
    this.#migration = migration
  }

  /** See `Records.reshard`. */
  async reshard(name: string, count: number): Promise<Step> {
    const queue = await this.#begun(name, count)
    if (queue === undefined) return { changed: 0, more: false }
    const held = await this.#states(queue, 'hold')
    if (held.some((one) => one?.runs)) return { changed: 0, more: true }
    // Once only: from now on a change of the old shards' switches also changes those of the new ones.
    const switches = ['paused', 'draining'].map((field) => held[0]?.meta.get(field) ?? '0')
    const holds = [held[0]?.meta.get('heldUntil') ?? '0', ...(held[0]?.holds ?? [])]
    await Promise.all(queue.next.map((shard) => this.#migration.turn(shard, 'inherit', ...switches, ...holds)))
    const step = { changed: 0, payloads: 0 }
    for (const [i, shard] of queue.shards.entries()) {
      if (held[i] === undefined) continue
      for (let isClosed = false; !isClosed; ) {
        if (step.changed >= stepLimit || step.payloads >= stepPayloads) return { changed: step.changed, more: true }
        const batch = await this.#migration.batch(shard, name, true)
        step.changed += batch.changed
        step.payloads += batch.payloads
        isClosed = batch.isClosed
        // It grants again: somebody has released it. The next call holds it anew.
        if (!isClosed && batch.changed === 0) return { changed: step.changed, more: true }
      }
    }
    await this.#finish(queue)
    return { changed: step.changed, more: false }
  }

  /** See `Records.move`. */
  async move(from: string, to: string): Promise<Step> {
    const [source, target] = await this.#queues.findNow([from, to])
    refusePlain(from, source!.layout.kind)
    refusePlain(to, target!.layout.kind)
    refuseSelf(from, to)
    const step = { changed: 0, payloads: 0 }
    // If this process dies, a sweep brings on what it has taken out, though nobody may claim from these queues any more.
    await this.#queues.registerSwept([from])
    for (const shard of source!.shards) {
      for (let isDone = false; !isDone; ) {
        if (step.changed >= stepLimit || step.payloads >= stepPayloads) return { changed: step.changed, more: true }
        const batch = await this.#migration.batch(shard, to, false)
        step.changed += batch.changed
        step.payloads += batch.payloads
        isDone = batch.isDone
      }
    }
    return { changed: step.changed, more: false }
  }

  /** The queue, on its way to `count` shards. Undefined if it has that number already. */
  async #begun(name: string, count: number): Promise<RedisQueue | undefined> {
    for (;;) {
      const [queue] = await this.#queues.findNow([name])
      refusePlain(name, queue!.layout.kind)
      const { layout } = queue!
      if (layout.towards === count) return queue!
      if (layout.towards !== undefined) throw reshardUnderWay(name, layout.towards, count)
      if (layout.shards === count) return undefined
      refuseSpreading(name, (await this.#queues.stored(name)).maxRunning, count)
      // The shards must exist before anybody is told to look for them.
      const metas = metasOf(await this.#states(queue!, 'look'))
      const next = { ...layout, towards: count }
      if (metas.length > 0) await this.#queues.make(name, next, settingsOf(metas[0]!, count), beginning(metas))
      await this.#queues.change(name, layout, next)
    }
  }

  #states({ shards }: RedisQueue, verb: 'look' | 'hold'): Promise<(ShardState | undefined)[]> {
    return Promise.all(shards.map((shard) => this.#migration.state(shard, verb)))
  }

  /** All old shards are closed: the new ones replace them. */
  async #finish(queue: RedisQueue): Promise<void> {
    const { name, shards, next } = queue
    // The old shards may have given new stamps since they were held.
    const held = await this.#states(queue, 'look')
    for (const [i, one] of held.entries()) {
      if (one === undefined) continue
      const counters = ['processed', 'failed', 'crashed'].map((field) => one.meta.get(field) ?? '0')
      await this.#migration.turn(next[0]!, 'absorb', shards[i]!.tag, ...counters)
    }
    const metas = metasOf(held)
    if (metas.length > 0) {
      const least = [...Object.entries(latest(metas)).flat(), ...gotFromOthers(name, metas)]
      await Promise.all(next.map((shard) => this.#migration.turn(shard, 'release', ...least)))
    }
    await Promise.all(shards.map((shard) => this.#migration.turn(shard, 'remove')))
    const generation = queue.layout.generation + 1
    // The queue may have got a limit meanwhile, or another process has finished the same.
    for (let { layout } = queue; layout.generation < generation; ) {
      const { towards: _, ...stays } = layout
      if (await this.#queues.change(name, layout, { ...stays, shards: next.length, generation })) return
      layout = (await this.#queues.findNow([name]))[0]!.layout
    }
  }
}

/** The largest values that any of these shards has given. */
function latest(metas: readonly ShardMeta[]): Record<'stamp' | 'fence' | 'seq' | 'score', string> {
  const most = (field: string) => String(Math.max(0, ...metas.map((meta) => Number(meta.get(field) ?? 0))))
  return { stamp: most('stamp'), fence: most('fence'), seq: most('seq'), score: most('score') }
}

function metasOf(states: readonly (ShardState | undefined)[]): ShardMeta[] {
  return states.flatMap((one) => (one === undefined ? [] : [one.meta]))
}

/** The first values of the new shards: they are held, and continue after all values that the old ones gave. */
function beginning(metas: readonly ShardMeta[]): string[] {
  const { stamp, fence, seq, score } = latest(metas)
  return ['resharding', 'new', 'stamp', stamp, 'fence', fence, 'seq', seq, 'score', score]
}

/** The arguments of the open script for one of `shards` shards, from the stored settings of an old shard. */
function settingsOf(meta: ShardMeta, shards: number): string[] {
  const field = (name: string) => meta.get(name) ?? ''
  const [maxPending = '', resultsCount = '', deadCount = ''] = field('bounds').split(',')
  const share = (bound: string) => (bound === '' ? '' : String(Math.ceil(Number(bound) / shards)))
  return [
    ...['kind', 'order', 'exclusive', 'merge'].map(field),
    share(maxPending),
    field('maxCrashes'),
    share(resultsCount),
    field('deadAge'),
    share(deadCount),
    ...['bounds', 'maxRunning', 'perGroup', 'scope', 'by', 'limits', 'limitsTurn'].map(field),
  ]
}
