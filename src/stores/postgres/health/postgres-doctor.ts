/** The examination of a Postgres server: one statement asks what it knows about itself, and a notification is sent to be heard. */

import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from '../../../core/messages/describe.js'
import { systemClock } from '../../../core/platform/clock.js'
import type { FsckFinding } from '../../contract/store-health.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import type { PostgresListener } from '../client/postgres-listener.js'
import { lookAt } from '../schema/postgres-schema.js'
import type { SqlFunction } from '../schema/sql-function.js'
import { judgePostgres, type PostgresFacts } from './postgres-doctor-rules.js'

/** How long a notification may take. */
const hearMs = 1_000

/** Takes the schema. Others' transactions are seen by a role of `pg_read_all_stats`; without it they count as none. */
const asked = `SELECT json_build_object(
  'version', current_setting('server_version_num')::int, 'said', current_setting('server_version'), 'isReplica', pg_is_in_recovery(),
  'isReadOnly', current_setting('transaction_read_only') = 'on', 'synchronousCommit', current_setting('synchronous_commit'),
  'standbys', current_setting('synchronous_standby_names'), 'fsync', current_setting('fsync'), 'autovacuum', current_setting('autovacuum'),
  'followers', (SELECT count(*) FROM pg_stat_replication),
  'connections', (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' OR backend_type IS NULL),
  'mostConnections', current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
  'oldest', (SELECT json_build_object('forMs', extract(epoch FROM now() - xact_start) * 1000, 'pid', pid, 'program', application_name)
    FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database() ORDER BY xact_start LIMIT 1),
  'preparedForMs', (SELECT extract(epoch FROM max(now() - prepared)) * 1000 FROM pg_prepared_xacts WHERE database = current_database()),
  'slots', CASE WHEN NOT pg_is_in_recovery() THEN (SELECT json_agg(json_build_object('name', slot_name, 'isActive', active,
    'bytes', pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn))) FROM pg_replication_slots WHERE restart_lsn IS NOT NULL) END,
  'mayMake', CASE WHEN to_regnamespace(quote_ident($1)) IS NULL THEN has_database_privilege(current_database(), 'CREATE') ELSE has_schema_privilege($1, 'CREATE') END,
  'ungranted', (SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident($1)) AND relkind = 'r' AND NOT (has_table_privilege(oid, 'SELECT')
    AND has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE'))),
  'rows', (SELECT json_build_object('live', n_live_tup, 'dead', n_dead_tup) FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = 'job'))`

export class PostgresDoctor {
  readonly #connection: PostgresConnection
  readonly #listener: PostgresListener
  readonly #functions: readonly SqlFunction[]
  readonly #waiting = new Set<() => void>()
  #listening: Promise<void> | undefined

  constructor(connection: PostgresConnection, listener: PostgresListener, functions: readonly SqlFunction[]) {
    this.#connection = connection
    this.#listener = listener
    this.#functions = functions
  }

  /** See `StoreHealth.examine`. Throws as the connection does. */
  async examine(): Promise<FsckFinding[]> {
    const now = 'SELECT extract(epoch FROM clock_timestamp()) * 1000'
    // Connects.
    await this.#connection.query(now, [])
    const sentAt = systemClock.mono()
    const wallAt = systemClock.now()
    const [[serverAt]] = (await this.#connection.query(now, [])) as [[number]]
    const tripMs = systemClock.mono() - sentAt
    const aheadMs = Number(serverAt) - wallAt - tripMs / 2
    const [[facts]] = (await this.#connection.query(asked, [this.#connection.schema])) as [[PostgresFacts]]
    const { schema } = this.#connection
    const look = await lookAt(this.#connection, schema, this.#functions).catch((error: unknown) => messageOf(error))
    return judgePostgres({ ...facts, schema, look, tripMs, aheadMs, hears: await this.#hears() })
  }

  async #hears(): Promise<boolean | undefined> {
    if (this.#listener.isDeaf) return undefined
    const channel = `${this.#connection.schema} doctor`.slice(0, 63)
    const ear = (said?: string) => {
      if (said === channel) for (const heard of this.#waiting) heard()
    }
    this.#listening ??= this.#listener.listen(channel, ear)
    await this.#listening
    const { promise, resolve } = deferred()
    this.#waiting.add(resolve)
    try {
      await this.#connection.query('SELECT pg_notify($1, $2)', [channel, ''])
      return await Promise.race([promise.then(() => true), delay(hearMs, false)])
    } finally {
      this.#waiting.delete(resolve)
    }
  }
}

function deferred() {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
