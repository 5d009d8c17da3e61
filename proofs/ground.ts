/**
 * The ground of a drill: a new store that all its processes open, an audit of what happens there, and ways to take the
 * store away.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { StoreDescriptor } from 'millrace'
import { type AuditEntry, startRedis } from 'millrace/store-testing'
import { auditEntries } from '#src/store-testing/harness/redis-audit.js'
import { sqliteHarness } from '#src/store-testing/harness/sqlite-harness.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { listIn } from '#src/stores/redis/client/redis-reply.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'

export interface Ground {
  /** The store that every process opens, under its audit. */
  readonly store: StoreDescriptor
  /** A folder for other records of the drill. It is removed with the ground. */
  readonly folder: string
  /** The audit, which is written inside the store's own atomic steps. */
  audit(): Promise<AuditEntry[]>
  /** Makes the store unavailable for everybody. Resolves to a function that makes it available again. */
  withhold(): Promise<() => void>
  /** Kills the store's server with SIGKILL and starts it again on its data. Undefined if the store has no server. */
  crash?(): Promise<void>
  close(): Promise<void>
}

export type OpenGround = () => Promise<Ground>

/** The time for which a killed server is away. */
const awayMs = 500
/** Workers have the write lock for moments only. */
const lockWithinMs = 30_000

/** A SQLite file in a folder of its own. Triggers keep its audit. */
export async function sqliteGround(): Promise<Ground> {
  const harness = await sqliteHarness()
  return {
    store: `sqlite:${harness.file}`,
    folder: dirname(harness.file),
    audit: () => harness.audit(),
    async withhold() {
      const open = await loadDriver()
      const other = open(harness.file)
      other.exec(`PRAGMA busy_timeout = ${lockWithinMs}; BEGIN IMMEDIATE`)
      return () => {
        other.exec('ROLLBACK')
        other.close()
      }
    },
    close: () => harness.close(),
  }
}

/** A Redis server of its own, with an append-only file that is synced every second. Its scripts keep the audit. */
export async function redisGround(): Promise<Ground> {
  const server = await startRedis({ config: ['appendonly yes', 'appendfsync everysec'] })
  const folder = mkdtempSync(join(tmpdir(), 'millrace-ground-'))
  const module = join(folder, 'store.mjs')
  const audited = JSON.stringify(pathToFileURL(join(import.meta.dirname, 'audited-redis.mjs')))
  writeFileSync(module, `import { auditedRedis } from ${audited}\nexport default auditedRedis('${server.url}')\n`)
  return {
    store: { module },
    folder,
    async audit() {
      const eyes = openRedisClient(redisAddress(server.url))
      try {
        return auditEntries(listIn(await eyes.command('LRANGE', ['{millrace}:audit', '0', '-1'])))
      } finally {
        await eyes.close()
      }
    },
    async withhold() {
      await server.kill('SIGSTOP')
      return () => void server.kill('SIGCONT')
    },
    async crash() {
      await server.kill()
      await delay(awayMs)
      await server.restart()
    },
    async close() {
      await server.stop()
      rmSync(folder, { recursive: true })
    },
  }
}
