/** An idle worker: how often it asks a store with only empty queues. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace, type SelectorName } from 'millrace'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'

/** Claims made and CPU seconds used by one worker with three empty queues on a SQLite file, during this time. */
export async function idleClaims(selector: SelectorName, forMs: number): Promise<{ claims: number; cpuMs: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-idle-'))
  const { claim } = SqliteStore.prototype
  let claims = 0
  SqliteStore.prototype.claim = function (...args) {
    claims += 1
    return claim.apply(this, args)
  }
  const queues = { high: { weight: 100 }, default: { weight: 40 }, low: { weight: 5 } }
  const mill = millrace({
    store: `sqlite:${join(folder, 'jobs.db')}`,
    queues,
    tasks: [defineTask({ name: 'idle', run: () => {} })],
  })
  try {
    await mill.worker({ selector }).start()
    const before = process.cpuUsage()
    await delay(forMs)
    const { user, system } = process.cpuUsage(before)
    return { claims, cpuMs: (user + system) / 1_000 }
  } finally {
    SqliteStore.prototype.claim = claim
    await mill.close()
    rmSync(folder, { recursive: true })
  }
}
