/**
 * Runs calls that are written as steps on Postgres: each statement is awaited, and those of a call are one transaction. Its
 * connection is for nothing else, so that no claim waits for it, and ends when it is idle.
 */

import { setTimeout as delay } from 'node:timers/promises'
import type { SqlSteps } from '../../sql/sql-steps.js'
import type { PostgresAddress } from '../client/postgres-address.js'
import { type AskInTransaction, PostgresConnection } from '../client/postgres-connection.js'
import type { MakePostgresClient } from '../client/postgres-driver.js'
import { inSchema, quoted, type SqlFunction } from '../schema/sql-function.js'
import { payloadFrom, payloadText } from '../schema/stored-payload.js'

/** Bounds of a statement and of the pauses between those of a transaction, shorter than what gives a connection up. */
const bounds = `SET LOCAL statement_timeout = '8s'; SET LOCAL lock_timeout = '4s';
  SET LOCAL idle_in_transaction_session_timeout = '5s'`
/** As for functions: see `sqlFunction`. */
const planned = 'SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off'
/** Longer than the pause between two looks of the lead of the schedules: making a connection costs more than keeping one. */
const idleMs = 7_000
const closeMs = 300

/**
 * The tables that a call changes. Calls that change the same ones run one after the other, as their steps expect; those
 * that only read do not wait. No call of a worker that claims or settles takes such a lock.
 */
const locks = { schedules: 10, workers: 11, live: 12, history: 13 } as const
type LockedTables = keyof typeof locks

/** One transaction, as the calls within it see it. */
interface PostgresTransaction {
  /** The store's clock, in ms, when the transaction had what it waited for. */
  readonly now: number
  run<Answer>(steps: SqlSteps<Answer>): Promise<Answer>
  /** Calls a function of the schema. */
  call(of: SqlFunction, values: readonly unknown[]): Promise<unknown>
}

export class StepRunner {
  readonly #connection: PostgresConnection
  readonly #schema: string
  /** Resolves when the transactions before have ended. */
  #before: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #idle: NodeJS.Timeout | undefined

  constructor(address: PostgresAddress, schema: string, makeClient?: MakePostgresClient) {
    this.#connection = new PostgresConnection(address, schema, makeClient)
    this.#schema = schema
  }

  /** Runs the steps of one call. They begin anew if the server gives the transaction up. Throws as the connection does. */
  run<Answer>(changes: LockedTables | undefined, steps: (now: number) => SqlSteps<Answer>): Promise<Answer> {
    return this.transaction(changes, ({ run, now }) => run(steps(now)))
  }

  /** The same for several calls in one transaction. Whatever `body` throws has changed nothing. */
  async transaction<Answer>(
    changes: LockedTables | undefined,
    body: (within: PostgresTransaction) => Promise<Answer>,
  ): Promise<Answer> {
    clearTimeout(this.#idle)
    this.#waiting += 1
    const mine = this.#before.then(() =>
      this.#connection.transaction(this.#beginning(changes), (ask, { now }) =>
        body({
          now: Number(now),
          run: (steps) => awaited(steps, ask),
          call: (of, values) => answerOf(ask, of, values, this.#schema),
        }),
      ),
    )
    this.#before = mine.catch(() => {})
    try {
      return await mine
    } finally {
      this.#waiting -= 1
      if (this.#waiting === 0) this.#idle = setTimeout(() => this.#connection.rest(), idleMs).unref()
    }
  }

  /** What was begun may end, for a moment. */
  async close(): Promise<void> {
    clearTimeout(this.#idle)
    await Promise.race([this.#before, delay(closeMs, undefined, { ref: false })])
    await this.#connection.close()
  }

  #beginning(changes: LockedTables | undefined): string {
    // Who only reads sees one state of all tables; who writes sees what those before have written.
    const begin =
      changes === undefined ? 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY' : 'BEGIN ISOLATION LEVEL READ COMMITTED'
    const lock = changes === undefined ? '' : `SELECT pg_advisory_xact_lock(@lock, ${locks[changes]});`
    const schema = quoted(this.#schema)
    return inSchema(
      `${begin}; SET LOCAL search_path = ${schema}, pg_temp; ${bounds}; ${planned}; ${lock} SELECT @.us() / 1000 AS now`,
      this.#schema,
    )
  }
}

async function awaited<Answer>(steps: SqlSteps<Answer>, ask: AskInTransaction): Promise<Answer> {
  let step = steps.next()
  while (!step.done) {
    const { sql, values, gives } = step.value
    const { rows, rowCount } = await ask(numbered(sql), values.map(boundValue))
    step = steps.next(gives === 'changes' ? (rowCount ?? 0) : gives === 'all' ? rows.map(readRow) : readRow(rows[0]))
  }
  return step.value
}

async function answerOf(
  ask: AskInTransaction,
  { name }: SqlFunction,
  values: readonly unknown[],
  schema: string,
): Promise<unknown> {
  const places = values.map((_, i) => `$${i + 1}`)
  const { rows } = await ask(`SELECT ${quoted(schema)}.${name}(${places.join(', ')}) AS value`, values)
  return rows[0]!['value']
}

/** The texts of steps have no other question mark. */
function numbered(sql: string): string {
  let n = 0
  return sql.replace(/\?/g, () => `$${++n}`)
}

/** A column of Postgres holds text or bytes, not either: both are kept as text. */
function boundValue(value: unknown): unknown {
  return typeof value === 'string' || value instanceof Uint8Array ? payloadText(value) : value
}

function readRow(row: Record<string, unknown> | undefined) {
  if (row === undefined) return undefined
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === 'string' ? payloadFrom(value) : value]),
  )
}
