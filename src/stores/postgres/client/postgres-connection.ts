/**
 * The connection of a Postgres store: one, for all calls. Those of a tick leave together, each as a statement and a
 * transaction of its own. What a call does depends on nothing that the session keeps of the calls before, so a pooler may stand
 * between. It always reconnects.
 */

import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { CustomTypesConfig } from 'pg'
import { ClosedError, hasCode, isMillraceError } from '../../../core/errors.js'
import { systemClock, systemRandom } from '../../../core/platform/clock.js'
import { outageDelayMs, timerMs } from '../../../core/platform/timer.js'
import { quoted, type SqlFunction } from '../schema/sql-function.js'
import { type PostgresAddress, type PostgresHost, postgresAddressText } from './postgres-address.js'
import { loadPostgresDriver, type MakePostgresClient, type PostgresClient } from './postgres-driver.js'
import { isLoginRefused, isOfOneCall, postgresError, postgresFailure } from './postgres-errors.js'
import { type Backend, endBackend, judgeSession, sessionText } from './postgres-session.js'

/** How long a call waits for a connection, or is tried again, in all. */
const patienceMs = 2_000
/** How long one try of a call waits for a row or a table that somebody else has locked; the calls behind it wait as long. */
const lockMs = 500
/** The same for a call that is brief: many of them may wait for one transaction. */
const briefLockMs = 50
/** How long one host is waited for. */
const connectMs = 2_000
/** A connection that owes an answer and says nothing for so long is given up, unless it was made for longer calls. */
const usualSilenceMs = 10_000
const lookMs = 500
/** How long the server may take to say goodbye. */
const closeMs = 500

/** Hears notifications: the channel, and what was said. Without a channel: some may have been lost. */
export type NotificationEar = (channel?: string, payload?: string) => void

type PostgresRow = Record<string, unknown>

interface StatementAnswer {
  readonly rows: PostgresRow[]
  /** The rows that were found or changed; null for a statement that does neither. */
  readonly rowCount: number | null
}

/** Sends one statement of a transaction. */
export type AskInTransaction = (text: string, values?: readonly unknown[]) => Promise<StatementAnswer>

interface QueryConfig {
  readonly text: string
  readonly rowMode?: 'array'
  readonly types?: CustomTypesConfig
}

/** By the number of a type. Whole numbers of 8 bytes, and sums of them, fit into the numbers of JavaScript; others stay text. */
const readers: Readonly<Record<number, (text: string) => unknown>> = {
  16: (text) => text === 't',
  ...{ 20: Number, 21: Number, 23: Number, 701: Number, 1700: Number },
  114: (text) => JSON.parse(text),
}
const types = { getTypeParser: (type: number) => readers[type] ?? ((text: string) => text) } as CustomTypesConfig

/** A client that is connected. */
interface LiveClient {
  readonly client: PostgresClient
  /** Its process in the server. */
  backend: Backend
  /** The calls without an answer, and for how many looks in a row nothing has come for them. */
  owed: number
  silentLooks: number
  bytes: number
  isOver: boolean
}

export class PostgresConnection {
  readonly schema: string
  readonly #address: PostgresAddress
  readonly #makeClient: MakePostgresClient | undefined
  readonly #where: string
  /** Each is `LISTEN`ed to again after a lost connection. */
  readonly #channels = new Set<string>()
  readonly #texts = new Map<string, string>()
  /** Resolves when the last of the brief calls that are to be tried has been. */
  #lastTurn: Promise<void> = Promise.resolve()
  readonly #ears = new Set<NotificationEar>()
  readonly #silenceMs: number
  #live: LiveClient | undefined
  /** The process of the last connection that was lost while calls were under way. */
  #orphan: Backend | undefined
  #opening: Promise<LiveClient> | undefined
  /** The calls under way, and those who keep the process alive for another reason. */
  #held = 0
  #wasConnected = false
  #isClosed = false
  readonly #watchdog: NodeJS.Timeout

