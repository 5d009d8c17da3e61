/**
 * Waits on a Redis store. All waits of a handle share one blocking connection, or on a cluster one that listens. While
 * there is a single wait, a claim may go along with it.
 */

import { hasCode } from '../../core/errors.js'
import { systemRandom } from '../../core/platform/clock.js'
import { leadLapseMs } from '../rules/wake-lead.js'
import type { PoppedMarker, RedisClient, RedisReply, RedisScriptCall } from './client/redis-client.js'
import { listIn, numberIn } from './client/redis-reply.js'
import { leads } from './lua/leads-lua.js'
import { readyJobs } from './lua/ready-lua.js'
import { scriptPair } from './lua/script-kinds.js'
import { isSetBack } from './lua/set-back-lua.js'
import type { RedisIdleCache } from './redis-idle-cache.js'
import { keyIn } from './redis-keys.js'
import { liveShards, type RedisQueue, type RedisShard, siblingKeys } from './redis-layout.js'
import { type DamagedShards, namingWrongType, partialReplies } from './shards/redis-damage.js'
import type { RedisQueues } from './shards/redis-queues.js'

interface WaitingClaimer {
  readonly shards: readonly RedisShard[]
  readonly until: number
  /** The claim that may go along. */
  readonly claim: RedisScriptCall | undefined
  /** `reply`: to that claim. */
  readonly wake: (rung: string[], reply?: RedisReply) => void
  readonly fail: (error: unknown) => void
}

/** The end of a wait. */
interface WaitEnd {
  readonly rung: string[]
  /** Of the claim that went along; absent: it was not made. */
  readonly reply?: RedisReply
}

interface Round {
  readonly keys: ReadonlySet<string>
  readonly until: number
  readonly stop: AbortController
  /** The waiter whose claim goes along. Only the end of the round wakes it, because it must have the reply. */
  readonly claimer: WaitingClaimer | undefined
}

/** The key of a shard's marker. */
function markerOf({ keys }: RedisShard): string {
  return keyIn(keys, 'wake')
}

/** The shortest wait for which to block: less is not worth a trip. */
const shortestMs = 1
/** How much later than the server the client ends a pop: a pop that is cut short just before its end costs a trip. */
const popSlackMs = 100

export class RedisWait {
  readonly #client: RedisClient
  readonly #queues: RedisQueues
  readonly #idle: RedisIdleCache
  readonly #damage: DamagedShards
  readonly #waiting = new Set<WaitingClaimer>()
  readonly #listened = new Map<string, Promise<() => void>>()
  #round: Round | undefined
  #isClosed = false

  constructor(client: RedisClient, queues: RedisQueues, idle: RedisIdleCache, damage: DamagedShards) {
    this.#damage = damage
    this.#client = client
    this.#queues = queues
    this.#idle = idle
  }

  /** See `Store.wait`. */
  async forQueues(names: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    return (await this.claiming(names, undefined, forMs, signal)).rung
  }

  /** The same. The claim is made when the wait ends, unless other waits are under way. */
  async claiming(
    names: readonly string[],
    claim: RedisScriptCall | undefined,
    forMs: number,
    signal: AbortSignal,
  ): Promise<WaitEnd> {
    const end = await this.#waited(names, claim, forMs, signal)
    // An aborted wait has not listened long enough.
    if (!signal.aborted) this.#idle.waited(names, end.rung)
    return end
  }

