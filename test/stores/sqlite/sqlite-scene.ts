/** A SQLite store's scene: a folder of its own, and stores in it that are closed with it. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EnqueueCall, NewJob } from '#src/stores/contract/new-job.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'

export const queue: QueueSettings = { name: 'work', kind: 'plain', order: 'fifo' }

export class SqliteScene {
  readonly folder = mkdtempSync(join(tmpdir(), 'millrace-sqlite-'))
  readonly file = join(this.folder, 'jobs.db')
  readonly #stores: SqliteStore[] = []

  store(file = this.file, clock?: string): SqliteStore {
    const store = new SqliteStore({ file, ...(clock === undefined ? {} : { clock }) })
    this.#stores.push(store)
    return store
  }

  async opened(clock?: string): Promise<SqliteStore> {
    const store = this.store(this.file, clock)
    await store.open([queue])
    return store
  }

  async close(): Promise<void> {
    for (const store of this.#stores) await store.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

export function job(id: string, more: Partial<NewJob> = {}): NewJob {
  return { id, task: 'send', payload: '{}', priority: 0, rememberMs: 0, ...more }
}

export function enqueueCall(...ids: string[]): EnqueueCall {
  return { callId: `call-${ids.join('-')}`, queue: queue.name, jobs: ids.map((id) => job(id)) }
}
