/** The site of a proof about schedules: a store that several processes share, with its clock in a file. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type StartedRedis, startRedis } from 'millrace/store-testing'
import { fileClockUrl, readFileClock, writeFileClock } from '#src/store-testing/harness/file-clock.js'
import { auditedClient } from '#src/store-testing/harness/redis-audit.js'
import type { ScheduleChange } from '#src/stores/contract/schedules.js'
import type { Store } from '#src/stores/contract/store.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'

/** The location of the store: a file or a server. */
export interface SiteWords {
  readonly clock: string
  readonly file?: string
  readonly url?: string
}

const namespace = 'schedules'
const upForMs = 365 * 86_400_000

/** A handle on the store, with the clock of the site. */
export function storeAt({ clock, file, url }: SiteWords): Store {
  if (file !== undefined) return new SqliteStore({ file, clock: fileClockUrl(clock) })
  const now = () => readFileClock(clock).now
  const info = () => `run_id:1\r\nuptime_in_seconds:${upForMs / 1_000}\r\nsecond_repl_offset:-1\r\n`
  return new RedisStore({ client: auditedClient(openRedisClient(redisAddress(url!)), namespace, now, info), namespace })
}

export class ScheduleSite {
  readonly words: SiteWords
  readonly store: Store
  readonly #folder: string
  readonly #redis: StartedRedis | undefined
  #now = Date.parse('2026-11-25T00:00:00Z')

  private constructor(folder: string, redis: StartedRedis | undefined) {
    this.#folder = folder
    this.#redis = redis
    const clock = join(folder, 'clock')
    writeFileClock(clock, this.#now)
    this.words = redis === undefined ? { clock, file: join(folder, 'jobs.db') } : { clock, url: redis.url }
    this.store = storeAt(this.words)
  }

  static async on(kind: 'sqlite' | 'redis'): Promise<ScheduleSite> {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-schedules-'))
    return new ScheduleSite(folder, kind === 'redis' ? await startRedis() : undefined)
  }

  get now(): number {
    return this.#now
  }

  advance(ms: number): void {
    this.#now += ms
    writeFileClock(this.words.clock, this.#now)
  }

  async close(): Promise<void> {
    await this.store.close()
    await this.#redis?.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

export const queue = { name: 'reports', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const

/**
 * A schedule that ticks each minute, or at another interval. Its jobs are hardly remembered, so that a duplicate would
 * be noticed.
 */
export function ticking(now: number, everyMs = 60_000): ScheduleChange {
  const job = { task: 'report', payload: '{}', priority: 0, rememberMs: 1 }
  const rule = { everyMs, timeZone: 'UTC' }
  return {
    definition: {
      ...{ name: 'minutely', queue: queue.name, rule, onMissed: 'latest', overlap: 'allow' },
      ...{ jitterMs: 0, job },
    },
    revision: 'first',
    paused: false,
    nextAt: (Math.floor(now / everyMs) + 1) * everyMs,
  }
}