  async #waited(
    names: readonly string[],
    claim: RedisScriptCall | undefined,
    forMs: number,
    signal: AbortSignal,
  ): Promise<WaitEnd> {
    const until = performance.now() + forMs
    const all = (await this.#queues.find(names)).flatMap(liveShards)
    const shards = all.filter((shard) => !this.#damage.isDoubtful(shard))
    if (all.length === 0 || signal.aborted) return { rung: [] }
    // Claims look at these queues again when it is time.
    if (shards.length === 0) return this.#rung([], until, signal, () => {})
    if (this.#client.isCluster) return this.#listening(shards, until, signal)
    const unknown = shards.filter(
      ({ queue, kind, shard }) => !this.#idle.isFresh(kind === 'plain' ? { queue } : { queue, shard }),
    )
    const isWorth = unknown.length > 0 && (await this.#idle.holdAnything(unknown))
    const found = isWorth ? await this.#look(unknown).catch(foundByClaim(unknown)) : []
    if (found.length > 0 || signal.aborted || this.#isClosed) return { rung: found }
    return this.#rung(shards, until, signal, () => this.#pop(), claim)
  }

  close(): void {
    this.#isClosed = true
    for (const waiting of [...this.#waiting]) if (waiting !== this.#round?.claimer) waiting.wake([])
    this.#round?.stop.abort()
  }

  /** On a cluster: listens first and then looks, so that no ring is lost between the two. */
  async #listening(shards: readonly RedisShard[], until: number, signal: AbortSignal): Promise<WaitEnd> {
    await partialReplies(shards.map((shard) => this.#listen(shard)))
    if (signal.aborted || this.#isClosed) return { rung: [] }
    return this.#rung(shards, until, signal, (waiting) => {
      this.#look(shards)
        .catch(foundByClaim(shards))
        .then(async (found) => {
          if (found.length > 0) waiting.wake(found)
          else if (this.#waiting.has(waiting)) await partialReplies(shards.map((shard) => this.#take(markerOf(shard))))
        })
        .catch(waiting.fail)
    })
  }

  #rung(
    shards: readonly RedisShard[],
    until: number,
    signal: AbortSignal,
    begin: (waiting: WaitingClaimer) => void,
    claim?: RedisScriptCall,
  ): Promise<WaitEnd> {
    return new Promise((resolve, reject) => {
      const over = () => {
        if (this.#round?.claimer === waiting) this.#round.stop.abort()
        else waiting.wake([])
      }
      const leave = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', over)
        this.#waiting.delete(waiting)
        if (this.#waiting.size === 0) this.#round?.stop.abort()
      }
      const slackMs = this.#client.isCluster ? 0 : popSlackMs
      const timer = setTimeout(over, Math.min(Math.max(0, until - performance.now()) + slackMs, 0x7fffffff))
      const waiting: WaitingClaimer = {
        shards,
        until,
        claim,
        wake: (rung, reply) => {
          leave()
          resolve(reply === undefined ? { rung } : { rung, reply })
        },
        fail: (error) => {
          leave()
          reject(error)
        },
      }
      signal.addEventListener('abort', over)
      this.#waiting.add(waiting)
      begin(waiting)
    })
  }

  /** Blocks for the markers of all waiters. Begins anew for a new waiter with other queues or a longer time. */
  #pop(): void {
    const keys = new Set([...this.#waiting].flatMap(({ shards }) => shards.map(markerOf)))
    const until = Math.max(...[...this.#waiting].map((waiting) => waiting.until))
    const current = this.#round
    if (current !== undefined) {
      const covers = until <= current.until && [...keys].every((key) => current.keys.has(key))
      if (!covers) current.stop.abort()
      return
    }
    const [only] = this.#waiting
    const claimer = this.#waiting.size === 1 && only!.claim !== undefined ? only : undefined
    const round: Round = { keys, until, stop: new AbortController(), claimer }
    this.#round = round
    this.#popped(round)
      .then((popped) => {
        // Before the waiters are woken: the last of them to leave aborts a round that is still under way.
        this.#round = undefined
        return this.#tell(round, popped)
      })
      .catch(async (error: unknown) => {
        if (await this.#isMarkerDamaged(error)) return
        // A wait that was too short to connect ends without an error. The next one reports what is wrong.
        this.#wakeDue()
        for (const waiting of [...this.#waiting]) waiting.fail(error)
      })
      .finally(() => {
        if (this.#round === round) this.#round = undefined
        if (this.#round === undefined && this.#waiting.size > 0) this.#pop()
      })
  }

  async #popped({ keys, until, stop: { signal }, claimer }: Round): Promise<PoppedMarker> {
    const lastsMs = Math.max(shortestMs, until - performance.now())
    if (claimer !== undefined) return this.#client.popAndRun([...keys], lastsMs, signal, claimer.claim!)
    const key = await this.#client.pop([...keys], lastsMs, signal)
    return key === undefined ? {} : { key }
  }

  /** Wakes those for whom the round has something, or whose time is over. */
  async #tell({ claimer }: Round, { key, reply }: PoppedMarker): Promise<void> {
    const rung = claimer?.shards.find((shard) => markerOf(shard) === key)
    claimer?.wake(rung === undefined ? [] : [rung.queue], reply)
    if (key === undefined) this.#wakeDue()
    else if (rung === undefined) await this.#deal(key)
  }

  /** Whether a marker is a foreign key. If so, leaves its shard out from now on and begins the other waits anew. */
  async #isMarkerDamaged(error: unknown): Promise<boolean> {
    if (!hasCode(error, 'store-corrupt')) return false
    const shards = [...new Set([...this.#waiting].flatMap((waiting) => waiting.shards))]
    const types = await Promise.all(
      shards.map((shard) => this.#client.command('TYPE', [markerOf(shard)]).then(String, () => 'none')),
    )
    const damaged = shards.filter((_, i) => types[i] !== 'none' && types[i] !== 'zset')
    for (const shard of damaged)
      this.#damage.found(shard, await namingWrongType(this.#client, [shard], error).catch(() => error))
    if (damaged.length > 0) for (const waiting of [...this.#waiting]) waiting.wake([])
    return damaged.length > 0
  }

  #wakeDue(): void {
    const now = performance.now() + shortestMs
    for (const waiting of [...this.#waiting]) if (waiting.until <= now) waiting.wake([])
  }

  /** Gives a marker to one waiter. If no waiter wants it any more, puts it back for another process. */
  async #deal(key: string): Promise<void> {
    for (const waiting of this.#waiting) {
      const shard = waiting.shards.find((one) => markerOf(one) === key)
      if (shard === undefined) continue
      waiting.wake([shard.queue])
      return
    }
    await this.#client.command('ZADD', [key, '0', '0'])
  }

  /** On a cluster: listens to the shard until the handle closes. */
  #listen(shard: RedisShard): Promise<() => void> {
    const key = markerOf(shard)
    let listening = this.#listened.get(key)
    if (listening === undefined) {
      listening = this.#client.listen(key, (message) => this.#heard(key, message))
      this.#listened.set(key, listening)
      listening.catch(() => this.#listened.delete(key))
    }
    return listening
  }

  /**
   * All listeners hear a ring, but only one should answer. Each waits for a random time, up to as many ms as there are
   * listeners, so that about one asks in each ms. The first one takes the marker, and later ones find none.
   */
  #heard(key: string, message: string | undefined): void {
    if (this.#waiting.size === 0) return
    const listeners = Math.min(Number(message) || 1, 250)
    setTimeout(
      () => {
        // Lost like any ring: other waiters look for themselves within 5 s.
        this.#take(key).catch(() => {})
      },
      systemRandom() * (listeners - 1),
    ).unref()
  }

  /** Takes the marker of a shard if there is one and a waiter here wants it. */
  async #take(key: string): Promise<void> {
    if (![...this.#waiting].some(({ shards }) => shards.some((shard) => markerOf(shard) === key))) return
    if (listIn(await this.#client.command('ZPOPMIN', [key])).length > 0) await this.#deal(key)
  }

  /** The queues that need a claim, whether or not there was a ring. */
  async #look(shards: readonly RedisShard[]): Promise<string[]> {
    const queues = await this.#queues.find(shards.map(({ queue }) => queue))
    const bounded = new Map<RedisQueue, RedisShard[]>()
    for (const [i, queue] of queues.entries())
      if (queue.layout.isBounded) bounded.set(queue, [...(bounded.get(queue) ?? []), shards[i]!])
    const free = shards.filter((_, i) => !queues[i]!.layout.isBounded)
    const counted = [...bounded].map(([queue, of]) => this.#needing(of, queue))
    const needing = this.#client.isCluster
      ? await partialReplies([...counted, ...free.map((shard) => this.#needing([shard]))])
      : await Promise.all([
          ...counted,
          ...['plain', 'ordered'].map((kind) => this.#needing(free.filter((one) => one.kind === kind))),
        ])
    return [...new Set(needing.flat())]
  }

  /** `bounded`: the queue of all these shards, if they share a bound. */
  async #needing(shards: readonly RedisShard[], bounded?: RedisQueue): Promise<string[]> {
    if (shards.length === 0) return []
    const behind = bounded === undefined ? [] : siblingKeys(bounded)
    const args = [String(bounded?.shards.length ?? 0)]
    const replies = listIn(await this.#queues.runOver(shards, lookScripts, args, undefined, behind)).map(numberIn)
    return shards.filter((_, i) => replies[i] === 1).map(({ queue }) => queue)
  }
}

/** If one of the shards is damaged, lets a claim find out which, because it can ask each by itself. */
function foundByClaim(shards: readonly RedisShard[]) {
  return (error: unknown): string[] => {
    if (!hasCode(error, 'store-corrupt')) throw error
    return [...new Set(shards.map(({ queue }) => queue))]
  }
}

/**
 * KEYS: those of each shard asked, one after the other; for an ordered queue with `maxRunning` then those of all its
 * shards.
 * ARGV: the number of the latter shards.
 * Returns for each 1 if a claim would find work and no lead is expected to claim it, otherwise 0.
 */
const lookLua = `
SIBLINGS = tonumber(ARGV[1])
SIBLINGS_FROM = #KEYS / SIZE - SIBLINGS
local needs = {}
for n = 0, SIBLINGS_FROM - 1 do
  at(n)
  needs[n + 1] = 0
  if call('EXISTS', READY_LIST, READY, LANES, SUSPECTS, SCHEDULED, LEASES) > 0 then
    know_form()
    if not STOPPED then
      local meta = call('HMGET', META, 'limited', 'stale', 'leadAt', 'sparesUntil', 'seenAt')
      local is_limited = limits(meta[1]).limited
      local can = is_limited and lanes.is_claimable() or (not is_limited and ready_count(tonumber(meta[2] or 0)) > 0 and not is_full())
      -- A claim must follow a clock that was set back.
      if can or ${isSetBack('meta[5]')} then needs[n + 1] = 1 else
        local lead_at, change = tonumber(meta[3]), first_change(tonumber(meta[4]))
        if change and change <= now and not (is_led(lead_at) and lead_at <= now + ${leadLapseMs}) then needs[n + 1] = 1 end
      end
    end
  end
end
return needs
`

/** The look scripts: whether shards need a claim. */
const lookScripts = scriptPair('look', leads + lookLua, { rare: readyJobs, readOnly: true })
