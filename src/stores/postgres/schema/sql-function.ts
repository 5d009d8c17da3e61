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
  /** Whether it only reads: all its statements then see the tables at one moment, that of the call. */
  readonly onlyReads?: true
  /**
   * Present if users call the function. Its name then has no number: this is its version, and a newer one replaces it. It has
   * the rights of its owner, because its callers may not touch the tables. An administrator names those who may call it.
   */
  readonly forUsers?: { readonly version: number }
}

/** Where functions are called: on the store's own connection, or in a transaction of a user. */
export interface FunctionCaller {
  /**
   * Resolves with the value that the function returns. `isBrief`: it may be one of many that wait for somebody else; on the store's own
   * connection each try of it waits in turn and briefly, so that other calls are not kept by all of them.
   */
  call(called: SqlFunction, values: readonly unknown[], isBrief?: boolean): Promise<unknown>
}

/**
 * Plans are made once, perhaps while the tables are empty, and kept. Without these settings such a plan would read all of
 * a queue for a few ids once it has grown. For the same reason functions look for ids with `qid + 0 = …`, which
 * leaves only the index of ids; ask by `(SELECT …) IS NULL` what `NOT EXISTS` might answer from a hash of the whole table; and
 * compare an indexed column with a variable, as the clock is asked anew for each row.
 */
const planned =
  'SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off SET enable_sort = off'

/** `body`: PL/pgSQL, from `DECLARE` or `BEGIN` on. */
export function sqlFunction(name: string, takes: string, returns: string, body: string): SqlFunction {
  return { name, takes, returns, body }
}

/** Like `sqlFunction`, for a function that changes nothing, and whose statements must agree with each other. */
export function readFunction(name: string, takes: string, returns: string, body: string): SqlFunction {
  return { name, takes, returns, body, onlyReads: true }
}

/** The statements that make the function, unless it is there. For the body of a block of PL/pgSQL. */
export function makingOf({ name, takes, returns, body, onlyReads, forUsers }: SqlFunction, schema: string): string {
  // Nobody may put something of his own into the way of names.
  const rights = forUsers === undefined ? '' : 'SECURITY DEFINER SET search_path = pg_catalog, pg_temp'
  const volatility = onlyReads ? 'STABLE' : 'VOLATILE'
  const first = forUsers === undefined ? '' : `-- version ${forUsers.version}\n`
  const current = forUsers === undefined ? '' : ` AND ${versionOfSource} >= ${forUsers.version}`
  return inSchema(
    `IF NOT EXISTS (SELECT FROM pg_proc WHERE pronamespace = '@.'::regnamespace AND proname = '${name}'${current}) THEN EXECUTE $made$
CREATE OR REPLACE FUNCTION @.${name}(${takes}) RETURNS ${returns} LANGUAGE plpgsql ${volatility} ${rights} ${planned} AS $fn$
${first}${body}
$fn$;
${
  forUsers === undefined
    ? ''
    : `REVOKE EXECUTE ON FUNCTION @.${name} FROM PUBLIC;
`
}$made$; END IF;`.replace("'@.'", `'${quoted(schema)}'`),
    schema,
  )
}

/** Of a row of `pg_proc`; null if its name says which version it is. */
export const versionOfSource = `substring(left(prosrc, 99) FROM '-- version ([0-9]+)')::int`

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
