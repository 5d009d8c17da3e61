/**
 * A SQLite store's scene: a folder of its own, and stores in it that are closed with it. Once closed it begins anew. One thread
 * serves its stores and those of other scenes: to start one takes many times as long as what most tests ask of a store.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sharedThread } from '#src/store-testing/harness/shared-thread.js'
import type { EnqueueCall, NewJob } from '#src/stores/contract/new-job.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'

export const queue: QueueSettings = { name: 'work', kind: 'plain', order: 'fifo' }

export class SqliteScene {
  #folder: string | undefined
  #stores: SqliteStore[] = []
  readonly #startThread: { startThread?: typeof sharedThread }

  /**
   * `hasOwnThreads`: each store has a thread of its own, as those of users have. Needed by tests that look at or change the file
   * of a store that was closed: in a thread that goes on, its statements keep the file open until they are collected.
   */
  constructor({ hasOwnThreads = false } = {}) {
    this.#startThread = hasOwnThreads ? {} : { startThread: sharedThread }
  }

  get folder(): string {
    this.#folder ??= mkdtempSync(join(tmpdir(), 'millrace-sqlite-'))
    return this.#folder
  }

  get file(): string {
    return join(this.folder, 'jobs.db')
  }

  store(file = this.file, clock?: string): SqliteStore {
    const store = new SqliteStore({ file, ...this.#startThread, ...(clock === undefined ? {} : { clock }) })
    this.#stores.push(store)
    return store
  }

  async opened(clock?: string): Promise<SqliteStore> {
    const store = this.store(this.file, clock)
    await store.open([queue])
    return store
  }

  async close(): Promise<void> {
    const [stores, folder] = [this.#stores, this.#folder]
    this.#stores = []
    this.#folder = undefined
    for (const store of stores) await store.close()
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  }
}

export function job(id: string, more: Partial<NewJob> = {}): NewJob {
  return { id, task: 'send', payload: '{}', priority: 0, rememberMs: 0, ...more }
}

export function enqueueCall(...ids: string[]): EnqueueCall {
  return { callId: `call-${ids.join('-')}`, queue: queue.name, jobs: ids.map((id) => job(id)) }
}
