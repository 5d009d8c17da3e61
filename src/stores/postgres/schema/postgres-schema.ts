/** The schema of a Postgres store: made by the first `open`, in one transaction, and checked by every other. */

import { StoreVersionError } from '../../../core/errors.js'
import { clock } from './postgres-clock.js'
import { tables } from './postgres-tables.js'
import { creationOf, inSchema, quoted, type SqlFunction } from './sql-function.js'

/** Raised with each change of the tables. */
const schemaVersion = 1

/** All that an empty schema needs, as one text of several statements. */
export function schemaText(schema: string, functions: readonly SqlFunction[]): string {
  const made = [
    `CREATE SCHEMA IF NOT EXISTS ${quoted(schema)};`,
    inSchema(tables, schema),
    inSchema(clock, schema),
    ...functions.map((one) => creationOf(one, schema)),
    // Fences follow the clock, so that they grow even if the schema is made anew.
    inSchema(`SELECT setval('@.fence_seq', @.us());`, schema),
    inSchema(`INSERT INTO @.meta VALUES ('version', '${schemaVersion}');`, schema),
  ]
  return made.join('\n')
}

/** The part of a connection that this room needs. */
interface SchemaConnection {
  /** The rows of one statement, or of the last of several without values, which are one transaction. */
  query(text: string, values?: readonly unknown[]): Promise<unknown[][]>
}

/**
 * Makes the schema unless it is there, and adds functions that it lacks: those of an older version of Millrace stay, so that its
 * processes go on. Several processes may do so at once.
 *
 * Throws `StoreVersionError` if a newer version of Millrace has changed its tables.
 */
export async function ensureSchema(
  connection: SchemaConnection,
  schema: string,
  functions: readonly SqlFunction[],
): Promise<void> {
  let version = await versionIn(connection, schema)
  if (version === undefined) {
    await connection.query(makeOnce(schema, functions))
    version = await versionIn(connection, schema)
  }
  if (version !== undefined && version > schemaVersion)
    throw new StoreVersionError(
      `the schema '${schema}' was made by a newer version of Millrace (it has version ${version}, this one knows ${schemaVersion}). Upgrade this process; nothing was written.`,
    )
  const there = (await connection.query('SELECT proname FROM pg_proc WHERE pronamespace = $1::regnamespace', [
    quoted(schema),
  ])) as [string][]
  const names = new Set(there.map(([name]) => name))
  const lacking = functions.filter(({ name }) => !names.has(name))
  if (lacking.length === 0) return
  const lock = inSchema('SELECT pg_advisory_xact_lock(@lock, 0);', schema)
  await connection.query([lock, ...lacking.map((one) => creationOf(one, schema))].join('\n'))
}

async function versionIn(connection: SchemaConnection, schema: string): Promise<number | undefined> {
  const [found] = await connection.query('SELECT to_regclass($1) IS NOT NULL', [`${quoted(schema)}.meta`])
  if (found?.[0] !== true) return undefined
  const [row] = await connection.query(inSchema("SELECT value FROM @.meta WHERE name = 'version'", schema))
  return Number(row?.[0])
}

/** The lock comes first: who waits for it must look once more in the next statement. */
function makeOnce(schema: string, functions: readonly SqlFunction[]): string {
  return `${inSchema('SELECT pg_advisory_xact_lock(@lock, 0);', schema)}
DO $do$ BEGIN
  IF to_regclass('${quoted(schema)}.meta') IS NULL THEN
    EXECUTE $made$${schemaText(schema, functions)}$made$;
  END IF;
END $do$;`
}
