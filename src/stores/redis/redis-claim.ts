/** Claims on a Redis store: queues asked in their order, those that lie on one server in one trip. */

import { InvalidArgumentError, StoreUnavailableError } from '../../core/errors.js'
import type { Buried, Claimed, Claimer, ClaimFrom, Crash, Wait } from '../store.js'
import { claimsIn } from './redis-claimed.js'
import type { RedisReply } from './redis-port.js'
import type { RedisQueues, RedisShard } from './redis-queues.js'
import type { QuietQueues } from './redis-quiet.js'
import { reached } from './redis-reached.js'
import { bytesIn, listIn, numberIn, rowsIn, textIn } from './redis-reply.js'
import type { RedisScripts } from './redis-scripts.js'

/** A claim stops taking jobs once it has so many bytes of them. */
const mostBytes = 1_048_576
/** Claims have the length of it in one byte. */
const mostWorkerBytes = 255

/** What one trip brought. */
type Asked = Omit<Claimed, 'queue' | 'heads'> & { readonly heads: readonly (number | undefined)[] }

interface Ask {
  readonly shard: RedisShard
  readonly limit: number
  readonly leaseMs: number
}

export class RedisClaim {
  readonly #queues: RedisQueues
  readonly #scripts: RedisScripts
  readonly #isCluster: boolean
  readonly #quiet: QuietQueues
  /** Where the next claim on a queue of several shards begins to give out what does not go round. */
  #turn = 0

  constructor(queues: RedisQueues, scripts: RedisScripts, isCluster: boolean, quiet: QuietQueues) {
    this.#queues = queues
    this.#scripts = scripts
    this.#isCluster = isCluster
    this.#quiet = quiet
  }