  /**
   * `makeClient`: of the driver, unless a harness lends clients of its own. `silenceMs`: a connection that owes an answer and says
   * nothing for so long is given up.
   */
  constructor(
    address: PostgresAddress,
    schema: string,
    makeClient?: MakePostgresClient,
    silenceMs: number = usualSilenceMs,
  ) {
    this.#silenceMs = silenceMs
    this.#watchdog = setInterval(() => this.#look(), lookMs).unref()
    this.#address = address
    this.#makeClient = makeClient
    this.schema = schema
    this.#where = postgresAddressText(address)
  }

  /**
   * Calls a function of the schema; resolves with the value that it returns. A call that was not carried out is sent again
   * for 2 s; one in doubt is not. Of brief calls one is tried at a time, and waits 50 ms at most for what somebody else has locked.
   *
   * Throws `StoreUnavailableError`, `StoreFullError`, `StoreRefusedError`, `StoreCorruptError`, `ConfigError` or `ClosedError`.
   */
  async call({ name, takes }: SqlFunction, values: readonly unknown[], isBrief = false): Promise<unknown> {
    const key = isBrief ? `brief ${name}` : name
    let text = this.#texts.get(key)
    if (text === undefined) {
      const places = takes === '' ? [] : values.map((_, i) => `$${i + 1}`)
      const bound = `set_config('lock_timeout', '${isBrief ? briefLockMs : lockMs}ms', true)`
      text = `SELECT CASE WHEN ${bound} <> '' THEN ${quoted(this.schema)}.${name}(${places.join(', ')}) END`
      this.#texts.set(key, text)
    }
    const [row] = await (isBrief ? this.#queryInTurn(text, values) : this.query(text, values))
    return row![0]
  }

  /** The rows of a statement; without values, of the last of several, which are one transaction. Throws as `call` does. */
  query(text: string, values?: readonly unknown[]): Promise<unknown[][]> {
    return this.#patiently((live, leaves) => this.#rows(live, leaves, text, values))
  }

  /** A call that is tried again goes to the end of the line. */
  #queryInTurn(text: string, values: readonly unknown[]): Promise<unknown[][]> {
    return this.#patiently((live, leaves) => {
      const rows = this.#lastTurn.then(() => {
        if (live.isOver) throw new Error('the connection was lost')
        return this.#rows(live, leaves, text, values)
      })
      this.#lastTurn = rows.then(
        () => {},
        () => {},
      )
      return rows
    })
  }

  async #rows(live: LiveClient, leaves: () => void, text: string, values?: readonly unknown[]): Promise<unknown[][]> {
    leaves()
    return (await this.#send(live, { text, rowMode: 'array' }, values)).rows as unknown as unknown[][]
  }

  /**
   * Runs `body` within one transaction, which the statements of `begin` open. Until it ends nobody else may use this
   * connection. It begins anew if the server gives it up, and is in doubt only once its commit was sent. Throws as `call`
   * does, and whatever `body` throws, which then has changed nothing.
   */
  transaction<Answer>(
    begin: string,
    body: (ask: AskInTransaction, begun: PostgresRow) => Promise<Answer>,
  ): Promise<Answer> {
    return this.#patiently(async (live, leaves) => {
      const ask: AskInTransaction = (text, values) => this.#send(live, { text, types }, values)
      try {
        const { rows } = await ask(begin)
        const answer = await body(ask, rows[0] ?? {})
        leaves()
        await ask('COMMIT')
        return answer
      } catch (error) {
        if (!live.isOver) await ask('ROLLBACK').catch(() => {})
        throw error
      }
    })
  }

  /** Connects if it is not connected. Throws as `call` does, but does not try again. */
  async connect(): Promise<void> {
    if (this.#live === undefined) await this.#connected()
  }

  /** Ends the connection until the next call. */
  rest(): void {
    if (this.#live !== undefined && this.#live.owed === 0) this.#drop(this.#live)
  }

  /** `leaves`: called when something leaves that may be carried out although no answer comes. */
  async #patiently<Answer>(attempt: (live: LiveClient, leaves: () => void) => Promise<Answer>): Promise<Answer> {
    const endsAt = systemClock.mono() + patienceMs
    for (let failures = 0; ; failures++) {
      let live: LiveClient | undefined
      let hasLeft = false
      try {
        live = this.#live ?? (await this.#connected())
        return await attempt(live, () => {
          hasLeft = true
        })
      } catch (error) {
        if (this.#isClosed) throw new ClosedError('the store')
        if (isMillraceError(error) && !hasCode(error, 'store-unavailable')) throw error
        const failure =
          isMillraceError(error) || this.#mayBeRenewed(error)
            ? 'elsewhere'
            : postgresFailure(error, hasLeft, live === undefined)
        const isLost = failure === 'elsewhere' || (failure === 'in-doubt' && !isOfOneCall(error))
        if (isLost && live !== undefined) this.#drop(live)
        if (failure !== 'again' && failure !== 'locked' && failure !== 'elsewhere')
          throw postgresError(this.#where, error, failure)
        const leftMs = endsAt - systemClock.mono()
        if (leftMs <= 0) throw isMillraceError(error) ? error : postgresError(this.#where, error, failure)
        await delay(Math.min(outageDelayMs(failures, systemRandom), leftMs))
      }
    }
  }

  /** A login that is refused after one was accepted: the function that gives the password may know a new one soon. */
  #mayBeRenewed(error: unknown): boolean {
    return this.#wasConnected && typeof this.#address.password === 'function' && isLoginRefused(error)
  }

  /** Hears notifications of this channel from when it resolves. Throws as `call` does. */
  async listen(channel: string, heard: NotificationEar): Promise<void> {
    this.#ears.add(heard)
    this.#channels.add(channel)
    await this.query(`LISTEN ${quoted(channel)}`)
  }

  /** The process of the server that this connection has now, which hears its channels; undefined while it has none. */
  get backend(): number | undefined {
    return this.#live?.backend.pid
  }

  /** Keeps the process alive until the function that it returns is called; a connection without a call does not. */
  hold(): () => void {
    this.#holds(1)
    let isHeld = true
    return () => {
      if (isHeld) this.#holds(-1)
      isHeld = false
    }
  }

  /** Ends the connection. Calls under way reject with `ClosedError`. Closing twice is harmless. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    clearInterval(this.#watchdog)
    const live = this.#live
    this.#live = undefined
    if (live === undefined) return
    live.isOver = true
    // The timer keeps the process alive, as the connection does not.
    const isOver = new AbortController()
    const { signal } = isOver
    await Promise.race([live.client.end().catch(() => {}), delay(closeMs, undefined, { signal }).catch(() => {})])
    isOver.abort()
    streamOf(live.client)?.destroy()
  }

  async #send(live: LiveClient, query: QueryConfig, values?: readonly unknown[]): Promise<StatementAnswer> {
    this.#holds(1)
    live.owed += 1
    try {
      const answer: StatementAnswer | StatementAnswer[] = await live.client.query({
        ...query,
        ...(values === undefined ? {} : { values: [...values] }),
      })
      return Array.isArray(answer) ? answer.at(-1)! : answer
    } finally {
      live.owed -= 1
      this.#holds(-1)
    }
  }

  /** Counts looks, not time: a blocked event loop looks once, and then reads what has arrived. */
  #look(): void {
    const live = this.#live
    if (live === undefined) return
    const bytes = streamOf(live.client)?.bytesRead ?? 0
    live.silentLooks = live.owed > 0 && bytes === live.bytes ? live.silentLooks + 1 : 0
    live.bytes = bytes
    if (live.silentLooks * lookMs >= this.#silenceMs) this.#drop(live)
  }

  #holds(by: 1 | -1): void {
    this.#held += by
    if (this.#live === undefined) return
    if (this.#held === 0) this.#live.client.unref()
    else if (this.#held === by) this.#live.client.ref()
  }

  #connected(): Promise<LiveClient> {
    if (this.#isClosed) throw new ClosedError('the store')
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  /** The first host that takes writes. */
  async #connect(): Promise<LiveClient> {
    const makeClient = this.#makeClient ?? (await loadPostgresDriver())
    let trouble: unknown
    for (const host of this.#address.hosts) {
      const client = makeClient(this.#config(host))
      const live: LiveClient = {
        client,
        backend: { pid: 0, since: null },
        owed: 0,
        silentLooks: 0,
        bytes: 0,
        isOver: false,
      }
      const isLost = () => this.#drop(live)
      // An error without a listener would end the process; calls under way are rejected by the driver.
      client.on('error', isLost)
      client.on('end', isLost)
      client.on('notification', ({ channel, payload }) => {
        for (const hear of this.#ears) hear(channel, payload ?? '')
      })
      try {
        await client.connect()
        const { rows } = await client.query({ text: sessionText(client.processID), rowMode: 'array' })
        live.backend = judgeSession(rows[0] ?? [], this.#where)
        if (this.#orphan !== undefined) await this.#endOrphan(client, this.#orphan)
        for (const channel of this.#channels) await client.query(`LISTEN ${quoted(channel)}`)
        // Its end may come in the packet of its last answer, and is heard before that.
        if (live.isOver) throw new Error('the server ended the connection')
      } catch (error) {
        trouble = error
        live.isOver = true
        destroy(client)
        continue
      }
      if (this.#isClosed) {
        destroy(client)
        throw new ClosedError('the store')
      }
      this.#live = live
      if (this.#held === 0) client.unref()
      if (this.#wasConnected) for (const hear of this.#ears) hear()
      this.#wasConnected = true
      return live
    }
    throw trouble
  }

  /**
   * Calls that were lost with their connection may be sent again. Their process may still be busy with the first of them, and would carry
   * out the others later. A pooler's processes are those of others too.
   */
  async #endOrphan(client: PostgresClient, { pid, since }: Backend): Promise<void> {
    const { rows } = await client.query({ text: endBackend, rowMode: 'array' }, [pid, since])
    if (rows[0]?.[0] === false)
      throw new Error(`its process ${pid} does not end, and may still carry out calls of a connection that was lost`)
    this.#orphan = undefined
  }

  #config({ host, port }: PostgresHost) {
    const { user, password, database, tls, stream } = this.#address
    return {
      ...{
        host,
        port,
        database,
        pipeline: true as const,
        keepAlive: true,
        connectionTimeoutMillis: timerMs(connectMs),
      },
      application_name: 'millrace',
      ...(user === undefined ? {} : { user }),
      ...(password === undefined ? {} : { password }),
      ...(tls === 'disable'
        ? {}
        : { ssl: typeof tls === 'object' ? tls : { rejectUnauthorized: tls === 'verify-full' } }),
      ...(stream === undefined ? {} : { stream: stream as () => Socket }),
    }
  }

  /** The connection is of no more use: the next call makes another. */
  #drop(live: LiveClient): void {
    if (live.isOver) return
    live.isOver = true
    if (this.#live === live) this.#live = undefined
    if (live.owed > 0 && live.backend.since !== null) this.#orphan = live.backend
    destroy(live.client)
  }
}

/** Calls under way are rejected by the driver. */
function destroy(client: PostgresClient): void {
  streamOf(client)?.destroy()
  client.end().catch(() => {})
}

/** The socket, which the driver's types leave out. */
function streamOf(client: PostgresClient): Socket | undefined {
  return (client as unknown as { readonly connection?: { readonly stream?: Socket } }).connection?.stream
}
