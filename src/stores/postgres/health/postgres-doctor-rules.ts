/** The doctor's rules for a Postgres server: findings from what it reports about itself. Pure. */

import { formatDuration } from '../../../core/values/duration.js'
import type { FsckFinding } from '../../contract/store-health.js'
import { error, ok, warning } from '../../rules/findings.js'
import type { SchemaLook } from '../schema/postgres-schema.js'

/** The facts that the doctor asks the server for. Durations in ms. */
export interface PostgresFacts {
  /** As `server_version_num` has it: 180004. */
  readonly version: number
  readonly said: string
  readonly isReplica: boolean
  readonly isReadOnly: boolean
  readonly synchronousCommit: string
  readonly standbys: string
  /** The standbys, and others, that follow the server at this moment. */
  readonly followers: number
  readonly fsync: string
  readonly autovacuum: string
  readonly connections: number
  readonly mostConnections: number
  /** The transaction with the oldest snapshot in this database; null if there is none, or this role may not see others. */
  readonly oldest: { readonly forMs: number; readonly pid: number; readonly program: string } | null
  /** How long the oldest prepared transaction waits for its end. */
  readonly preparedForMs: number | null
  readonly slots: readonly { readonly name: string; readonly isActive: boolean; readonly bytes: number }[] | null
  readonly schema: string
  /** What the schema has, or why that cannot be read. */
  readonly look: Pick<SchemaLook, 'isThere' | 'lacking' | 'role'> | string
  /** Whether this role may make the schema, or what it lacks. */
  readonly mayMake: boolean
  /** The tables that this role may not read and write. */
  readonly ungranted: number
  /** The rows of the table of jobs; null if the schema is not made yet. */
  readonly rows: { readonly live: number; readonly dead: number } | null
  /** The clock of the server less that of this process, as far as the round trip tells. */
  readonly aheadMs: number
  readonly tripMs: number
  /** Whether a notification arrives; undefined: the address says `listen=none`. */
  readonly hears: boolean | undefined
}

/** The oldest that the tests run on. */
const oldestTried = 150_000
/** Dead rows are not removed while a snapshot is so old. */
const oldSnapshotMs = 300_000
const mostSlotBytes = 1_073_741_824
const mostAheadMs = 1_000
const slowTripMs = 100

export function judgePostgres(facts: PostgresFacts): FsckFinding[] {
  return [
    judgeVersion(facts),
    judgeRole(facts),
    judgeSchema(facts),
    judgeDurability(facts),
    judgeNotifications(facts),
    judgeSnapshots(facts),
    judgeRows(facts),
    judgeSlots(facts),
    judgeConnections(facts),
    judgeClock(facts),
  ]
}

function judgeVersion({ version, said }: PostgresFacts): FsckFinding {
  return version >= oldestTried
    ? ok('version', `PostgreSQL ${said}`)
    : warning('version', `PostgreSQL ${said} is older than any that was tried. Upgrade to PostgreSQL 15 or newer.`)
}

function judgeRole({ isReplica, isReadOnly }: PostgresFacts): FsckFinding {
  if (isReplica)
    return error('role', 'it is a replica, and takes no writes. Name the primary, or all hosts, in the address.')
  if (isReadOnly)
    return error('role', "transactions are read-only here. Set 'default_transaction_read_only' to off for this role.")
  return ok('role', 'takes writes')
}

function judgeSchema({ schema, look, mayMake, ungranted }: PostgresFacts): FsckFinding {
  const what = 'schema'
  if (typeof look === 'string') return error(what, look)
  const { isThere, lacking, role } = look
  const remedy = `Let an administrator run \`millrace migrate --role ${role}\`.`
  if (ungranted > 0) return error(what, `'${role}' may not read and write ${ungranted} of its tables. ${remedy}`)
  if (isThere && lacking.length === 0) return ok(what, `'${schema}' has all that this version of Millrace needs`)
  const missing = isThere
    ? `'${schema}' lacks functions of this version (${lacking.length})`
    : `'${schema}' is not made yet`
  if (mayMake) return ok(what, `${missing}: the first process that opens the store makes it`)
  return error(what, `${missing}, and '${role}' may not make it. ${remedy}`)
}

