/** The facet `transactions` of a Postgres store: what its users do in their own transactions. */

import { InvalidArgumentError, StoreRefusedError, UnsupportedByStoreError } from '../../../core/errors.js'
import { messageOf } from '../../../core/messages/describe.js'
import type { Enqueued } from '../../contract/new-job.js'
import type { ClaimKey } from '../../contract/settle.js'
import type { Transactions, UserConnection, UserEnqueueCall } from '../../contract/transactions.js'
import { type FunctionCaller, quoted } from '../schema/sql-function.js'
import { completeInside } from '../work/end-functions.js'
import { PostgresEnqueue } from '../work/postgres-enqueue.js'
import type { PostgresQueues } from '../work/postgres-settings.js'
import { executorOf } from './user-executor.js'

export class PostgresTransactions implements Transactions {
  readonly answersLater = true
  readonly #schema: string
  readonly #queues: PostgresQueues

  constructor(schema: string, queues: PostgresQueues) {
    this.#schema = schema
    this.#queues = queues
  }

  async enqueue(connection: UserConnection, call: UserEnqueueCall): Promise<Enqueued[]> {
    const { queue, jobs, wakes = true } = call
    // An insert into a lane or an id that others write to would wait for them, or fail, as long as a user's transaction is open.
    const isPlain = (await this.#queues.named([queue]))[0]!.kind === 'plain'
    if (jobs.some(({ group, join }) => (isPlain && group !== undefined) || join !== undefined))
      throw new UnsupportedByStoreError(
        'postgres',
        `enqueueIn() of a job of a group in a plain queue, or of one that waits for others (queue '${queue}')`,
        'Leave the group out, or enqueue in the transaction a plain job whose handler enqueues this one.',
      )
    return new PostgresEnqueue(callsIn(connection, this.#schema), this.#queues).enqueueIn(call, wakes)
  }

  /** The row of the job is locked until the transaction ends, so this is to be the last statement before the commit. */
  async complete(connection: UserConnection, { queue, id, fence }: ClaimKey): Promise<boolean> {
    const [plain] = await this.#queues.named([queue])
    return (await callsIn(connection, this.#schema).call(completeInside, [plain!.qid, fence, id])) as boolean
  }
}

/**
 * Calls of functions of the store inside a user's transaction. Every value travels as text and is cast in the statement: what clients make of numbers, lists and JSON differs. A function
 * runs without the user's search path, which may lead to functions of his own. Throws
 * `InvalidArgumentError` for a connection that cannot be used, `StoreRefusedError` if a right is missing, and any other error
 * as the client threw it: one that says to begin the transaction anew must look as from any other statement.
 */
function callsIn(connection: UserConnection, schema: string): FunctionCaller {
  const execute = executorOf(connection)
  return {
    async call({ name, takes }, values) {
      const types = takes.split(/\s*,\s*/).map((one) => one.trim().split(' ')[1])
      const places = values.map((_, i) => `($${i + 1}::text)::${types[i]}`)
      const called = `${quoted(schema)}.${name}(${places.join(', ')})::text`
      const text = `SELECT CASE WHEN ${pathOf(`'pg_catalog, pg_temp'`)} IS NOT NULL THEN ${called} END AS answer, ${pathOf('path')} AS path
        FROM (SELECT pg_catalog.current_setting('search_path') AS path OFFSET 0) AS before`
      try {
        const [row] = await execute(text, values.map(textOf))
        return JSON.parse((row?.['answer'] as string | null) ?? 'null')
      } catch (error) {
        throw readable(error, schema)
      }
    },
  }
}

/** Until the end of the transaction. The columns of a row are computed in their order: the path of the user is back after the call. */
function pathOf(value: string): string {
  return `pg_catalog.set_config('search_path', ${value}, true)`
}

function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null
  return Array.isArray(value) ? `{${value.map(elementOf).join(',')}}` : String(value)
}

function elementOf(value: unknown): string {
  const text = textOf(value)
  return text === null ? 'NULL' : `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

/** By SQLSTATE: what the user can do about it. */
const remedies: Readonly<Record<string, string>> = {
  '25P02':
    'an earlier statement of this transaction has failed, and Postgres carries out no other. Roll it back; the error of that statement says why.',
  '25006': 'this transaction is read-only. Begin it READ WRITE, on the primary.',
  '3F000': 'this database does not hold the jobs of the mill',
  '42883': 'this database does not hold the jobs of the mill, or those of another version of Millrace',
}

function readable(error: unknown, schema: string): unknown {
  const refusal = refusalIn(error)
  const code = refusal?.code
  // What wraps it may repeat the whole statement.
  const said = messageOf(refusal?.from ?? error)
  if (code === '42501')
    return new StoreRefusedError(
      `the user of this transaction may not use the schema '${schema}' (${said}). Grant it what the store's own user has: USAGE on the schema, and SELECT, INSERT, UPDATE and DELETE on its tables. Nothing was enqueued.`,
    )
  const remedy = code === undefined ? undefined : remedies[code]
  if (remedy === undefined) return error
  const where = remedy.endsWith('.')
    ? ''
    : ` in its schema '${schema}'. Open the transaction on the database of the store, and await mill.ready() before it begins.`
  return new InvalidArgumentError(`the transaction cannot be used (${said}): ${remedy}${where} Nothing was enqueued.`)
}

/** The SQLSTATE and the error that has it: clients wrap the server's error, each in its own way. */
function refusalIn(error: unknown, depth = 0): { readonly code: string; readonly from: unknown } | undefined {
  if (typeof error !== 'object' || error === null || depth > 4) return undefined
  const { code, cause, driverAdapterError, driverError, meta, originalCode } = error as Record<string, unknown>
  const own = [code, originalCode].find(
    (one): one is string => typeof one === 'string' && /^[0-9A-Z]{5}$/.test(one) && !/^P\d{4}$/.test(one),
  )
  if (own !== undefined) return { code: own, from: error }
  return [cause, driverAdapterError, driverError, meta]
    .map((one) => refusalIn(one, depth + 1))
    .find((one) => one !== undefined)
}
