/** The Redis store: jobs on Redis or Valkey: a single server, the master that Sentinels name, or a cluster. */

import { setMaxListeners } from 'node:events'
import { ClosedError } from '../../core/errors.js'
import { type Clock, systemClock } from '../../core/platform/clock.js'
import { longestTimerMs } from '../../core/platform/timer.js'
import type { Claimed, Claimer, ClaimFrom, Rung } from '../contract/claim.js'
import type { History } from '../contract/history.js'
import type { Deaths, Records } from '../contract/job-records.js'
import type { Joins } from '../contract/joins.js'
import type { LiveMessages } from '../contract/live-messages.js'
import type { EnqueueCall, Enqueued } from '../contract/new-job.js'
import type { QueueDepth } from '../contract/queue-depth.js'
import type { QueueSettings, StoredQueue } from '../contract/queue-settings.js'
import type { Schedules } from '../contract/schedules.js'
import type { ExtendAnswer, ExtendItem, SettleAnswer, SettleItem } from '../contract/settle.js'
import type { Steps } from '../contract/steps.js'
import type { Store } from '../contract/store.js'
import type { StoreHealth } from '../contract/store-health.js'
import type { Throttles } from '../contract/throttles.js'
import type { WorkerRegistry } from '../contract/worker-registry.js'
import { mostClaimBytes } from '../rules/claim-weight.js'
import { RedisClaim } from './claim/redis-claim.js'
import { RedisRungClaim } from './claim/redis-rung-claim.js'
import { extendItems, settleItems } from './claim/redis-settle.js'
import type { RedisClient } from './client/redis-client.js'
import { numberIn } from './client/redis-reply.js'
import { enqueueCalls } from './enqueue/redis-enqueue.js'
import { isInGraph, RedisGraphEnqueue } from './joins/redis-graph-enqueue.js'
import { RedisJoins } from './joins/redis-joins.js'
import { redisDeaths } from './records/redis-deaths.js'
import { depthsOf } from './records/redis-depth.js'
import { redisHistory } from './records/redis-history.js'
import { RedisListing } from './records/redis-listing.js'
import { redisRecords } from './records/redis-records.js'
import { redisRegistry } from './records/redis-registry.js'
import { redisSteps } from './records/redis-steps.js'
import { redisThrottles } from './records/redis-throttles.js'
import { RedisIdleCache } from './redis-idle-cache.js'
import { liveChannel } from './redis-keys.js'
import { RedisResultWatch } from './redis-result-watch.js'
import { redisTraits } from './redis-traits.js'
import { RedisWait } from './redis-wait.js'
import { RedisSchedules } from './schedules/redis-schedules.js'
import { DamagedShards } from './shards/redis-damage.js'
import { RedisQueues } from './shards/redis-queues.js'
import { RedisReshard } from './shards/redis-reshard.js'
import { RedisShardMigration } from './shards/redis-shard-migration.js'

/** How long `close` waits for running calls. */
const closeMs = 1_000

interface RedisStoreParts {
  readonly client: RedisClient
  /** The prefix of all keys. Default `'millrace'`. */
  readonly namespace?: string
  /** The number of replicas that must have an enqueue before it is accepted. Default 0. */
  readonly replicas?: number
  /** A clock in ms that never goes back. Default: that of the process. */
  readonly mono?: Clock['mono']
  /** The weight in bytes at which a claim is full. Default 1 MiB. */
  readonly mostClaimBytes?: number
}

export class RedisStore implements Store {
  readonly traits = redisTraits
  readonly records: Records
  readonly workers: WorkerRegistry
  readonly throttles: Throttles
  readonly schedules: Schedules
  readonly live: LiveMessages
  readonly history: History
  readonly joins: Joins
  readonly steps: Steps
  readonly deaths: Deaths
  readonly health: StoreHealth
  readonly #client: RedisClient
  readonly #replicas: number
  readonly #graphs: RedisGraphEnqueue
  readonly #queues: RedisQueues
  readonly #claim: RedisClaim
  readonly #rungClaim: RedisRungClaim
  readonly #wait: RedisWait
  readonly #ends: RedisResultWatch
  readonly #closing = new AbortController()
  #isClosed = false
  /** The number of calls that change something and have no answer yet. */
  #calls = 0
  /** Called when the last of these calls has its answer. */
  #answered = () => {}

