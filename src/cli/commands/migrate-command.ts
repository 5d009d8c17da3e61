/** The command `migrate`: makes the tables and functions that a store needs in a database, or prints the SQL that does. */

import type { Command } from 'commander'
import type { Mill } from '../../mill/mill.js'
import type { Migrated, MigrationRoles } from '../../stores/contract/provision.js'
import { eachFlag } from '../flags.js'
import { type MillFlags, millCommand, withJson, withMill } from '../mill-command.js'
import { printable } from '../printable.js'
import { counted } from '../terminal/figures.js'
import type { Terminal } from '../terminal/terminal.js'

type MigrateFlags = MillFlags & {
  readonly sql?: boolean
  readonly role?: readonly string[]
  readonly enqueueRole?: readonly string[]
}

export function addMigrate(program: Command): void {
  const command = millCommand(
    program,
    'migrate',
    'Make the tables and functions that a Postgres store needs, and grant the rights to use them',
  )
    .option('--sql', 'change nothing; print the SQL that an administrator runs instead')
    .option('--role <role>', 'grant what mills and workers need to this role; may be repeated', eachFlag)
    .option(
      '--enqueue-role <role>',
      'grant to this role that it may enqueue by SQL, and nothing else; may be repeated',
      eachFlag,
    )
    .addHelpText(
      'after',
      `
  A process whose role may make tables needs none of this: it makes what is lacking when it opens the store. Roles must exist.
  It adds what this version of Millrace lacks and keeps the rest, so processes of an older version go on. Repeating it
  changes nothing. Other stores need no migration.

Examples:
  $ millrace migrate --role app
  $ millrace migrate --sql --role app --enqueue-role shop | psql "$ADMIN_URL"`,
    )
  withJson(command, 'print {"store","schema","isNew","functions","roles"}; with --sql {"store","sql"}').action(
    (flags: MigrateFlags) => withMill(flags, (mill, terminal) => migrated(mill, terminal, flags)),
  )
}

async function migrated(mill: Mill, terminal: Terminal, flags: MigrateFlags): Promise<void> {
  const store = mill.store.text
  const { migration, provision } = await mill.adminParts.look()
  const roles = { workers: flags.role ?? [], enqueuers: flags.enqueueRole ?? [] }
  if (migration === undefined) {
    const remedy =
      provision === undefined ? 'it makes what it needs when it is opened' : '`millrace queues create` makes its queues'
    const text = `${store} needs no migration: ${remedy}.`
    // Of what is piped into a client of SQL, a comment is the kindest.
    terminal.print({ store, ...(flags.sql ? { sql: '' } : { functions: [], roles: [] }) }, () => [
      flags.sql ? `-- ${text}` : text,
    ])
    return
  }
  if (flags.sql) {
    const sql = migration.sql(roles)
    terminal.print({ store, sql }, () => [sql.trimEnd()])
    return
  }
  const done = await migration.migrate(roles)
  terminal.print({ store, ...done, roles: [...roles.workers, ...roles.enqueuers] }, () => [
    `${store}: ${madeText(done)}`,
    ...grantLines(roles),
  ])
}

function madeText({ schema, isNew, functions }: Migrated): string {
  const count = counted(functions.length, 'function')
  if (isNew) return `made the schema '${schema}', with its tables and ${count}.`
  if (functions.length === 0) return `the schema '${schema}' has all that this version of Millrace needs.`
  return `added ${count} to the schema '${schema}'.`
}

function grantLines({ workers, enqueuers }: MigrationRoles): string[] {
  return [
    ...workers.map((role) => `role '${printable(role)}' may run mills and workers.`),
    ...enqueuers.map((role) => `role '${printable(role)}' may enqueue by SQL.`),
  ]
}
