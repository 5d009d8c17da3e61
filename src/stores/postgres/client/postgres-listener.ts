/**
 * Hears notifications: on the connection of the calls, where they arrive between answers, or, if that goes through a pooler,
 * on a connection of its own, straight to the server.
 */

import type { PostgresAddress } from './postgres-address.js'
import { type NotificationEar, PostgresConnection } from './postgres-connection.js'
import type { MakePostgresClient } from './postgres-driver.js'

export class PostgresListener {
  /** Nothing is ever heard: who waits must look. */
  readonly isDeaf: boolean
  readonly #connection: PostgresConnection
  readonly #isOwn: boolean

  constructor(connection: PostgresConnection, address: PostgresAddress, makeClient?: MakePostgresClient) {
    const { listen } = address
    this.isDeaf = listen === 'none'
    this.#isOwn = listen !== undefined && listen !== 'none'
    this.#connection =
      listen === undefined || listen === 'none'
        ? connection
        : new PostgresConnection({ ...address, hosts: [listen] }, connection.schema, makeClient)
  }

  /** Hears this channel from when it resolves. Throws as the connection does. */
  async listen(channel: string, heard: NotificationEar): Promise<void> {
    if (!this.isDeaf) await this.#connection.listen(channel, heard)
  }

  /** The process of the server that listens; null: the one of each call. */
  get backend(): number | null {
    return this.#isOwn ? (this.#connection.backend ?? 0) : null
  }

  /** Connects again if its own connection was lost: it makes no calls that would. Then all who wait are woken. */
  stay(): void {
    if (this.#isOwn) this.#connection.connect().catch(() => {})
  }

  async close(): Promise<void> {
    if (this.#isOwn) await this.#connection.close()
  }
}
