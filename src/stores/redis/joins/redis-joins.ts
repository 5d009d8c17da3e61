/** The joins of a Redis store. */

import { hasCode, InvalidArgumentError } from '../../../core/errors.js'
import type { JobKey } from '../../contract/job-records.js'
import type { FailedJoin, GraphAnswer, Joins, MemberEnd, Sealed, StoredJoin, StoredSet } from '../../contract/joins.js'
import type { EnqueueCall } from '../../contract/new-job.js'
import type { Fate } from '../../contract/new-join.js'
import {
  byLateness,
  doneIn,
  lateError,
  lateReason,
  neverSealedError,
  neverSealedReason,
} from '../../rules/join-rules.js'
import type { RedisClient } from '../client/redis-client.js'
import { bytesIn, listIn, numberIn, textIn } from '../client/redis-reply.js'
import { readPayload } from '../format/redis-job.js'
import { joinIndexKeys } from '../redis-keys.js'
import { type RedisShard, shardHolding } from '../redis-layout.js'
import { compareAndSetScript, scheduleLeadScript } from '../schedules/schedule-scripts.js'
import { doneScript } from '../shards/join-report-scripts.js'
import { partialReplies } from '../shards/redis-damage.js'
import {
  fragmentKey,
  type JoinFragment,
  onDeadOf,
  partsIn,
  type RedisJoin,
  type RedisSet,
} from '../shards/redis-join-reports.js'
import { type RedisQueues, registeredSwept, unlessUnknown } from '../shards/redis-queues.js'
import type { RedisShardMigration } from '../shards/redis-shard-migration.js'
import {
  cancelMembersScript,
  dueScript,
  endsScript,
  fragmentScript,
  lateScript,
  readJoinScript,
} from './join-scripts.js'
import type { RedisGraphEnqueue } from './redis-graph-enqueue.js'

/**
 * For so long after a sweep, in ms, nobody else sweeps. The sweeps of a worker are at most 6.25 s apart, so what a process
 * has left, which swept last, is done within 10 s.
 */
const leadMs = 3_000
/** A report that is older than this, in ms, was left behind by a process that is gone. */
const leftBehindMs = 1_000
/** The most joins of a shard that one sweep looks at. */
const mostDue = 100
/** The most steps of 1,000 members in which one sweep cancels the rest of a join. */
const mostCancelSteps = 100
/** How often one sweep looks for joins that died of members that it has cancelled. */
const mostCutRounds = 10
/** A queue that has had neither joins nor members for this long, in ms, is swept no more until it has some again. */
const idleMs = 3_600_000
/** A page of ends ends with the one that brings it to so many bytes. */
const mostEndBytes = 1_048_576

/** A fragment of a set, with the bits of its members: `bits[n]` for the 4,096 from 4,096 × n on. */
interface FoundFragment {
  readonly shard: RedisShard
  readonly key: string
  readonly parts: JoinFragment
  readonly bits: readonly Buffer[]
}

interface FoundJoin {
  readonly home: RedisShard
  readonly state: string
  readonly join: RedisJoin
}

/** What a sweep is to do about a join. */
interface DueJoin {
  readonly shard: RedisShard
  readonly kind: string
  readonly queue: string
  readonly id: string
  readonly join?: RedisJoin
  readonly since?: string
  readonly failed?: FailedJoin
}

const fates: Readonly<Record<string, Fate>> = { c: 'completed', d: 'dead', x: 'cancelled', e: 'expired' }

export class RedisJoins implements Joins {
  readonly #client: RedisClient
  readonly #queues: RedisQueues
  readonly #graphs: RedisGraphEnqueue
  readonly #migration: RedisShardMigration
  readonly #namespace: string
  readonly #refuseClosed: () => void
  /**
   * Where the cancelling of the rest of a dead join goes on: by join, since when it is dead, and by fragment a number. What
   * another handle has cancelled is found to be so.
   */
  readonly #cuts = new Map<string, { readonly since: string; readonly from: Map<string, number> }>()

