/** Claims on a Redis store: queues are asked in their order, and those on one server together in one trip. */

import { hasCode } from '../../../core/errors.js'
import { systemClock } from '../../../core/platform/clock.js'
import type { Buried, Claim, Claimed, Claimer, ClaimFrom, Crash, Expired, Wait } from '../../contract/claim.js'
import { numberIn } from '../client/redis-reply.js'
import { refuseLongWorker } from '../format/redis-job.js'
import { readerPair } from '../lua/script-kinds.js'
import type { RedisIdleCache } from '../redis-idle-cache.js'
import type { RedisQueue, RedisShard } from '../redis-layout.js'
import { type DamagedShards, partialReplies } from '../shards/redis-damage.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { memberKeys } from '../shards/redis-scopes.js'
import type { RedisShardMigration } from '../shards/redis-shard-migration.js'
import {
  type ClaimReply,
  claimShards,
  type GrantedBefore,
  noGate,
  nothingBefore,
  type ShardRequest,
  type ThrottleGate,
} from './redis-claim-call.js'

/** The most shards of ordered queues that one script call gets. */
const mostTogether = 16

/** The unit of a trip: a plain queue with all its shards, or one shard of an ordered queue. */
interface TripCandidate {
  readonly queue: string
  /** Set if the queue shares limits with other queues, or its shards share limits. */
  readonly limits: RedisQueue | undefined
  /** Ordered queues only. The shard may not exist. */
  readonly shard?: number
  readonly limit: number
  readonly lateMs: number
  readonly asks: readonly ShardRequest[]
  /** The shard number to report with its head. */
  readonly named: number | undefined
  readonly of: RedisQueue
  /** All its shards, with the damaged ones that `asks` leaves out. */
  readonly shards: readonly RedisShard[]
}

/** The part of a claim's answer that holds even if a later step of the claim fails. */
interface Told {
  readonly crashed: Crash[]
  readonly buried: Buried[]
  readonly expired: Expired[]
  /** The shards in which members of joins have ended; of ordered queues, those with jobs that were left in transit. */
  readonly telling: Set<RedisShard>
  isInDoubt: boolean
}

export class RedisClaim {
  readonly #queues: RedisQueues
  readonly #migration: RedisShardMigration
  readonly #isCluster: boolean
  readonly #idle: RedisIdleCache
  readonly #damage: DamagedShards
  readonly #mostBytes: number
  /** The server's clock when it last answered, for answers that need no trip. */
  #clock = { now: 0, readAt: 0 }
  /** The shard where the next claim on a queue of several shards begins to give out the remainder of its limit. */
  #turn = 0

  constructor(
    queues: RedisQueues,
    migration: RedisShardMigration,
    isCluster: boolean,
    idle: RedisIdleCache,
    damage: DamagedShards,
    mostBytes: number,
  ) {
    this.#migration = migration
    this.#damage = damage
    this.#mostBytes = mostBytes
    this.#queues = queues
    this.#isCluster = isCluster
    this.#idle = idle
  }

  async claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    refuseLongWorker(by.worker)
    if (from.length === 0) return nothingOf(await this.#queues.now(), by)
    // Kept outside: a claim begins again if a shard has moved, and must still report what an earlier trip found.
    const told: Told = { crashed: [], buried: [], expired: [], telling: new Set(), isInDoubt: false }
    try {
      return await this.#following(from, by, told)
    } finally {
      // A later trip must not be granted a join that an earlier one has made ready.
      for (const shard of told.telling)
        await (shard.kind === 'plain' ? this.#queues.reports.deliver(shard) : this.#migration.bringOn(shard))
    }
  }

  #following(from: readonly ClaimFrom[], by: Claimer, told: Told): Promise<Claimed> {
    return this.#queues.following(async () => {
      const all = await this.#candidates(from, by)
      const candidates = all.filter(({ asks, shards }) => asks.length > 0 || shards.length === 0)
      const unchanged =
        by.heads || candidates.length === 0 ? undefined : await this.#idle.answerTo(candidates, by.worker)
      const answer = unchanged ?? (await this.#ask(candidates, by, told))
      if (unchanged === undefined) this.#idle.answered(candidates, by.worker, answer)
      const damaged = all.flatMap(({ of, shards }) => this.#damage.of(of, shards))
      return {
        ...answer,
        ...(answer.heads === undefined
          ? {}
          : { heads: all.map((one) => answer.heads!.find(isOf(one)) ?? headOf(one, undefined)) }),
        ...(damaged.length === 0 ? {} : { damaged }),
        ...(told.isInDoubt ? { isInDoubt: true } : {}),
      }
    })
  }

