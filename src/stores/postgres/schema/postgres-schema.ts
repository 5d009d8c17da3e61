/** The schema of a Postgres store. The first process that opens the store makes it, or an administrator does, in one transaction. */

import { hasCode, InvalidArgumentError, StoreRefusedError, StoreVersionError } from '../../../core/errors.js'
import { messageOf } from '../../../core/messages/describe.js'
import type { Migrated, MigrationRoles } from '../../contract/provision.js'
import { tableChanges, tables } from './postgres-tables.js'
import { inSchema, makingOf, quoted, type SqlFunction, versionOfSource } from './sql-function.js'

/** The version of a schema whose tables have these changes. */
const versionWith = (changes: readonly string[]) => 1 + changes.length

/** What a run counts for each timeline. A start in ms is less, and the sum is a safe whole number. */
const timelineStep = 1e13

/**
 * The clock: two functions of the database, which a harness replaces. No other text reads a clock. `us()`: the instant in µs
 * since 1970, on the clock of the server. `run()`: the present run of the server, which `spareFrom` reads: when it was started, in
 * ms, and the timeline, which is another once a standby has been promoted. A service that does not tell its timeline restarts a standby
 * that it promotes.
 */
const clock = `
CREATE FUNCTION @.us() RETURNS bigint LANGUAGE sql VOLATILE AS $fn$
  SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $fn$;
CREATE FUNCTION @.run() RETURNS bigint LANGUAGE plpgsql STABLE AS $fn$
DECLARE started bigint := (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint;
BEGIN
  RETURN started + ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint % 900 * ${timelineStep};
EXCEPTION WHEN OTHERS THEN RETURN started;
END $fn$;
`

/**
 * From when on leases are spared for as long as one lasts, as their holders could not renew them while the server was away: from the
 * start of the server on. A standby that was promoted was started long before, and nobody knows when it took over: from `now` on.
 */
export function spareFrom(run: number, before: number, now: number): number {
  const isPromoted = Math.floor(run / timelineStep) !== Math.floor(before / timelineStep)
  return isPromoted ? now : run % timelineStep
}

/**
 * Makes all that the schema lacks, as one text of several statements, which are to be one transaction. Functions of other
 * versions of Millrace stay, so that their processes go on. `changes`: `tableChanges`, unless a test says otherwise.
 *
 * The lock comes first: who waits for it must look once more in the next statement.
 */
export function schemaText(schema: string, functions: readonly SqlFunction[], changes = tableChanges): string {
  const name = quoted(schema)
  const version = `(SELECT value::int FROM @.meta WHERE name = 'version')`
  const parts = [
    `IF to_regnamespace('${name}') IS NULL THEN CREATE SCHEMA ${name}; END IF;`,
    `IF to_regclass('${name}.meta') IS NULL THEN EXECUTE $made$`,
    tables,
    clock,
    // Fences follow the clock, so that they grow even if the schema is made anew.
    `SELECT setval('@.fence_seq', @.us());`,
    `INSERT INTO @.meta VALUES ('version', '${versionWith(tableChanges)}');`,
    '$made$; END IF;',
    `IF ${version} > ${versionWith(changes)} THEN`,
    `  RAISE EXCEPTION 'the schema was made by a newer version of Millrace. Upgrade this one; nothing was written.';`,
    'END IF;',
    ...changes.map(
      (change, i) => `IF ${version} = ${i + 1} THEN EXECUTE $made$
${change}
UPDATE @.meta SET value = '${i + 2}' WHERE name = 'version';
$made$; END IF;`,
    ),
    ...functions.map((one) => makingOf(one, schema)),
  ]
  // A bound that was chosen for ordinary statements would end this one each time; through a pooler the session has it.
  const unbound = `SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true);`
  return inSchema(
    `${unbound}\nSELECT pg_advisory_xact_lock(@lock, 0);\nDO $do$ BEGIN\n${parts.join('\n')}\nEND $do$;`,
    schema,
  )
}

/** The same and the grants, as a transaction that somebody else runs. */
export function migrationText(schema: string, functions: readonly SqlFunction[], roles: MigrationRoles): string {
  return `BEGIN;\n${schemaText(schema, functions)}\n${grantsTo(roles, quoted(schema))}COMMIT;\n`
}

/** A role that only enqueues may call one function, which runs with the rights of its owner. */
function grantsTo({ workers, enqueuers }: MigrationRoles, name: string): string {
  const rights = [
    `USAGE ON SCHEMA ${name}`,
    `SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${name}`,
    `USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA ${name}`,
    `EXECUTE ON ALL FUNCTIONS IN SCHEMA ${name}`,
  ]
  const few = [rights[0]!, `EXECUTE ON FUNCTION ${name}.enqueue`]
  const to = (role: string, what: readonly string[]) => what.map((one) => `GRANT ${one} TO ${quoted(role)};\n`)
  return [...workers.flatMap((role) => to(role, rights)), ...enqueuers.flatMap((role) => to(role, few))].join('')
}

