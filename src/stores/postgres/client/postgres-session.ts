/**
 * The session of a connection: what it is to be like, whatever the server, its database and its role were set to for other
 * programs. One statement sets it, where no pooler lends it to others too, and tells what it is like. Pure.
 */

import { StoreRefusedError, StoreUnavailableError } from '../../../core/errors.js'
import { unfit } from '../../../core/values/store-address.js'

/** The settings that calls rely on: with other values, calls would exceed bounds or fail. */
const needed: Readonly<Record<string, string>> = {
  // Who has waited for a lock sees in the next statement what the others have committed.
  default_transaction_isolation: 'read committed',
  // In the text of a list NULL is a value that is missing.
  array_nulls: 'on',
  // What a newer Postgres checks besides would refuse functions that it has run so far.
  'plpgsql.extra_errors': 'none',
}

/** Bounds that were chosen for other statements, as calls have their own; and where the names of functions are looked for. */
const wanted: Readonly<Record<string, string>> = {
  ...{ statement_timeout: '0', lock_timeout: '0', transaction_timeout: '0', idle_session_timeout: '0' },
  exit_on_error: 'off',
  search_path: 'pg_catalog, pg_temp',
}

/** Those that keep every text. SQL_ASCII does not look at the bytes. */
const encodings = ['UTF8', 'SQL_ASCII']

/** The process of the server that a session has. */
export interface Backend {
  readonly pid: number
  /** When the session began, in s on the server's clock: another process may have its number later. Null: a pooler lends it to others too. */
  readonly since: number | null
}

/** The first columns of the answer; then come the values of `needed`. */
type SessionColumns = [
  inRecovery: boolean,
  backend: number,
  since: number | null,
  role: string,
  readOnly: string,
  encoding: string,
  ...values: (string | null)[],
]

/**
 * Ends a process of the server, and waits for its end, at most 2 s. Takes a `Backend`. Returns no row if it has ended
 * before, and false if it has not ended yet. After a failover another server answers: none of its own processes is meant, nor
 * one of another role.
 */
export const endBackend = `SELECT pg_catalog.pg_terminate_backend(pid, 2000) FROM pg_catalog.pg_stat_activity
  WHERE pid OPERATOR(pg_catalog.=) $1 AND backend_start OPERATOR(pg_catalog.<=) pg_catalog.to_timestamp($2)
    AND usename OPERATOR(pg_catalog.=) session_user AND backend_type OPERATOR(pg_catalog.=) 'client backend'`

/**
 * The first statement of a session. `announced`: the process that the server said it would be. A pooler says another, and what
 * is set through it would stay in a session of somebody else.
 */
export function sessionText(announced: number | null | undefined): string {
  // All names have their schema: nothing of the user's may be in the way before the path is set.
  const isOwn = `pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) ${Number(announced ?? 0)}`
  const columns = Object.entries({ ...needed, ...wanted }).map(([name, value]) => {
    // Null: this version of Postgres does not have it, or nobody has set it.
    const current = `pg_catalog.current_setting('${name}', true)`
    return `CASE WHEN ${isOwn} AND ${current} IS NOT NULL THEN pg_catalog.set_config('${name}', '${value}', false) ELSE ${current} END`
  })
  const asked = ['transaction_read_only', 'server_encoding'].map((name) => `pg_catalog.current_setting('${name}')`)
  return `SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.pg_backend_pid(), CASE WHEN ${isOwn} THEN pg_catalog.date_part('epoch', pg_catalog.now()) END, current_user, ${[...asked, ...columns].join(', ')}`
}

/**
 * The process of the session. `where` names the server without secrets.
 *
 * Throws what is wrong with a session that has answered so: `StoreUnavailableError` if it takes no writes, `StoreRefusedError` if
 * its role is set in a way that is not for Millrace, `ConfigError` if the database cannot keep every text.
 */
export function judgeSession(columns: readonly unknown[], where: string): Backend {
  const [inRecovery, pid, since, role, readOnly, encoding, ...values] = columns as SessionColumns
  if (inRecovery)
    throw unavailable(
      `the Postgres at ${where} is a standby and takes no writes: either a failover is under way, or it is the wrong server.`,
    )
  if (readOnly === 'on')
    throw unavailable(
      `the Postgres at ${where} takes no writes of '${role}': 'default_transaction_read_only' is on, for the role, the database or the server. Some hosts turn it on while the disk is full. Otherwise: ALTER ROLE "${role}" SET default_transaction_read_only = off.`,
    )
  if (!encodings.includes(encoding)) throw unfit(misencoded(where, encoding))
  for (const [i, [name, value]] of Object.entries(needed).entries()) {
    const given = values[i]
    if (given === null || given === undefined || given === value) continue
    throw new StoreRefusedError(
      `the Postgres at ${where} has ${name} = '${given}' for '${role}', and Millrace needs '${value}'. In a session of its own it sets that itself, but a pooler stands between. Run: ALTER ROLE "${role}" SET ${name} = '${value}', then RECONNECT in the pooler. If other programs need '${given}', give Millrace a role of its own. Nothing was changed.`,
    )
  }
  return { pid, since }
}

function misencoded(where: string, encoding: string): string {
  return `the database of ${where} has the encoding ${encoding}, in which not every text can be kept. Name one that has UTF8: CREATE DATABASE jobs ENCODING 'UTF8' TEMPLATE template0`
}

function unavailable(text: string): StoreUnavailableError {
  return new StoreUnavailableError(`${text} Nothing was changed.`, { inDoubt: false })
}