  /** `refuseClosed` throws `ClosedError`. */
  constructor(
    client: RedisClient,
    queues: RedisQueues,
    graphs: RedisGraphEnqueue,
    migration: RedisShardMigration,
    namespace: string,
    refuseClosed: () => void,
  ) {
    this.#client = client
    this.#queues = queues
    this.#graphs = graphs
    this.#migration = migration
    this.#namespace = namespace
    this.#refuseClosed = refuseClosed
  }

  async enqueue(calls: readonly EnqueueCall[]): Promise<GraphAnswer> {
    this.#refuseClosed()
    return this.#graphs.graph(calls)
  }

  async seal(key: JobKey, sizes: Readonly<Record<string, number>>): Promise<Sealed> {
    this.#refuseClosed()
    const found = await this.#find(key)
    if (found === undefined || (found.state !== 'w' && found.state !== 'd')) return 'gone'
    for (const [name, size] of Object.entries(sizes)) {
      const set = found.join.sets.find((one) => one.name === name)
      if (set === undefined) throw new InvalidArgumentError(`join '${key.id}' has no set '${name}'.`)
      const { added } = storedSet(set, await this.#fragmentsOf(key, set))
      if ((set.size < 0 ? size : set.size) !== size || size < added)
        throw new InvalidArgumentError(
          `set '${name}' of join '${key.id}' cannot have ${size} members: it has ${set.size < 0 ? added : set.size}.`,
        )
    }
    const answer = await this.#graphs.seal(found.home, key.id, sizes)
    if (answer.startsWith('-'))
      throw new InvalidArgumentError(
        `set '${answer.slice(1)}' of join '${key.id}' has been sealed with another number.`,
      )
    return answer as Sealed
  }

  async look(key: JobKey): Promise<StoredJoin | undefined> {
    this.#refuseClosed()
    const found = await this.#find(key)
    if (found === undefined) return undefined
    const { state, join } = found
    const sets = await Promise.all(
      join.sets.map(async (set) => {
        const fragments = await this.#fragmentsOf(key, set)
        const { size, ...open } = isDecided(found) ? decidedSet(storedSet(set, fragments)) : storedSet(set, fragments)
        if (join.open === 0 && size !== undefined) return { ...open, size }
        // Its producer may have died between two shards: what is below the number of each has been added.
        const shards = await this.#shardsOf(set)
        const highs = fragments.map(({ parts }) => parts.high)
        return { ...open, added: highs.length < shards.length ? 0 : Math.min(...highs) }
      }),
    )
    return { sets, ...(state === 'w' && join.until_at >= 0 ? { waitsUntil: join.until_at } : {}) }
  }

  async ends(key: JobKey, name: string, from: number, limit: number): Promise<MemberEnd[]> {
    this.#refuseClosed()
    const found = await this.#find(key)
    const set = found?.join.sets.find((one) => one.name === name)
    if (set === undefined) return []
    const pages = await Promise.all(
      (await this.#shardsOf(set)).map((shard) => this.#endsIn(shard, key, set, from, limit)),
    )
    const ends = pages.flat()
    if (found !== undefined && isDecided(found)) ends.push(...missing(ends, from, Math.min(from + limit, set.size)))
    return ends.sort((a, b) => a.number - b.number)
  }

  async sweep(worker: string): Promise<{ failed: FailedJoin[]; more: boolean }> {
    this.#refuseClosed()
    const swept = await sweptQueues(this.#client, this.#namespace, worker)
    return swept === undefined ? { failed: [], more: false } : this.#sweepQueues(swept.names, swept.now)
  }

  async #sweepQueues(names: readonly string[], now: number): Promise<{ failed: FailedJoin[]; more: boolean }> {
    const queues = await Promise.all(
      names.map(async (name) => ({
        name,
        shards: (await unlessUnknown(this.#queues.findNow([name])))?.[0]?.shards ?? [],
      })),
    )
    const used = new Set<string>()
    const moving = queues.flatMap((queue) => queue.shards).filter(({ kind }) => kind === 'ordered')
    // One that cannot be asked may have jobs in transit: claims from it report why.
    const areAway = await Promise.all(moving.map((shard) => this.#migration.bringOnStranded(shard).catch(() => true)))
    for (const [i, isAway] of areAway.entries()) if (isAway) used.add(moving[i]!.tag)
    const shards = queues.flatMap((queue) => queue.shards).filter(({ kind }) => kind === 'plain')
    // Joins on a server that is away must not stop the others.
    const told = await partialReplies(shards.map((shard) => this.#queues.reports.deliverOlder(shard, leftBehindMs)))
    const failed: FailedJoin[] = []
    let isFull = false
    let isWhole = told.length === shards.length
    const due = async (): Promise<DueJoin[]> => {
      const looked = await partialReplies(shards.map((shard) => this.#due(shard)))
      for (const { shard, isUsed } of looked) if (isUsed) used.add(shard.tag)
      isWhole &&= looked.length === shards.length
      isFull ||= looked.some(({ rows }) => rows.length === mostDue)
      failed.push(...looked.flatMap(({ rows }) => rows).flatMap((row) => row.failed ?? []))
      return looked.flatMap(({ rows }) => rows)
    }
    const first = await due()
    // One after the other: the death of one may be the death of the next.
    const late = first.flatMap((row) => (row.kind === 'w' ? [{ ...row, until: row.join!.until_at }] : []))
    for (const { shard, id, join } of late.sort(byLateness))
      await this.#letDie(shard, id, join!).catch(unlessUnavailable)
    let cuts = (late.length > 0 ? await due() : first).filter(({ kind }) => kind === 'c')
    let isLeft = false
    // A member that is cancelled may make another join dead.
    for (let rounds = 0; cuts.length > 0 && !isLeft; rounds += 1) {
      const done = new Set<string>()
      for (const { shard, id, join, since } of cuts) {
        const isMore = await this.#cancelRest(shard, id, join!, since!).catch(unlessUnavailable)
        isLeft ||= isMore === true
        done.add(`${shard.tag} ${id}`)
      }
      isLeft ||= rounds === mostCutRounds
      // What could not be reached is for the next sweep.
      cuts = (await due()).filter(({ kind, shard, id }) => kind === 'c' && !done.has(`${shard.tag} ${id}`))
    }
    for (const queue of queues)
      if (isWhole && queue.shards.every(({ tag }) => !used.has(tag))) await this.#leaveIdle(queue.name, now)
    return { failed, more: isFull || isLeft || told.includes(true) }
  }

  /**
   * Forgets a queue without joins, members, waits for signals and jobs in transit some time after it was seen to be so. Each
   * enqueue of joins or members, each wait and each move registers it again before, and a mark of that time is gone then.
   */
  async #leaveIdle(name: string, now: number): Promise<void> {
    const [places] = joinIndexKeys(this.#namespace)
    const stored = await this.#client.command('HGET', [places, name])
    if (stored === null) return
    const mark = textIn(stored)
    const since = mark === registeredSwept ? Number.NaN : Number(mark)
    // A mark of before the clock was set back begins anew.
    if (!(since <= now)) await this.#client.run(compareAndSetScript, [places], [name, mark, String(now)])
    else if (since + idleMs <= now) await this.#client.run(compareAndSetScript, [places], [name, mark])
  }

  async #due(shard: RedisShard): Promise<{ shard: RedisShard; isUsed: boolean; rows: DueJoin[] }> {
    const [isUsed, ...rows] = listIn(await this.#queues.run(shard, dueScript, [String(mostDue)]))
    return { shard, isUsed: isUsed === 1, rows: rows.map((row) => dueJoin(shard, listIn(row).map(textIn))) }
  }

  /** A join has waited for too long. First it hears how many of its members have ended: perhaps all have. */
  async #letDie(home: RedisShard, id: string, join: RedisJoin): Promise<void> {
    const key = { queue: home.queue, id }
    const telling: RedisShard[] = []
    let outstanding = 0
    for (const set of join.sets) {
      const fragments = await this.#fragmentsOf(key, set)
      for (const { shard, key: name, parts } of fragments)
        await this.#queues.reports.hear(shard, name, parts, (other) => telling.push(other))
      const { added, ...stored } = storedSet(set, fragments)
      outstanding += (stored.size ?? added) - doneIn(stored)
    }
    const why = [lateReason, lateError(outstanding), neverSealedReason, neverSealedError]
    if ((await this.#queues.run(home, lateScript, [id, ...why])) === 1) telling.push(home)
    for (const shard of telling) await this.#queues.reports.deliver(shard)
  }

  /** Cancels the members of a dead join that have not ended. Returns whether some are left. */
  async #cancelRest(home: RedisShard, id: string, join: RedisJoin, since: string): Promise<boolean> {
    const key = { queue: home.queue, id }
    const name = `${home.tag}\0${id}`
    const known = this.#cuts.get(name)
    // A join that was revived meanwhile, and has died anew, begins anew.
    const from = known?.since === since ? known.from : new Map<string, number>()
    this.#cuts.set(name, { since, from })
    let steps = 0
    for (const set of join.sets)
      for (const shard of await this.#shardsOf(set)) {
        const fragment = fragmentKey(key, set.name, set.base)
        const cut = `${shard.tag}\0${fragment}`
        for (let next = from.get(cut) ?? 0; next >= 0; steps += 1) {
          if (steps === mostCancelSteps) return true
          const args = [fragment, set.ids, String(set.many), String(next)]
          const [then, tells] = listIn(await this.#queues.run(shard, cancelMembersScript, args)).map(numberIn)
          if (tells === 1) await this.#queues.reports.deliver(shard)
          next = then!
          from.set(cut, next)
        }
      }
    await this.#queues.run(home, doneScript, [`c${id}`])
    this.#cuts.delete(name)
    return false
  }

  async #find({ queue: name, id }: JobKey): Promise<FoundJoin | undefined> {
    const [queue] = await this.#queues.find([name])
    if (queue!.layout.kind !== 'plain') return undefined
    const home = shardHolding(queue!, id)
    const reply = await this.#queues.run(home, readJoinScript, [id])
    if (reply === null) return undefined
    const [state, text] = listIn(reply).map(textIn)
    return { home, state: state!, join: JSON.parse(text!) as RedisJoin }
  }

  /** The shards that may have a fragment of the set. */
  async #shardsOf({ queue }: RedisSet): Promise<readonly RedisShard[]> {
    const found = await unlessUnknown(this.#queues.find([queue]))
    return found?.[0]?.shards ?? []
  }

  async #fragmentsOf(join: JobKey, set: RedisSet): Promise<FoundFragment[]> {
    const key = fragmentKey(join, set.name, set.base)
    const found = await Promise.all(
      (await this.#shardsOf(set)).map(async (shard): Promise<FoundFragment[]> => {
        const reply = await this.#queues.run(shard, fragmentScript, [key])
        if (reply === null) return []
        const [parts, ...bits] = listIn(reply)
        return [{ shard, key, parts: partsIn(listIn(parts)), bits: bits.map(bytesIn) }]
      }),
    )
    return found.flat()
  }

  async #endsIn(shard: RedisShard, join: JobKey, set: RedisSet, from: number, limit: number): Promise<MemberEnd[]> {
    const key = fragmentKey(join, set.name, set.base)
    const ends: MemberEnd[] = []
    for (let next = from; next < from + limit; ) {
      const args = [key, String(next), String(from + limit), String(mostEndBytes)]
      const [at, ...rest] = listIn(await this.#queues.run(shard, endsScript, args))
      for (let i = 0; i < rest.length; i += 2) ends.push(endIn(numberIn(rest[i]), bytesIn(rest[i + 1])))
      next = numberIn(at)
    }
    return ends
  }
}

/** The queues in which this worker is to sweep, and the server's time; undefined if another has swept just now. */
export async function sweptQueues(
  client: RedisClient,
  namespace: string,
  worker: string,
): Promise<{ readonly names: readonly string[]; readonly now: number } | undefined> {
  const [places, lead] = joinIndexKeys(namespace)
  const reply = listIn(await client.run(scheduleLeadScript, [lead, places], [worker, String(leadMs)]))
  return textIn(reply[1]) === worker ? { names: listIn(reply[3]).map(textIn), now: numberIn(reply[0]) } : undefined
}

/** It waits no more and is not dead: it has heard that each of its members has ended. */
function isDecided({ state }: FoundJoin): boolean {
  return state !== 'w' && state !== 'd'
}

/**
 * A member without an end in a join that is decided: it was dead when the join heard of it, and was revived before its
 * fragment was frozen.
 */
function missing(ends: readonly MemberEnd[], from: number, behind: number): MemberEnd[] {
  if (ends.length === behind - from) return []
  const known = new Set(ends.map(({ number }) => number))
  const numbers = Array.from({ length: Math.max(0, behind - from) }, (_, i) => from + i)
  return numbers.filter((number) => !known.has(number)).map((number) => ({ number, fate: 'dead' }))
}

/** The same for its counts. */
function decidedSet({ oldest, ...set }: StoredSet): StoredSet {
  const { completed, cancelled, expired } = set.counts
  const dead = (set.size ?? set.added) - completed - cancelled - expired
  // A member that came behind the last one of a sealed set is outstanding for ever.
  const isBehind = oldest !== undefined && set.size !== undefined && oldest >= set.size
  return { ...set, counts: { ...set.counts, dead }, ...(isBehind ? { oldest } : {}) }
}

function unlessUnavailable(error: unknown): undefined {
  if (hasCode(error, 'store-unavailable')) return undefined
  throw error
}

function dueJoin(shard: RedisShard, [kind, id, text, more]: readonly string[]): DueJoin {
  const { queue } = shard
  const row = { shard, queue, kind: kind!, id: id! }
  if (kind === 'r') return { ...row, failed: { queue, id: id!, task: text!, reason: more! } }
  return { ...row, join: JSON.parse(text!) as RedisJoin, since: more! }
}

/** `kept`: the letter of the fate, then the error behind a `=`, or the result in its stored form. */
function endIn(number: number, kept: Buffer): MemberEnd {
  const fate = fates[String.fromCharCode(kept[0]!)]!
  if (kept.length === 1) return { number, fate }
  if (fate === 'dead') return { number, fate, error: kept.toString('utf8', 2) }
  return { number, fate, ...readPayload(kept.subarray(1)) }
}

/** A set with what its fragments say. */
function storedSet(set: RedisSet, fragments: readonly FoundFragment[]): StoredSet {
  const sum = (of: (parts: JoinFragment) => number) => fragments.reduce((total, { parts }) => total + of(parts), 0)
  const counts = {
    completed: sum((one) => one.counts.completed),
    dead: sum((one) => one.counts.dead),
    cancelled: sum((one) => one.counts.cancelled),
    expired: sum((one) => one.counts.expired),
  }
  const oldest = oldestIn(fragments)
  return {
    ...{ name: set.name, queue: set.queue, ids: set.ids, isMany: set.many === 1 },
    ...{ onDead: onDeadOf(set.on_dead), keepsResults: set.keeps === 1, counts, added: sum(({ count }) => count) },
    ...(set.size < 0 ? {} : { size: set.size }),
    ...(oldest === undefined ? {} : { oldest }),
  }
}

/** The first number that has no bit in any fragment, below the highest one that was added. */
function oldestIn(fragments: readonly FoundFragment[]): number | undefined {
  const high = Math.max(0, ...fragments.map(({ parts }) => parts.high))
  for (let number = 0; number < high; number += 1) {
    const [chunk, at] = [Math.floor(number / 4_096), Math.floor((number % 4_096) / 8)]
    const byte = fragments.reduce((all, { bits }) => all | (bits[chunk]?.[at] ?? 0), 0)
    if (byte === 255) number += 7 - (number % 8)
    else if ((byte & (1 << (number % 8))) === 0) return number
  }
  return undefined
}
