/**
 * Warm clients: connections to a Postgres that outlive the stores which they were lent to. For a new one the server starts a
 * process, which reads the catalog and compiles each function that it calls: more work than most tests ask of a store.
 */

import { EventEmitter } from 'node:events'
import type { MakePostgresClient, PostgresClient } from '../../stores/postgres/client/postgres-driver.js'

const told = ['error', 'end', 'notification'] as const
/** All that a store may leave in a session. */
const forgetting = 'UNLISTEN *; RESET ALL; SELECT pg_advisory_unlock_all()'

export class WarmClients {
  readonly #make: MakePostgresClient
  /** The one that was given back first is lent first: it has compiled the most. */
  readonly #idle: PostgresClient[] = []
  #takesBack = false

  constructor(make: MakePostgresClient) {
    this.#make = make
  }

  /** For a store. What it ends has ended, except within `takeBack`. */
  readonly lend: MakePostgresClient = (config) => {
    const warm = this.#idle.shift()
    const client = warm ?? this.#make(config)
    if (warm === undefined) {
      // An error without a listener would end the process.
      client.on('error', () => {})
      client.on('end', () => this.#remove(client))
    }
    const takesBack = () => this.#takesBack && isAtRest(client)
    return new LentClient(client, warm !== undefined, takesBack, (one) => this.#keep(one)) as unknown as PostgresClient
  }

  /** Closes stores; the connections that they end, and that owe nothing, stay for the next stores. */
  async takeBack(closing: () => Promise<void>): Promise<void> {
    this.#takesBack = true
    await closing().finally(() => {
      this.#takesBack = false
    })
  }

  async #keep(client: PostgresClient): Promise<void> {
    try {
      await client.query(forgetting)
      client.unref()
      this.#idle.push(client)
    } catch {
      await client.end()
    }
  }

  #remove(client: PostgresClient): void {
    const at = this.#idle.indexOf(client)
    if (at >= 0) this.#idle.splice(at, 1)
  }
}

/** No transaction is open. */
function isAtRest(client: PostgresClient): boolean {
  return client.getTransactionStatus() === 'I'
}

/** A client as a store uses it, from its connection to its end. */
class LentClient extends EventEmitter {
  readonly #isConnected: boolean
  readonly #takesBack: () => boolean
  readonly #keep: (client: PostgresClient) => Promise<void>
  readonly #tells = told.map((event) => [event, (...said: unknown[]) => void this.emit(event, ...said)] as const)
  /** Undefined once it was given back. */
  #client: PostgresClient | undefined
  #owed = 0

  constructor(
    client: PostgresClient,
    isConnected: boolean,
    takesBack: () => boolean,
    keep: (client: PostgresClient) => Promise<void>,
  ) {
    super()
    this.#client = client
    this.#isConnected = isConnected
    this.#takesBack = takesBack
    this.#keep = keep
    for (const [event, tell] of this.#tells) client.on(event as 'end', tell)
  }

  /** Its socket: a client whose socket is destroyed has ended. */
  get connection(): unknown {
    return (this.#client as unknown as { readonly connection: unknown } | undefined)?.connection
  }

  get processID(): number | null {
    return this.#client?.processID ?? null
  }

  async connect(): Promise<void> {
    if (this.#isConnected) this.#client!.ref()
    else await this.#client!.connect()
  }

  async query(...asked: Parameters<PostgresClient['query']>): Promise<unknown> {
    this.#owed += 1
    try {
      return await this.#client!.query(...asked)
    } finally {
      this.#owed -= 1
    }
  }

  ref(): void {
    this.#client?.ref()
  }

  unref(): void {
    this.#client?.unref()
  }

  async end(): Promise<void> {
    const client = this.#client
    if (client === undefined) return
    if (this.#owed > 0 || !this.#takesBack()) return client.end()
    this.#client = undefined
    for (const [event, tell] of this.#tells) client.off(event, tell)
    await this.#keep(client)
  }
}
