/** Opening queues in a SQLite store, and counting what is in them. */

import type { QueueLimits } from '../../../core/queue/queue-limits.js'
import { refuseOtherThrottle, type Throttle } from '../../../core/queue/throttle.js'
import type { QueueDepth } from '../../contract/queue-depth.js'
import type { QueueSettings, StoredQueue } from '../../contract/queue-settings.js'
import { storedQueue } from '../../rows/queue-row.js'
import { boundsOf, changedLimits, limitsFrom, limitsText, runningBounds, saidLimits } from '../../rules/limit-rules.js'
import { depthOfShards } from '../../rules/queue-counts.js'
import { refuseGroupBound, refuseOtherForm } from '../../rules/queue-form.js'
import type { Statement } from '../file/sqlite-driver.js'
import type { QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteQueueState } from '../rows/sqlite-queue-state.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

export class SqliteSettings {
  readonly #transaction: SqliteTransaction
  readonly #state: SqliteQueueState
  readonly #insert: Statement

  constructor(transaction: SqliteTransaction, state: SqliteQueueState) {
    this.#transaction = transaction
    this.#state = state
    this.#insert = transaction.db.prepare(
      'INSERT INTO queue (name, shard, shards, number, kind, ord, exclusive) VALUES (?, ?, ?, ?, ?, ?, ?)',
    )
  }

  open(queues: readonly QueueSettings[], { follows } = { follows: false }): StoredQueue[] {
    const scopes = new Map<string, Throttle>()
    for (const settings of queues) {
      const { name, throttle } = settings
      const row = this.#transaction.queues.find(name)
      if (row !== undefined) {
        refuseOtherForm(name, { kind: row.kind, order: row.ord, exclusive: row.exclusive }, settings)
        if (follows) continue
        saidLimits(name, limitsFrom(row.limits), settings)
        refuseGroupBound(name, settings.maxRunning, row.resharding ?? row.shards)
      }
      if (throttle === undefined) continue
      refuseOtherThrottle(name, this.#knownThrottle(row, throttle.scope, scopes), throttle)
      scopes.set(throttle.scope, throttle)
    }
    return queues.map((settings) => {
      const isNew = this.#transaction.queues.find(settings.name) === undefined
      if (isNew) this.#make(settings)
      if (isNew || !follows) this.#declare(settings)
      const row = this.#transaction.queues.get(settings.name)
      return storedQueue(row, this.#transaction.throttles.of(row)?.settings)
    })
  }

  /** See `Records.setLimits`. */
  setLimits(name: string, change: QueueLimits): QueueLimits {
    const { queues, lanes } = this.#transaction
    const row = queues.get(name)
    refuseGroupBound(name, change.maxRunning, row.resharding ?? row.shards)
    const limits = changedLimits(limitsFrom(row.limits), change)
    this.#bound(name, limits)
    for (const shard of queues.rowsOf(name)) {
      lanes.relimit(shard)
      this.#transaction.ring(shard)
    }
    return limits
  }

  /** The throttle of the queue, otherwise that of the scope, which another queue of the same call may declare. */
  #knownThrottle(
    row: QueueRow | undefined,
    scope: string,
    scopes: ReadonlyMap<string, Throttle>,
  ): Throttle | undefined {
    const { throttles } = this.#transaction
    const own = row && throttles.of(row)
    return own?.settings ?? scopes.get(scope) ?? throttles.find(scope)?.settings
  }

  #declare(settings: QueueSettings): void {
    const { name, merge, throttle } = settings
    const { queues, throttles } = this.#transaction
    this.#bound(name, saidLimits(name, limitsFrom(queues.get(name).limits), settings))
    for (const row of queues.rowsOf(name)) {
      row.merge = merge ?? row.merge
      if (throttle === undefined || row.throttle !== null) continue
      if (throttles.find(throttle.scope) === undefined) throttles.make(throttle)
      row.throttle = throttle.scope
      row.throttle_by = throttle.eachGroup === undefined ? throttle.by : 'both'
    }
    // The queues that share a scope are looked up in the file.
    this.#transaction.flushRows()
  }

  /** From now on these limits hold. */
  #bound(name: string, limits: QueueLimits): void {
    const { maxPending, maxCrashes, resultsCount, dead, maxRunning } = boundsOf(limits)
    const { total, perGroup } = runningBounds(maxRunning)
    for (const row of this.#transaction.queues.rowsOf(name)) {
      row.limits = limitsText(limits)
      row.max_pending = maxPending ?? null
      row.crash_limit = maxCrashes
      row.results_limit = resultsCount ?? null
      row.dead_age_ms = dead.ageMs ?? null
      row.dead_count = dead.count ?? null
      row.max_running = total ?? null
      row.max_per_group = perGroup ?? null
    }
  }

  #make({ name, kind, order, exclusive = 'id', shards = 1 }: QueueSettings): void {
    const count = kind === 'ordered' ? shards : 1
    const number = 1 + Math.max(0, ...this.#transaction.queues.all().map((row) => row.number))
    for (let shard = 0; shard < count; shard += 1) this.#insert.run(name, shard, count, number, kind, order, exclusive)
  }

  depth(names: readonly string[]): { readonly now: number; readonly depths: QueueDepth[] } {
    const now = this.#transaction.clock.now()
    return { now, depths: names.map((name) => this.#depthOf(name, now)) }
  }

  #depthOf(name: string, now: number): QueueDepth {
    const { queues } = this.#transaction
    const shards = queues.shardsOf(name).map((row) => this.#depthIn(row, now))
    const leaving = queues.leaving(name).map((row) => this.#depthIn(row, now))
    return depthOfShards(shards, leaving, queues.get(name).kind === 'ordered')
  }

  #depthIn(row: QueueRow, now: number): QueueDepth {
    const { name, kind, ready, suspects, scheduled, waiting, running, dead, retries, pending } = row
    const { processed, failed, crashed, expired, lost_at } = row
    return {
      queue: name,
      ready,
      payloads: kind === 'ordered' ? pending : ready + scheduled + waiting,
      suspects,
      scheduled,
      waiting,
      running,
      dead,
      fresh: ready + scheduled - retries,
      retries,
      lagMs: this.#state.lagMs(row, now),
      processed,
      failed,
      crashed,
      expired,
      ...(kind === 'plain' && lost_at !== null ? { lostAt: lost_at } : {}),
      paused: row.paused === 1,
      draining: row.draining === 1,
    }
  }
}