  constructor({
    client,
    namespace = 'millrace',
    replicas = 0,
    mono = () => systemClock.mono(),
    mostClaimBytes: most = mostClaimBytes,
  }: RedisStoreParts) {
    this.#client = client
    this.#replicas = replicas
    this.#queues = new RedisQueues(client, namespace)
    const idle = new RedisIdleCache(client, mono)
    const damage = new DamagedShards(mono)
    const migration = new RedisShardMigration(this.#queues)
    this.#claim = new RedisClaim(this.#queues, migration, client.isCluster, idle, damage, most)
    this.#wait = new RedisWait(client, this.#queues, idle, damage)
    this.#rungClaim = new RedisRungClaim(this.#queues, this.#wait, idle, damage, most)
    this.#ends = new RedisResultWatch(client, this.#queues)
    const listing = new RedisListing(this.#queues)
    const reshard = new RedisReshard(this.#queues, migration)
    this.records = redisRecords(this.#queues, listing, reshard, this.#ends)
    this.workers = redisRegistry(client, this.#queues, namespace)
    this.throttles = redisThrottles(client, this.#queues)
    this.schedules = new RedisSchedules(client, this.#queues, namespace, replicas)
    setMaxListeners(0, this.#closing.signal)
    this.live = redisLive(client, namespace, this.#closing.signal, () => this.#refuseClosed())
    this.history = redisHistory(client, namespace, () => this.#refuseClosed())
    this.#graphs = new RedisGraphEnqueue(this.#queues, replicas)
    this.joins = new RedisJoins(client, this.#queues, this.#graphs, migration, namespace, () => this.#refuseClosed())
    this.deaths = redisDeaths(this.#queues, () => this.#refuseClosed())
    this.steps = redisSteps(client, this.#queues, namespace, () => this.#refuseClosed())
    // Loaded on demand: most threads and processes that open a store never use it.
    this.health = {
      examine: async () =>
        (await import('./health/redis-doctor.js')).examineRedis({ client, queues: this.#queues, namespace, replicas }),
      check: async (queue) => (await import('./health/redis-fsck.js')).checkRedis(client, namespace, queue),
      repair: async (queue) => (await import('./health/redis-fsck-repair.js')).repairRedis(client, namespace, queue),
    }
  }

  async open(queues: readonly QueueSettings[], how = { follows: false }): Promise<StoredQueue[]> {
    this.#refuseClosed()
    await this.#client.reach()
    return this.#queues.open(queues, how)
  }

  enqueue(calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    if (calls.some(({ jobs }) => jobs.some(isInGraph))) return this.#underWay(() => this.#enqueueGraph(calls))
    return this.#underWay(() => enqueueCalls(this.#queues, calls, this.#replicas))
  }

  /** Some of the jobs are joins or members: their calls take another way. */
  async #enqueueGraph(calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    const sent = await Promise.allSettled(
      calls.map((call) =>
        call.jobs.some(isInGraph)
          ? this.#graphs.call(call)
          : enqueueCalls(this.#queues, [call], this.#replicas).then(([answers]) => answers!),
      ),
    )
    return sent.map((one) => {
      if (one.status === 'rejected') throw one.reason
      return one.value
    })
  }

  claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    return this.#underWay(() => this.#claim.claim(from, by))
  }

  settle(items: readonly SettleItem[]): Promise<SettleAnswer[]> {
    return this.#underWay(() => settleItems(this.#queues, items))
  }

  extend(items: readonly ExtendItem[]): Promise<ExtendAnswer[]> {
    return this.#underWay(() => extendItems(this.#queues, items))
  }

  async depth(queues: readonly string[]): Promise<{ readonly now: number; readonly depths: QueueDepth[] }> {
    this.#refuseClosed()
    return this.#queues.following(() => depthsOf(this.#queues, queues))
  }

  async wait(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    this.#refuseClosed()
    return this.#wait.forQueues(queues, forMs, signal)
  }

  claimWhenRung(from: readonly ClaimFrom[], by: Claimer, forMs: number, signal: AbortSignal): Promise<Rung> {
    return this.#underWay(() => this.#rungClaim.whenRung(from, by, forMs, signal))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#closing.abort()
    this.#wait.close()
    this.#ends.close()
    // A caller whose call was rejected must not find later that it was done.
    if (this.#calls > 0) {
      await new Promise<void>((resolve) => {
        this.#answered = resolve
        setTimeout(resolve, closeMs).unref()
      })
    }
    await this.#client.close()
  }

  async #underWay<T>(call: () => Promise<T>): Promise<T> {
    this.#refuseClosed()
    this.#calls += 1
    try {
      return await call()
    } finally {
      this.#calls -= 1
      if (this.#calls === 0) this.#answered()
    }
  }

  #refuseClosed(): void {
    if (this.#isClosed) throw new ClosedError('the Redis store')
  }
}

/**
 * Live messages: published on a channel of the queue, without any key. The server counts the listeners and returns their
 * number when a message is published, so that listeners need not renew anything.
 * `closing`: aborts when the store closes. `refuseClosed` throws `ClosedError`.
 */
function redisLive(
  client: RedisClient,
  namespace: string,
  closing: AbortSignal,
  refuseClosed: () => void,
): LiveMessages {
  return {
    async publish(queue, message = '') {
      refuseClosed()
      const command = client.isCluster ? 'SPUBLISH' : 'PUBLISH'
      return numberIn(await client.command(command, [liveChannel(namespace, queue), message])) > 0
    },

    async watch(queue, heard, signal) {
      refuseClosed()
      const over = AbortSignal.any([signal, closing])
      // An empty message only counts listeners.
      const stop = await client.listen(liveChannel(namespace, queue), (message) => {
        if (message !== '' && !over.aborted) heard(message)
      })
      if (over.aborted) return stop()
      // The watch keeps the process alive, because an idle socket does not.
      const alive = setInterval(() => {}, longestTimerMs)
      over.addEventListener('abort', () => {
        clearInterval(alive)
        stop()
      })
    },
  }
}