/** The part of a connection that this room needs. */
interface SchemaConnection {
  /** The rows of one statement, or of the last of several without values, which are one transaction. */
  query(text: string, values?: readonly unknown[]): Promise<unknown[][]>
}

/**
 * Makes the schema unless it is there, and adds functions that it lacks. Several processes may do so at once; where all is
 * there, nothing is locked and nothing made.
 *
 * Throws `StoreVersionError` if a newer version of Millrace has changed its tables, and `StoreRefusedError` if something is
 * lacking that this role may not make.
 */
export async function ensureSchema(
  connection: SchemaConnection,
  schema: string,
  functions: readonly SqlFunction[],
  changes = tableChanges,
): Promise<void> {
  const seen = await lookAt(connection, schema, functions, changes)
  if (seen.isThere && seen.lacking.length === 0) return
  await complete(connection, schema, seen, schemaText(schema, functions, changes))
}

/** See `Migration.migrate`. */
export async function migrateSchema(
  connection: SchemaConnection,
  schema: string,
  functions: readonly SqlFunction[],
  roles: MigrationRoles,
): Promise<Migrated> {
  const seen = await lookAt(connection, schema, functions)
  const unknown = await connection.query(
    'SELECT name FROM unnest($1::text[]) AS x (name) WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)',
    [[...roles.workers, ...roles.enqueuers]],
  )
  if (unknown.length > 0)
    throw new InvalidArgumentError(
      `there is no role '${unknown[0]![0]}' on this server. Make it first: CREATE ROLE ${quoted(String(unknown[0]![0]))} LOGIN. Nothing was changed.`,
    )
  await complete(connection, schema, seen, `${schemaText(schema, functions)}\n${grantsTo(roles, quoted(schema))}`)
  return { schema, isNew: !seen.isThere, functions: seen.lacking }
}

export interface SchemaLook {
  readonly isThere: boolean
  /** The names of the functions that are lacking, and `tables` if they are of an older version. */
  readonly lacking: readonly string[]
  /** As whom the server sees this process. */
  readonly role: string
}

/** Asks only the catalog, which everybody may, before it reads the version. Throws as `ensureSchema` does. */
export async function lookAt(
  connection: SchemaConnection,
  schema: string,
  functions: readonly SqlFunction[],
  changes = tableChanges,
): Promise<SchemaLook> {
  const [[isThere, found, role]] = (await connection.query(
    `SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'meta' AND relnamespace = s),
      (SELECT json_object_agg(proname, coalesce(${versionOfSource}, 0)) FROM pg_proc WHERE pronamespace = s), current_user
      FROM to_regnamespace($1) AS s`,
    [quoted(schema)],
  )) as [[boolean, Record<string, number> | null, string]]
  const lacking = functions.filter(({ name, forUsers }) => (found?.[name] ?? -1) < (forUsers?.version ?? 0))
  const seen = { isThere, lacking: lacking.map(({ name }) => name), role }
  if (!isThere) return seen
  const [version, known] = [await versionOf(connection, schema, seen), versionWith(changes)]
  if (version > known)
    throw new StoreVersionError(
      `the schema '${schema}' was made by a newer version of Millrace (it has version ${version}, this one knows ${known}). Upgrade this process; nothing was written.`,
    )
  return version === known ? seen : { ...seen, lacking: ['tables', ...seen.lacking] }
}

async function versionOf(connection: SchemaConnection, schema: string, seen: SchemaLook): Promise<number> {
  const [row] = await connection
    .query(inSchema("SELECT value FROM @.meta WHERE name = 'version'", schema))
    .catch((error: unknown) => {
      throw rightMissing(error, schema, { ...seen, lacking: [] })
    })
  return Number(row?.[0])
}

async function complete(connection: SchemaConnection, schema: string, seen: SchemaLook, text: string): Promise<void> {
  try {
    await connection.query(text)
  } catch (error) {
    if (hasCode(error, 'store-refused')) throw rightMissing(error, schema, seen)
    // Somebody of a newer version may have been quicker.
    await lookAt(connection, schema, [])
    throw error
  }
}

/** The error, with what an administrator can do about it. */
function rightMissing(error: unknown, schema: string, { isThere, lacking, role }: SchemaLook): unknown {
  if (!hasCode(error, 'store-refused')) return error
  const what = !isThere
    ? `the schema '${schema}' is not made yet, and the role '${role}' may not make it`
    : lacking.length > 0
      ? `the schema '${schema}' is older than this version of Millrace, and the role '${role}' may not add what it lacks (${lacking.slice(0, 3).join(', ')}${lacking.length > 3 ? ', …' : ''})`
      : `the role '${role}' may not use the schema '${schema}'`
  return new StoreRefusedError(
    `${what}. An administrator runs \`millrace migrate --role ${role}\`, or the SQL that \`millrace migrate --sql --role ${role}\` prints. Nothing was changed. (${messageOf(error)})`,
  )
}