function judgeDurability({ synchronousCommit, standbys, followers, fsync }: PostgresFacts): FsckFinding {
  const what = 'durability'
  if (fsync !== 'on') return error(what, "'fsync' is off: a crash of the machine may destroy the database. Turn it on.")
  if (synchronousCommit === 'off')
    return warning(
      what,
      "'synchronous_commit' is off: a crash of the server loses what was enqueued or ended in the last moments. Turn it on for this role.",
    )
  const isAlone = standbys === '' || synchronousCommit === 'local'
  if (!isAlone && followers === 0)
    return error(
      what,
      `'synchronous_standby_names' is '${standbys}', and no standby follows this server: each commit waits for one, so no enqueue resolves. Start one, or empty the setting and reload.`,
    )
  const where = isAlone ? 'on disk' : 'on disk and on a standby'
  return ok(what, `a job is ${where} when its enqueue resolves ('synchronous_commit' is ${synchronousCommit})`)
}

function judgeNotifications({ hears }: PostgresFacts): FsckFinding {
  const what = 'notifications'
  if (hears === undefined)
    return warning(
      what,
      'the address says listen=none: idle workers look for jobs, at most once a second, and find them later.',
    )
  if (hears) return ok(what, 'arrive')
  return error(
    what,
    'do not arrive, most likely because a pooler is in the way: ready jobs wait until a worker looks. Add listen=host:port, a direct way to the server, to the address.',
  )
}

function judgeSnapshots({ oldest, preparedForMs }: PostgresFacts): FsckFinding {
  const what = 'transactions'
  const effect = 'Dead rows stay until it ends, and claims get slower.'
  if (preparedForMs !== null && preparedForMs > oldSnapshotMs)
    return warning(
      what,
      `one was prepared ${formatDuration(preparedForMs)} ago and has not ended. ${effect} Find it in pg_prepared_xacts, and end it.`,
    )
  if (oldest !== null && oldest.forMs > oldSnapshotMs)
    return warning(
      what,
      `process ${oldest.pid} ('${oldest.program}') has had one open for ${formatDuration(oldest.forMs)}. ${effect} End it, or SELECT pg_terminate_backend(${oldest.pid}).`,
    )
  return ok(
    what,
    oldest === null ? 'no old one is open' : `the oldest has been open for ${formatDuration(oldest.forMs)}`,
  )
}

function judgeRows({ rows, autovacuum }: PostgresFacts): FsckFinding {
  const what = 'dead rows'
  if (autovacuum !== 'on')
    return error(what, "'autovacuum' is off: they are never removed, and claims get slower and slower. Turn it on.")
  if (rows === null) return ok(what, 'there is no schema yet: the first process that opens the store makes it')
  const { live, dead } = rows
  const text = `${dead} beside ${live} jobs`
  if (dead < 100_000 || dead < 2 * live) return ok(what, text)
  return warning(
    what,
    `${text}: claims have to pass them. An old transaction, or a vacuum that is too slow, keeps them.`,
  )
}

function judgeSlots({ slots }: PostgresFacts): FsckFinding {
  const what = 'replication slots'
  const held = (slots ?? []).filter(({ isActive, bytes }) => !isActive && bytes > mostSlotBytes)
  if (held.length === 0) return ok(what, 'none holds much of the log')
  const named = held.map(({ name, bytes }) => `'${name}' (${Math.round(bytes / 1_048_576)} MB)`).join(', ')
  return warning(
    what,
    `nobody reads from ${named}: the log that they keep fills the disk. Start their readers, or drop them by pg_drop_replication_slot.`,
  )
}

function judgeConnections({ connections, mostConnections }: PostgresFacts): FsckFinding {
  const what = 'connections'
  const text = `${connections} of ${mostConnections} are in use`
  if (connections < mostConnections * 0.9) return ok(what, text)
  return warning(
    what,
    `${text}: new processes may get none. Raise 'max_connections', or put a pooler before the server.`,
  )
}

function judgeClock({ aheadMs, tripMs }: PostgresFacts): FsckFinding {
  const what = 'clock'
  const trip = `a call takes ${tripMs.toFixed(1)} ms`
  if (Math.abs(aheadMs) > mostAheadMs + tripMs)
    return warning(
      what,
      `the server's is ${formatDuration(Math.round(Math.abs(aheadMs)))} ${aheadMs > 0 ? 'ahead of' : 'behind'} that of this machine: delays and schedules follow the server. ${trip}.`,
    )
  if (tripMs > slowTripMs) return warning(what, `${trip}: throughput is limited by the way to the server.`)
  return ok(what, `agrees with that of this machine; ${trip}`)
}
