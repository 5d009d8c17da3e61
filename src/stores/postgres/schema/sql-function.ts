/**
 * A function in the database. Its text stands beside its caller, and says what it takes and returns. In a text, `@.` is the
 * store's schema, and `@lock` the number that its advisory locks begin with. Pure.
 */

import { createHash } from 'node:crypto'

export interface SqlFunction {
  /** The number at its end counts its versions: processes of two versions of Millrace work side by side. */
  readonly name: string
  readonly takes: string
  readonly returns: string
  readonly body: string
  /** With the rights of its owner, for users who may not touch the tables. */
  readonly isForAll?: boolean
}

/** Where functions are called: on the store's own connection, or in a transaction of a user. */
export interface FunctionCaller {
  /** Resolves with the value that the function returns. */
  call(called: SqlFunction, values: readonly unknown[]): Promise<unknown>
}

/**
 * Plans are made once, perhaps while the tables are empty, and kept. Without these settings such a plan would read all of
 * a queue for a few ids once it has grown.
 */
const planned =
  'SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off'

/** `body`: PL/pgSQL, from `DECLARE` or `BEGIN` on. */
export function sqlFunction(name: string, takes: string, returns: string, body: string): SqlFunction {
  return { name, takes, returns, body }
}

/** The statement that makes the function in this schema. */
export function creationOf({ name, takes, returns, body, isForAll }: SqlFunction, schema: string): string {
  // Nobody may put something of his own into the way of names.
  const rights = isForAll ? 'SECURITY DEFINER SET search_path = pg_catalog, pg_temp' : ''
  return inSchema(
    `CREATE OR REPLACE FUNCTION @.${name}(${takes}) RETURNS ${returns} LANGUAGE plpgsql ${rights} ${planned} AS $fn$\n${body}\n$fn$;`,
    schema,
  )
}

/** The text with the names of this schema. */
export function inSchema(text: string, schema: string): string {
  return text.replaceAll('@.', `${quoted(schema)}.`).replaceAll('@lock', String(lockOf(schema)))
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Advisory locks are those of the whole database: each schema has numbers of its own. */
function lockOf(schema: string): number {
  return createHash('sha256').update(schema).digest().readInt32BE(0)
}
