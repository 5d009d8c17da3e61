/** Opening queues in a SQLite store, and counting what is in them. */

import { refuseOtherForm } from '../../core/queue.js'
import { depthOfShards } from '../shard-depths.js'
import type { Depth, QueueSettings, StoredQueue } from '../store.js'
import type { Statement } from './sqlite-driver.js'
import type { SqliteLook } from './sqlite-look.js'
import type { QueueRow } from './sqlite-queue.js'
import { storedQueue } from './sqlite-records.js'
import type { SqliteSession } from './sqlite-session.js'

export class SqliteSettings {
  readonly #session: SqliteSession
  readonly #look: SqliteLook
  readonly #insert: Statement

  constructor(session: SqliteSession, look: SqliteLook) {
    this.#session = session
    this.#look = look
    this.#insert = session.db.prepare(
      'INSERT INTO queue (name, shard, shards, number, kind, ord, exclusive, max_crashes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
    )
  }

  open(queues: readonly QueueSettings[]): StoredQueue[] {
    for (const settings of queues) {
      const row = this.#session.queues.find(settings.name)
      if (row !== undefined)
        refuseOtherForm(row.name, { kind: row.kind, order: row.ord, exclusive: row.exclusive }, settings)
    }
    return queues.map((settings) => this.#open(settings))
  }

  #open(settings: QueueSettings): StoredQueue {
    const { name, maxPending, maxCrashes, resultsCount, dead, merge } = settings
    const { queues } = this.#session
    if (queues.find(name) === undefined) this.#make(settings)
    for (const row of queues.rowsOf(name)) {
      row.max_pending = maxPending ?? null
      row.max_crashes = maxCrashes
      row.results_count = resultsCount ?? null
      row.dead_age_ms = dead.ageMs ?? null
      row.dead_count = dead.count ?? null
      row.merge = merge ?? row.merge
    }
    return storedQueue(queues.get(name))
  }

  #make({ name, kind, order, exclusive = 'id', shards = 1, maxCrashes }: QueueSettings): void {
    const count = kind === 'ordered' ? shards : 1
    const number = 1 + Math.max(0, ...this.#session.queues.all().map((row) => row.number))
    for (let shard = 0; shard < count; shard += 1)
      this.#insert.run(name, shard, count, number, kind, order, exclusive, maxCrashes)
  }

  depth(names: readonly string[]): { readonly now: number; readonly depths: Depth[] } {
    const now = this.#session.clock.now()
    return { now, depths: names.map((name) => this.#depthOf(name, now)) }
  }

  #depthOf(name: string, now: number): Depth {
    const { queues } = this.#session
    const shards = queues.shardsOf(name).map((row) => this.#depthIn(row, now))
    const leaving = queues.leaving(name).map((row) => this.#depthIn(row, now))
    return depthOfShards(shards, leaving, queues.get(name).kind === 'ordered')
  }

  #depthIn(row: QueueRow, now: number): Depth {
    const { name, kind, ready, suspects, scheduled, running, dead, retries, pending } = row
    const { processed, failed, crashed } = row
    return {
      queue: name,
      ready,
      payloads: kind === 'ordered' ? pending : ready + scheduled,
      suspects,
      scheduled,
      running,
      dead,
      fresh: ready + scheduled - retries,
      retries,
      lagMs: this.#look.lagMs(row, now),
      processed,
      failed,
      crashed,
      paused: row.paused === 1,
      draining: row.draining === 1,
    }
  }
}
