/** Opening queues in a SQLite store, and counting what is in them. */

import { refuseOtherForm } from '../../core/queue.js'
import type { Depth, QueueSettings, StoredQueue } from '../store.js'
import type { Statement } from './sqlite-driver.js'
import type { SqliteLook } from './sqlite-look.js'
import { storedQueue } from './sqlite-records.js'
import type { SqliteSession } from './sqlite-session.js'

export class SqliteSettings {
  readonly #session: SqliteSession
  readonly #look: SqliteLook
  readonly #insert: Statement

  constructor(session: SqliteSession, look: SqliteLook) {
    this.#session = session
    this.#look = look
    this.#insert = session.db.prepare('INSERT INTO queue (name, kind, ord, max_crashes) VALUES (?, ?, ?, ?)')
  }

  open(queues: readonly QueueSettings[]): StoredQueue[] {
    for (const settings of queues) {
      const row = this.#session.queues.find(settings.name)
      if (row !== undefined) refuseOtherForm(row.name, { kind: row.kind, order: row.ord }, settings)
    }
    return queues.map((settings) => {
      const { name, kind, order, maxPending, maxCrashes, resultsCount, dead } = settings
      const { queues } = this.#session
      if (queues.find(name) === undefined) this.#insert.run(name, kind, order, maxCrashes)
      const row = queues.get(name)
      row.max_pending = maxPending ?? null
      row.max_crashes = maxCrashes
      row.results_count = resultsCount ?? null
      row.dead_age_ms = dead.ageMs ?? null
      row.dead_count = dead.count ?? null
      return storedQueue(row)
    })
  }

  depth(names: readonly string[]): { readonly now: number; readonly depths: Depth[] } {
    const now = this.#session.clock.now()
    const depths = names.map((name): Depth => {
      const row = this.#session.queues.get(name)
      const { ready, suspects, scheduled, running, dead, retries, processed, failed, crashed } = row
      return {
        queue: name,
        ready,
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
    })
    return { now, depths }
  }
}