  async #ask(candidates: readonly TripCandidate[], by: Claimer, told: Told): Promise<Claimed> {
    const asked: ClaimReply[] = []
    // If a later trip asks a queue again, the head that it reports counts.
    const ages = new Map<string, number | undefined>()
    const claims: Claim[] = []
    let lost: unknown
    let next = 0
    /** The total weight of the claimed jobs. */
    let bytes = 0
    let isFull = false
    // Up to here candidates are asked one by one, because one of them is damaged and the error does not say which.
    let singlyUpTo = 0
    while (next < candidates.length && goesOn(candidates[next]!, claims, by) && !isFull) {
      const trip = next < singlyUpTo ? [candidates[next]!] : this.#tripFrom(candidates, next)
      try {
        const answer = await this.#askTrip(trip, { jobs: claims.length, bytes }, by, told)
        asked.push(answer)
        // An answer that needed no trip tells no weight.
        bytes = Math.max(bytes, answer.bytes)
        isFull = answer.isOver || bytes >= this.#mostBytes
        told.crashed.push(...answer.crashed)
        told.buried.push(...answer.buried)
        told.expired.push(...answer.expired)
        claims.push(...answer.claims)
        for (const [i, ageMs] of answer.heads.entries()) ages.set(nameOf(trip[i]!), ageMs)
      } catch (error) {
        told.isInDoubt ||= mayHaveGranted(error)
        if (hasCode(error, 'store-corrupt')) {
          if (trip.length > 1) {
            singlyUpTo = next + trip.length
            continue
          }
          this.#damage.found(trip[0]!.asks[0]!.shard, error)
        } else {
          // Granted jobs must not be lost because of a later error.
          if (claims.length > 0) break
          // On a cluster a lost master affects only its own queues.
          if (!this.#isCluster || !hasCode(error, 'store-unavailable')) throw error
          lost = error
        }
      }
      next += trip.length
    }
    if (asked.length === 0 && lost !== undefined) throw lost
    if (by.heads)
      for (const candidate of candidates.slice(next))
        ages.set(nameOf(candidate), await this.#headAge(candidate.asks.map(({ shard }) => shard)))
    const now = asked.at(-1)?.now ?? (await this.#reckoned())
    this.#clock = { now, readAt: systemClock.mono() }
    return {
      now,
      ...(claims.length > 0 ? { queue: claims[0]!.queue } : {}),
      claims,
      crashed: told.crashed,
      buried: told.buried,
      ...(told.expired.length > 0 ? { expired: told.expired } : {}),
      waits: asked.flatMap((one) => one.waits),
      ...(by.heads ? { heads: candidates.map((candidate) => headOf(candidate, ages.get(nameOf(candidate)))) } : {}),
      more: asked.some((one) => one.more),
    }
  }

  async #candidates(from: readonly ClaimFrom[], by: Claimer): Promise<TripCandidate[]> {
    const names = from.map(({ queue }) => queue)
    let queues = await this.#queues.find(names)
    // A missing shard may have been added since.
    if (from.some(({ shard = 0 }, i) => shard >= queues[i]!.shards.length)) queues = await this.#queues.findNow(names)
    return from.flatMap((one, i) => this.#candidatesOf(one, queues[i]!, by))
  }

  #candidatesOf(from: ClaimFrom, queue: RedisQueue, by: Claimer): TripCandidate[] {
    const { limit, leaseMs = by.leaseMs, maxPayloads = Number.POSITIVE_INFINITY, lateMs = 0, weights } = from
    const common = { queue: queue.name, of: queue, limits: limitedBy(queue), limit, lateMs }
    if (queue.layout.kind === 'plain') {
      const { shards } = queue
      const sound = shards.filter((shard) => !this.#damage.isLeftOut(shard))
      return [{ ...common, shards, asks: sound.length === 0 ? [] : this.#asksOf(from, sound, by), named: from.shard }]
    }
    const open = queue.shards.filter(({ tag }) => !queue.closed.has(tag))
    // A queue that moves to other shards grants nothing. If all its old shards are closed, the new ones answer.
    const shards = open.length > 0 ? open : queue.next
    const wanted = from.shard === undefined ? shards : shards.filter(({ shard }) => shard === from.shard)
    if (wanted.length === 0) {
      const shard = from.shard ?? 0
      return [{ ...common, limits: undefined, shards: [], shard, asks: [], named: shard }]
    }
    return wanted.map((shard) => ({
      ...common,
      shards: [shard],
      shard: shard.shard,
      asks: this.#damage.isLeftOut(shard) ? [] : [{ shard, limit, leaseMs, maxPayloads, weights }],
      named: shard.shard,
    }))
  }

  /** Divides a queue's limit among its shards, the rest in turn. Shards without a share only recover and promote. */
  #asksOf({ limit, leaseMs, weights }: ClaimFrom, shards: readonly RedisShard[], by: Claimer): ShardRequest[] {
    const count = shards.length
    if (count === 1) return [{ shard: shards[0]!, limit, leaseMs: leaseMs ?? by.leaseMs, weights }]
    const most = by.alone ? Math.min(1, limit) : limit
    const turn = this.#turn++ % count
    return shards.map((shard, i) => ({
      shard,
      limit: Math.floor(most / count) + ((i - turn + count) % count < most % count ? 1 : 0),
      leaseMs: leaseMs ?? by.leaseMs,
      weights,
    }))
  }

  /**
   * The candidates from `next` on that one trip can ask: those of one kind that have one shard each, or a single one
   * with several shards. A limited candidate goes alone, and so does one that was damaged when it was last asked.
   */
  #tripFrom(candidates: readonly TripCandidate[], next: number): readonly TripCandidate[] {
    const first = candidates[next]!
    const trip = [first]
    if (this.#isCluster || first.asks.length !== 1 || this.#isDoubtful(first)) return trip
    const { kind } = first.asks[0]!.shard
    for (let one = candidates[next + 1]; one?.asks.length === 1; one = candidates[next + trip.length]) {
      if (one.asks[0]!.shard.kind !== kind || (kind === 'ordered' && trip.length === mostTogether)) break
      if (this.#isDoubtful(one) || one.limits !== first.limits) break
      // A trip counts all its starts alike.
      if (one.limits !== undefined && (kind === 'plain' || one.lateMs !== first.lateMs)) break
      trip.push(one)
    }
    return trip
  }

  #isDoubtful({ asks }: TripCandidate): boolean {
    return asks.some(({ shard }) => this.#damage.isDoubtful(shard))
  }

  async #askTrip(trip: readonly TripCandidate[], granted: GrantedBefore, by: Claimer, told: Told): Promise<ClaimReply> {
    const { asks, queue, shard, limits, lateMs } = trip[0]!
    if (asks.length === 0) return nothingIn(queue, shard!, await this.#queues.now())
    if (asks.length > 1) return this.#askShards(asks, by, told)
    const all = trip.flatMap((one) => one.asks)
    const gate = limits === undefined ? noGate : await this.#gateOf(limits, lateMs)
    const asked = await claimShards(this.#queues, all, granted, by, this.#mostBytes, told.telling, gate)
    this.#damage.answered(all.map((ask) => ask.shard))
    return asked
  }

  /** Asks one of several shards of a plain queue; undefined if it is damaged. `mostBytes`: its share of the bytes. */
  async #askOne(ask: ShardRequest, by: Claimer, mostBytes: number, told: Told): Promise<ClaimReply | undefined> {
    try {
      const answer = await claimShards(this.#queues, [ask], nothingBefore, by, mostBytes, told.telling)
      this.#damage.answered([ask.shard])
      return answer
    } catch (error) {
      told.isInDoubt ||= mayHaveGranted(error)
      if (!hasCode(error, 'store-corrupt')) throw error
      this.#damage.found(ask.shard, error)
      return undefined
    }
  }

  /** The server's time, reckoned from its last answer and the local clock. */
  async #reckoned(): Promise<number> {
    const { now, readAt } = this.#clock
    return readAt === 0 ? this.#queues.now() : now + Math.round(systemClock.mono() - readAt)
  }

  async #gateOf({ layout: { scope, isBounded }, shards }: RedisQueue, lateMs: number): Promise<ThrottleGate> {
    const siblings = isBounded ? shards : []
    const siblingKeys = siblings.flatMap(({ keys }) => keys)
    if (scope === undefined) return { text: ` ${siblings.length} 0 0 0`, keys: siblingKeys, isThrottled: false }
    const { keys, shards: members, version } = await this.#queues.scopes.of(scope)
    return {
      text: `${scope} ${siblings.length} ${members.length} ${version} ${lateMs}`,
      keys: [...siblingKeys, ...keys, ...members.flatMap(memberKeys)],
      isThrottled: true,
    }
  }

  /** Asks all shards of a plain queue at once, each in its own call. Each gets a share of the claim's most bytes. */
  async #askShards(asks: readonly ShardRequest[], by: Claimer, told: Told): Promise<ClaimReply> {
    const granting = asks.filter(({ limit }) => limit > 0).length
    const share = Math.ceil(this.#mostBytes / Math.max(1, granting))
    const ended = await partialReplies(
      asks.map(async (ask) => ({ ask, answer: await this.#askOne(ask, by, share, told) })),
    )
    const asked = ended.flatMap(({ ask, answer }) => (answer === undefined ? [] : [{ ask, answer }]))
    const answers = await this.#askOthers(asked, by, told)
    const ages = answers.flatMap(({ heads }) => heads.filter((ageMs) => ageMs !== undefined))
    return {
      now: answers.length === 0 ? await this.#reckoned() : Math.max(...answers.map(({ now }) => now)),
      claims: answers.flatMap(({ claims }) => claims),
      crashed: answers.flatMap(({ crashed }) => crashed),
      buried: answers.flatMap(({ buried }) => buried),
      expired: answers.flatMap(({ expired }) => expired),
      waits: mergedWaits(answers),
      heads: by.heads ? [ages.length === 0 ? undefined : Math.max(...ages)] : [],
      more: answers.some(({ more }) => more),
      isOver: false,
      bytes: 0,
    }
  }

  /** If the shards that had a share of the limit granted nothing, asks the others one by one until one grants. */
  async #askOthers(
    asked: readonly { readonly ask: ShardRequest; readonly answer: ClaimReply }[],
    by: Claimer,
    told: Told,
  ): Promise<ClaimReply[]> {
    const answers = asked.map(({ answer }) => answer)
    const limit = asked.reduce((sum, { ask }) => sum + ask.limit, 0)
    const turn = asked.findIndex(({ ask }) => ask.limit > 0)
    for (let n = 0; n < asked.length && limit > 0 && answers.every(({ claims }) => claims.length === 0); n++) {
      const i = (turn + n) % asked.length
      const { ask, answer } = asked[i]!
      const isWorth = answer.more || (by.alone && answer.waits.some(({ reason }) => reason === 'suspect'))
      if (ask.limit > 0 || !isWorth) continue
      const again = await this.#askOne({ ...ask, limit }, by, this.#mostBytes, told)
      if (again === undefined) continue
      answers[i] = {
        ...again,
        crashed: [...answer.crashed, ...again.crashed],
        buried: [...answer.buried, ...again.buried],
        expired: [...answer.expired, ...again.expired],
      }
    }
    return answers
  }

  async #headAge(shards: readonly RedisShard[]): Promise<number | undefined> {
    const asked = shards.map((shard) => this.#queues.run(shard, headsScripts, []))
    // A failure to read heads must not affect jobs that were granted.
    const replies = await partialReplies(asked).catch(() => [])
    const ageMs = Math.max(-1, ...replies.map(numberIn))
    return ageMs < 0 ? undefined : ageMs
  }
}

/** Whether to ask the next candidate: no queue has granted yet, or it is the same ordered queue and there is room. */
function goesOn({ queue, shard, limit }: TripCandidate, claims: readonly Claim[], by: Claimer): boolean {
  if (claims.length === 0) return true
  return shard !== undefined && claims[0]!.queue === queue && by.alone !== true && limit > claims.length
}

function limitedBy(queue: RedisQueue): RedisQueue | undefined {
  return queue.layout.scope !== undefined || queue.layout.isBounded ? queue : undefined
}

/** Whether a call with this error may have made claims: its answer was lost, or a part was done before the error. */
function mayHaveGranted(error: unknown): boolean {
  return hasCode(error, 'store-unavailable') ? error.inDoubt : hasCode(error, 'store-corrupt')
}

function isOf({ queue, named }: TripCandidate) {
  return (head: { readonly queue: string; readonly shard?: number }) => head.queue === queue && head.shard === named
}

function nameOf({ queue, shard }: TripCandidate): string {
  return shard === undefined ? queue : `${queue} ${shard}`
}

function headOf(
  { queue, named: shard }: TripCandidate,
  ageMs: number | undefined,
): NonNullable<Claimed['heads']>[number] {
  return { queue, ...(shard === undefined ? {} : { shard }), ...(ageMs === undefined ? {} : { ageMs }) }
}

/** The answer if no queue is asked. */
function nothingOf(now: number, { heads }: Claimer): Claimed {
  return { now, claims: [], crashed: [], buried: [], waits: [], ...(heads ? { heads: [] } : {}), more: false }
}

/** The answer for a shard that does not exist. */
function nothingIn(queue: string, shard: number, now: number): ClaimReply {
  const waits: Wait[] = [{ queue, shard, reason: 'empty' }]
  const none = { claims: [], crashed: [], buried: [], expired: [], heads: [], more: false, isOver: false, bytes: 0 }
  return { now, waits, ...none }
}

/** A queue waits for the soonest of its shards. If its claimer leads in some, it waits for the soonest of these. */
function mergedWaits(answers: readonly ClaimReply[]): Wait[] {
  const isGranted = answers.some(({ claims }) => claims.length > 0)
  const waits = answers.flatMap((answer) => answer.waits)
  const suspects = waits.filter(({ reason }) => reason === 'suspect')
  const others = waits.filter(({ reason }) => reason !== 'suspect')
  const merged: Wait[] = []
  if (!isGranted && others.length > 0) {
    const [soonest] = others.sort((a, b) => (a.forMs ?? Infinity) - (b.forMs ?? Infinity))
    const isScheduled = others.find(({ reason }) => reason === 'scheduled')
    const ledMs = others.filter(({ lead }) => lead).map(({ forMs }) => forMs!)
    const forMs = ledMs.length > 0 ? Math.min(...ledMs) : soonest!.forMs
    merged.push({
      queue: soonest!.queue,
      reason: soonest!.reason === 'paused' ? 'paused' : (isScheduled?.reason ?? soonest!.reason),
      ...(forMs === undefined ? {} : { forMs }),
      ...(ledMs.length > 0 ? { lead: true } : {}),
    })
  }
  const suspect = suspects.find(({ lead }) => lead) ?? suspects[0]
  return suspect === undefined ? merged : [...merged, suspect]
}

/**
 * KEYS: those of one shard. No ARGV.
 * Returns for how many ms the oldest ready job that every claim may take could have begun, or -1.
 */
const headsLua = `
local oldest = oldest_ready(unpack(call('HMGET', META, 'stale', 'waited')))
return oldest and age_of(oldest) or -1
`

/** The heads script: the age of the oldest ready job of a shard. */
const headsScripts = readerPair('heads', headsLua)
