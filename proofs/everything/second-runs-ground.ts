/** The grounds of the second runs: one store that all processes open, and what is done to it while they work. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startRedis } from 'millrace/store-testing'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { isBusy } from '#src/stores/sqlite/file/sqlite-errors.js'
import type { ChaosGround } from './chaos-ground.js'

/** Longer than a lease: what runs meanwhile is lost. */
const awayMs = 6_000
/** How often a statement asks for the lock of the file: a worker that has it may stand still. */
const askMs = 20
const perMinute = (times: number, minutes: number) => Math.max(1, Math.round(times * minutes))

export async function sqliteSite(minutes: number): Promise<ChaosGround> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-second-'))
  const file = join(folder, 'jobs.db')
  // SQLite's own way to wait would hold up this process, and with it the end of every stop.
  const used = async (work: (exec: (sql: string) => Promise<void>) => Promise<void>) => {
    const other = (await loadDriver())(file)
    other.exec('PRAGMA busy_timeout = 0')
    await work(async (sql) => {
      for (;;) {
        try {
          return other.exec(sql)
        } catch (error) {
          if (!isBusy(error)) throw error
        }
        await delay(askMs)
      }
    })
    other.close()
  }
  const locked = (ms: number) => () =>
    used(async (exec) => {
      await exec('BEGIN IMMEDIATE')
      await delay(ms)
      await exec('ROLLBACK')
    })
  const backup = join(folder, 'backup.db')
  const backUp = () =>
    used((exec) => {
      rmSync(backup, { force: true })
      return exec(`VACUUM INTO '${backup}'`)
    })
  return {
    url: `sqlite:${file}`,
    faults: [
      { name: 'write locks of others', times: perMinute(2, minutes), make: locked(1_000) },
      { name: 'write locks beyond the lease', times: perMinute(0.2, minutes), make: locked(awayMs) },
      { name: 'backups', times: perMinute(0.5, minutes), make: backUp },
      { name: 'VACUUMs', times: perMinute(0.3, minutes), make: () => used((exec) => exec('VACUUM')) },
    ],
    async close() {
      rmSync(folder, { recursive: true })
    },
  }
}

/** All that it has accepted is on disk. */
export async function redisSite(minutes: number): Promise<ChaosGround> {
  const server = await startRedis({ config: ['appendonly yes', 'appendfsync always', 'save ""'] })
  const away = (ms: number) => async () => {
    await server.kill()
    await delay(ms)
    await server.restart()
  }
  const fill = async () => {
    await server.ask('CONFIG', 'SET', 'maxmemory', '1')
    await delay(500)
    await server.ask('CONFIG', 'SET', 'maxmemory', '0')
  }
  const flush = async () => {
    await server.ask('SCRIPT', 'FLUSH')
  }
  return {
    url: server.url,
    faults: [
      { name: 'restarts', times: perMinute(0.5, minutes), make: away(0) },
      { name: 'outages beyond the lease', times: perMinute(0.2, minutes), make: away(awayMs) },
      { name: 'full memories', times: perMinute(0.5, minutes), make: fill },
      { name: 'script flushes', times: perMinute(0.5, minutes), make: flush },
    ],
    close: () => server.stop(),
  }
}
