/**
 * The executor of a transaction: sends a statement through whatever the user has, in the transaction that it is in. Clients are
 * recognised by their methods, so that none of them need be installed.
 */

import { InvalidArgumentError } from '../../../core/errors.js'
import { describe } from '../../../core/messages/describe.js'
import type { UserConnection } from '../../contract/transactions.js'

/** `text` has its parameters as `$1`, `$2`, …; all are text or null. Resolves with the rows, as objects. */
type UserExecutor = (text: string, values: readonly (string | null)[]) => Promise<readonly Record<string, unknown>[]>

type Method = (...args: unknown[]) => unknown
type Methods = Readonly<Record<string, Method | undefined>>

interface UserClient {
  /** A method that it has and none of the clients before it. */
  readonly method: string
  readonly send: (tx: Methods) => Method
  /** False for a handle of the same client on which each statement is a transaction of its own. */
  readonly isOpen: (tx: Readonly<Record<string, unknown>>) => boolean
  /** The handle that is open. */
  readonly open: string
}

const clients: readonly UserClient[] = [
  {
    method: 'unsafe',
    send: (tx) => (text, values) => tx['unsafe']!(text, values),
    isOpen: ({ begin }) => begin === undefined,
    open: 'the `sql` that `sql.begin()` of postgres.js hands over',
  },
  {
    method: '$queryRawUnsafe',
    send: (tx) => (text, values) => tx['$queryRawUnsafe']!(text, ...(values as unknown[])),
    isOpen: ({ $connect }) => $connect === undefined,
    open: 'the `tx` that `$transaction(async (tx) => …)` of Prisma hands over',
  },
  {
    method: 'executeQuery',
    // Kysely takes queries that were compiled elsewhere.
    send: (tx) => (sql, parameters) =>
      tx['executeQuery']!({
        ...{ sql, parameters, queryId: { queryId: 'millrace' } },
        query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
      }),
    isOpen: ({ isTransaction }) => isTransaction === true,
    open: 'the `trx` that `transaction().execute()` of Kysely hands over',
  },
  {
    method: 'raw',
    // Knex numbers its own placeholders.
    send: (tx) => (text, values) => tx['raw']!((text as string).replace(/\$\d+/g, '?'), inOrder(text, values)),
    isOpen: ({ isTransaction }) => isTransaction === true,
    open: 'the `trx` that `transaction()` of Knex hands over',
  },
  {
    method: 'select',
    // Drizzle takes a text without parameters, or an object of its own making.
    send: (tx) => (text, values) =>
      tx['execute']!((text as string).replace(/\$(\d+)/g, (_, n) => literal((values as string[])[n - 1] ?? null))),
    // The `tx` outlives its transaction, and its client of pg goes back to the pool.
    isOpen: ({ rollback, session }) => rollback !== undefined && !isIdle(clientIn(session)),
    open: 'the `tx` that `db.transaction()` of Drizzle hands over, before that transaction ends: await the call inside it',
  },
  {
    // pg, TypeORM's manager and its query runner, PGlite.
    method: 'query',
    send: (tx) => (text, values) => tx['query']!(text, values),
    isOpen: isOpenByQuery,
    open: 'a client of pg that `pool.connect()` gave, after BEGIN, or the manager or the query runner of a transaction of TypeORM',
  },
]

/** A client of pg does not know of a BEGIN that is still on its way: while it waits for an answer, it counts as open. */
function isOpenByQuery(tx: Readonly<Record<string, unknown>>): boolean {
  const { totalCount, transaction, queryRunner, isTransactionActive } = tx
  const isPool = typeof totalCount === 'number'
  const isRunner = isTransactionActive !== undefined
  const isManager = typeof transaction === 'function'
  if (isRunner) return isTransactionActive === true
  if (isManager) return (queryRunner as { isTransactionActive?: unknown } | undefined)?.isTransactionActive === true
  return !isPool && !isIdle(tx)
}

/** Whether this client of pg has no transaction, and waits for no answer that may begin one. */
function isIdle(client: Readonly<Record<string, unknown>>): boolean {
  return client['readyForQuery'] === true && statusOf(client) === 'I'
}

/** `'I'`: no transaction; undefined for a client of another kind, or an older pg. */
function statusOf(client: Readonly<Record<string, unknown>>): unknown {
  return (client['getTransactionStatus'] as Method | undefined)?.call(client)
}

/** The client below the session of Drizzle. */
function clientIn(session: unknown): Readonly<Record<string, unknown>> {
  return (session as { readonly client?: Record<string, unknown> } | undefined)?.client ?? {}
}

/** Throws `InvalidArgumentError` for anything that is no open transaction of a known client, and no function. */
export function executorOf(tx: UserConnection): UserExecutor {
  const methods = (tx ?? {}) as Methods
  const known = clients.find(({ method }) => typeof methods[method] === 'function')
  if (known?.isOpen(methods) === false)
    throw new InvalidArgumentError(
      `expected an open transaction; on what was given each statement is committed by itself. Give ${known.open}, or a function (sql, params) => rows that sends statements in yours.`,
    )
  const send = known?.send(methods) ?? (typeof tx === 'function' ? (tx as Method) : undefined)
  if (send === undefined)
    throw new InvalidArgumentError(
      `expected a transaction of pg, postgres.js, Drizzle, Kysely, TypeORM, Knex or Prisma, or for any other client a function (sql, params) => rows; got ${describe(tx)}.`,
    )
  return async (text, values) => {
    const answer = await send.call(tx, text, [...values])
    // A call that nobody awaits in the transaction is sent behind its COMMIT.
    if ([methods, clientIn(methods['session'])].some((client) => statusOf(client) === 'I'))
      throw new InvalidArgumentError(
        'the transaction had ended when the statement was sent, which was therefore committed by itself. Await the call before the transaction ends.',
      )
    const rows = Array.isArray(answer) ? answer : (answer as { readonly rows?: unknown } | undefined)?.rows
    if (Array.isArray(rows)) return rows
    throw new InvalidArgumentError(
      `the transaction answered a statement with ${describe(answer)}. A function of your own must resolve with the rows, as a list of objects.`,
    )
  }
}

/** The values in the order in which the text has their placeholders. */
function inOrder(text: unknown, values: unknown): unknown[] {
  return [...(text as string).matchAll(/\$(\d+)/g)].map(([, n]) => (values as unknown[])[Number(n) - 1])
}

/** `E'…'` means the same whatever `standard_conforming_strings` is. */
function literal(value: string | null): string {
  return value === null ? 'NULL' : `E'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
}
