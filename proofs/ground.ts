/** The ground of a drill: a fresh store that all its processes open, an audit of what happens there, and ways to take it away. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { StoreDescriptor } from 'millrace'
import { type AuditEntry, sqliteHarness, startRedis } from 'millrace/store-testing'
import { auditEntries } from '#src/store-testing/harness/redis-audit.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { listIn } from '#src/stores/redis/client/redis-reply.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'

export interface Ground {
  /** What every process opens: the store under its audit. */
  readonly store: StoreDescriptor
  /** For what else a drill writes down. It goes with the ground. */
  readonly folder: string
  /** Written down inside the store's own atomic steps. */
  audit(): Promise<AuditEntry[]>
  /** Takes the store away from everybody; resolves with what gives it back. */
  withhold(): Promise<() => void>
  /** Kills the store's server with SIGKILL and starts it again on its data. Absent where nothing of it runs. */
  crash?(): Promise<void>
  close(): Promise<void>
}

export type OpenGround = () => Promise<Ground>

/** How long a killed server is away. */
const awayMs = 500
/** Workers have the write lock for moments. */
const lockWithinMs = 30_000

/** A file in a folder of its own; its audit is kept by triggers. */
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

/** A server of its own that appends to its file and syncs it every second; its audit is kept inside its scripts. */
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