  async claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    if (Buffer.byteLength(by.worker) > mostWorkerBytes)
      throw new InvalidArgumentError(`the id of a worker must be at most ${mostWorkerBytes} bytes; got '${by.worker}'.`)
    const shards = await this.#queues.find(from.map(({ queue }) => queue))
    const unchanged = by.heads ? undefined : await this.#quiet.answerTo(from, shards)
    if (unchanged !== undefined) return unchanged
    const answer = await this.#ask(from, shards, by)
    this.#quiet.answered(from, answer)
    return answer
  }

  async #ask(from: readonly ClaimFrom[], shards: readonly (readonly RedisShard[])[], by: Claimer): Promise<Claimed> {
    const asks = from.map((one, i) => this.#asksOf(one, shards[i]!, by))
    const asked: Asked[] = []
    // A queue asked again by a later trip has the head that this trip left.
    const ages = new Map<string, number | undefined>()
    let lost: unknown
    let next = 0
    while (next < asks.length && asked.every(({ claims }) => claims.length === 0)) {
      const trip = this.#tripFrom(asks, next)
      try {
        const answer = await this.#askTrip(trip, by)
        asked.push(answer)
        for (const [i, ageMs] of answer.heads.entries()) ages.set(from[next + i]!.queue, ageMs)
      } catch (error) {
        // A master that is lost takes only its own queues with it.
        if (!this.#isCluster || !(error instanceof StoreUnavailableError)) throw error
        lost = error
      }
      next += trip.length
    }
    if (asked.length === 0) throw lost
    if (by.heads)
      for (const [i, { queue }] of from.entries()) if (i >= next) ages.set(queue, await this.#headAge(shards[i]!))
    const claims = asked.flatMap((one) => one.claims)
    return {
      now: asked.at(-1)!.now,
      ...(claims.length > 0 ? { queue: claims[0]!.queue } : {}),
      claims,
      crashed: asked.flatMap((one) => one.crashed),
      buried: asked.flatMap((one) => one.buried),
      waits: asked.flatMap((one) => one.waits),
      ...(by.heads ? { heads: from.map(({ queue }) => headOf(queue, ages.get(queue))) } : {}),
      more: asked.some((one) => one.more),
    }
  }

  /** The limit of a queue is dealt out among its shards, in turn to each what is left over; the others recover and promote. */
  #asksOf({ limit, leaseMs }: ClaimFrom, shards: readonly RedisShard[], by: Claimer): Ask[] {
    const count = shards.length
    if (count === 1) return [{ shard: shards[0]!, limit, leaseMs: leaseMs ?? by.leaseMs }]
    const most = by.alone ? Math.min(1, limit) : limit
    const turn = this.#turn++ % count
    return shards.map((shard, i) => ({
      shard,
      limit: Math.floor(most / count) + ((i - turn + count) % count < most % count ? 1 : 0),
      leaseMs: leaseMs ?? by.leaseMs,
    }))
  }

  /** Those from `next` on that one trip can ask: as many queues of one shard as stand in a row, or one of several. */
  #tripFrom(asks: readonly (readonly Ask[])[], next: number): (readonly Ask[])[] {
    const trip = [asks[next]!]
    if (this.#isCluster || trip[0]!.length > 1) return trip
    while (asks[next + trip.length]?.length === 1) trip.push(asks[next + trip.length]!)
    return trip
  }

  #askTrip(trip: readonly (readonly Ask[])[], by: Claimer): Promise<Asked> {
    return trip[0]!.length > 1 ? this.#askShards(trip[0]!, by) : this.#askTogether(trip.flat(), by)
  }

  /** In one script, which stops at the first that grants. */
  async #askTogether(asks: readonly Ask[], by: Claimer): Promise<Asked> {
    const args = [by.worker, by.alone ? '1' : '0', by.heads ? '1' : '0', String(mostBytes)]
    for (const { limit, leaseMs } of asks) args.push(String(limit), String(Math.ceil(leaseMs)))
    const reply = await this.#queues.runOver(
      asks.map(({ shard }) => shard),
      this.#scripts.claim,
      args,
    )
    return askedIn(
      asks.map(({ shard }) => shard.queue),
      reply,
    )
  }

  /** All shards of a queue at once, each by itself. */
  async #askShards(asks: readonly Ask[], by: Claimer): Promise<Asked> {
    const asked = await reached(asks.map(async (ask) => ({ ask, answer: await this.#askTogether([ask], by) })))
    const answers = await this.#askOthers(asked, by)
    const ages = answers.flatMap(({ heads }) => heads.filter((ageMs) => ageMs !== undefined))
    return {
      now: Math.max(...answers.map(({ now }) => now)),
      claims: answers.flatMap(({ claims }) => claims),
      crashed: answers.flatMap(({ crashed }) => crashed),
      buried: answers.flatMap(({ buried }) => buried),
      waits: mergedWaits(answers),
      heads: by.heads ? [ages.length === 0 ? undefined : Math.max(...ages)] : [],
      more: answers.some(({ more }) => more),
    }
  }

  /** Where the shards that the limit was dealt to had nothing, those that only recovered are asked, until one grants. */
  async #askOthers(asked: readonly { readonly ask: Ask; readonly answer: Asked }[], by: Claimer): Promise<Asked[]> {
    const answers = asked.map(({ answer }) => answer)
    const limit = asked.reduce((sum, { ask }) => sum + ask.limit, 0)
    const turn = asked.findIndex(({ ask }) => ask.limit > 0)
    for (let n = 0; n < asked.length && limit > 0 && answers.every(({ claims }) => claims.length === 0); n++) {
      const i = (turn + n) % asked.length
      const { ask, answer } = asked[i]!
      const isWorth = answer.more || (by.alone && answer.waits.some(({ reason }) => reason === 'suspect'))
      if (ask.limit > 0 || !isWorth) continue
      const again = await this.#askTogether([{ ...ask, limit }], by)
      answers[i] = {
        ...again,
        crashed: [...answer.crashed, ...again.crashed],
        buried: [...answer.buried, ...again.buried],
      }
    }
    return answers
  }

  async #headAge(shards: readonly RedisShard[]): Promise<number | undefined> {
    const asked = shards.map((shard) => this.#queues.run(shard, this.#scripts.heads, []))
    // Never in the way of jobs that were granted already.
    const replies = await reached(asked).catch(() => [])
    const ageMs = Math.max(-1, ...replies.map(numberIn))
    return ageMs < 0 ? undefined : ageMs
  }
}

function headOf(queue: string, ageMs: number | undefined): { readonly queue: string; readonly ageMs?: number } {
  return { queue, ...(ageMs === undefined ? {} : { ageMs }) }
}

/** A queue waits for the soonest of its shards, and its claimer leads where it leads that. */
function mergedWaits(answers: readonly Asked[]): Wait[] {
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

function askedIn(names: readonly string[], reply: RedisReply): Asked {
  const [now, granted, fence, jobs, pasts, errors, waits, crashed, buried, heads, more] = listIn(reply)
  return {
    now: numberIn(now),
    claims:
      granted === -1
        ? []
        : claimsIn(names[numberIn(granted)]!, numberIn(fence), bytesIn(jobs), listIn(pasts), listIn(errors)),
    waits: rowsIn(waits, 4).map((row) => waitIn(names, row)),
    crashed: rowsIn(crashed, 6).map((row) => crashIn(names[numberIn(row[0])]!, row)),
    buried: rowsIn(buried, 4).map((row) => buriedIn(names[numberIn(row[0])]!, row)),
    heads: listIn(heads).map((ageMs) => (ageMs === -1 ? undefined : numberIn(ageMs))),
    more: more === 1,
  }
}

function waitIn(names: readonly string[], [index, reason, forMs, lead]: readonly RedisReply[]): Wait {
  return {
    queue: names[numberIn(index)]!,
    reason: textIn(reason) as Wait['reason'],
    ...(forMs === -1 ? {} : { forMs: numberIn(forMs) }),
    ...(lead === 1 ? { lead: true } : {}),
  }
}

export function crashIn(queue: string, [, id, task, worker, charged, crashes]: readonly RedisReply[]): Crash {
  return {
    queue,
    id: textIn(id),
    task: textIn(task),
    worker: textIn(worker),
    charged: charged === 1,
    crashes: numberIn(crashes),
  }
}

export function buriedIn(queue: string, [, id, task, reason]: readonly RedisReply[]): Buried {
  return { queue, id: textIn(id), task: textIn(task), reason: textIn(reason) }
}
