/**
 * A pair of Postgres servers: a primary, and a standby that has each commit before it is answered. When the primary dies the
 * standby takes over, and a new standby starts in the place of the dead one.
 */

import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'

const lookMs = 20

export class PostgresPair {
  #primary: PostgresServer
  #standby: PostgresServer
  /** With both hosts. */
  readonly url: string

  private constructor(primary: PostgresServer, standby: PostgresServer) {
    this.#primary = primary
    this.#standby = standby
    this.url = primary.url.replace(`:${primary.port}/`, `:${primary.port},${standby.host}:${standby.port}/`)
  }

  /** `primary` is stopped with the pair. */
  static async of(primary: PostgresServer): Promise<PostgresPair> {
    const pair = new PostgresPair(primary, await PostgresServer.start({ standbyOf: primary }))
    await pair.#makeSafe()
    return pair
  }

  /** The server that takes writes. */
  get server(): PostgresServer {
    return this.#primary
  }

  /** The primary ends at once and for good. Resolves when the other one takes writes and has a standby of its own. */
  async crash(): Promise<void> {
    const [dead, heir] = [this.#primary, this.#standby]
    await dead.stop()
    await asked(heir, 'SELECT pg_promote()')
    this.#primary = heir
    this.#standby = await PostgresServer.start({ standbyOf: heir, port: dead.port })
    await this.#makeSafe()
  }

  async stop(): Promise<void> {
    await Promise.all([this.#primary.stop(), this.#standby.stop()])
  }

  /** Resolves when commits wait for the standby. Those before that are in the copy which it began with. */
  async #makeSafe(): Promise<void> {
    await asked(this.#primary, "ALTER SYSTEM SET synchronous_standby_names = '*'")
    await asked(this.#primary, 'SELECT pg_reload_conf()')
    const follows = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"
    while ((await asked(this.#primary, follows)).length === 0) await delay(lookMs)
  }
}

/** The rows of one statement, on a connection of its own. */
export async function asked({ url }: PostgresServer, text: string): Promise<Record<string, string>[]> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query(text)).rows
  } finally {
    await client.end().catch(() => {})
  }
}
