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

/** By the method that a client has and none of those before it. */
const clients: readonly (readonly [method: string, send: (tx: Methods) => Method])[] = [
  // postgres.js: the `sql` of `sql.begin()`.
  ['unsafe', (tx) => (text, values) => tx['unsafe']!(text, values)],
  // Prisma: the client that `$transaction()` hands over.
  ['$queryRawUnsafe', (tx) => (text, values) => tx['$queryRawUnsafe']!(text, ...(values as unknown[]))],
  // Kysely takes queries that were compiled elsewhere.
  [
    'executeQuery',
    (tx) => (sql, parameters) =>
      tx['executeQuery']!({
        ...{ sql, parameters, queryId: { queryId: 'millrace' } },
        query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
      }),
  ],
  // Knex numbers its own placeholders.
  ['raw', (tx) => (text, values) => tx['raw']!((text as string).replace(/\$\d+/g, '?'), inOrder(text, values))],
  // Drizzle takes a text without parameters, or an object of its own making.
  [
    'select',
    (tx) => (text, values) =>
      tx['execute']!((text as string).replace(/\$(\d+)/g, (_, n) => literal((values as string[])[n - 1] ?? null))),
  ],
  // pg, TypeORM's manager and its query runner, PGlite.
  ['query', (tx) => (text, values) => tx['query']!(text, values)],
]

/** Throws `InvalidArgumentError` for anything that is no transaction of a known client, and no function. */
export function executorOf(tx: UserConnection): UserExecutor {
  const methods = (tx ?? {}) as Methods
  const known = clients.find(([method]) => typeof methods[method] === 'function')
  const send = known?.[1](methods) ?? (typeof tx === 'function' ? (tx as Method) : undefined)
  if (send === undefined)
    throw new InvalidArgumentError(
      `expected a transaction of pg, postgres.js, Drizzle, Kysely, TypeORM, Knex or Prisma, or for any other client a function (sql, params) => rows; got ${describe(tx)}.`,
    )
  return async (text, values) => {
    const answer = await send.call(tx, text, [...values])
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
