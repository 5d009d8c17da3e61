/** Opening the queues of a Postgres store, and the numbers by which calls name them. */

import { UnknownQueueError, UnsupportedByStoreError } from '../../../core/errors.js'
import type { QueueSettings, StoredQueue } from '../../contract/queue-settings.js'
import { boundsOf, limitsFrom, limitsText, saidLimits } from '../../rules/limit-rules.js'
import { refuseOtherForm } from '../../rules/queue-form.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { sqlFunction } from '../schema/sql-function.js'

/** Takes names. Returns the rows that there are, as `StoredRow` has them. */
const findQueues = sqlFunction(
  'queues_1',
  'p_names text[]',
  'json',
  `BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_object('qid', qid, 'name', name, 'order', ord, 'paused', paused, 'draining', draining,
    'limits', limits)), '[]') FROM @.queue WHERE name = ANY (p_names));
END`,
)

/**
 * Writes queues, all or none. Takes a list of `{name, order, seen, limits, maxPending, maxCrashes, results, deadAge, deadCount}`;
 * `seen`: the limits that the caller saw, null for a new queue. Returns false, and changes nothing, if one is not as it was seen.
 */
const writeQueues = sqlFunction(
  'write_queues_1',
  'p_queues json',
  'json',
  `DECLARE e record; found_limits text;
BEGIN
  PERFORM pg_advisory_xact_lock(@lock, 1);
  FOR e IN SELECT * FROM json_to_recordset(p_queues) AS x (name text, seen text) LOOP
    found_limits := (SELECT limits FROM @.queue WHERE name = e.name COLLATE "C");
    IF found_limits IS DISTINCT FROM e.seen THEN RETURN to_json(false); END IF;
  END LOOP;
  INSERT INTO @.queue (name, ord, limits, max_pending, crash_limit, results_limit, dead_age_ms, dead_count, run)
    SELECT name, "order", limits, "maxPending", "maxCrashes", results, "deadAge", "deadCount", @.run()
    FROM json_to_recordset(p_queues) AS x (name text, "order" text, limits text, "maxPending" bigint, "maxCrashes" int, results bigint,
      "deadAge" bigint, "deadCount" bigint)
    ON CONFLICT (name) DO UPDATE SET limits = excluded.limits, max_pending = excluded.max_pending, crash_limit = excluded.crash_limit,
      results_limit = excluded.results_limit, dead_age_ms = excluded.dead_age_ms, dead_count = excluded.dead_count;
  RETURN to_json(true);
END`,
)

export const settingsFunctions = [findQueues, writeQueues]

interface StoredRow {
  readonly qid: number
  readonly name: string
  readonly order: 'fifo' | 'lifo'
  readonly paused: boolean
  readonly draining: boolean
  readonly limits: string
}

/** A queue as calls name it. Its number and its order never change. */
export interface NumberedQueue {
  readonly qid: number
  readonly name: string
  readonly order: 'fifo' | 'lifo'
  /** As last seen by this process: how often a queue is buried from matters only to crashes, which look anew. */
  readonly maxCrashes: number
}

export class PostgresQueues {
  readonly #connection: PostgresConnection
  readonly #known = new Map<string, NumberedQueue>()

  constructor(connection: PostgresConnection) {
    this.#connection = connection
  }

  /** See `Store.open`. Another process that opens the same queues at the same moment makes it begin anew. */
  async open(queues: readonly QueueSettings[], { follows }: { readonly follows: boolean }): Promise<StoredQueue[]> {
    for (const settings of queues) refuseUnsupported(settings)
    const names = queues.map(({ name }) => name)
    for (;;) {
      const stored = await this.#find(names)
      const asked = queues.flatMap((settings) => {
        const row = stored.get(settings.name)
        if (row !== undefined) refuseOtherForm(settings.name, { kind: 'plain', order: row.order }, settings)
        if (row !== undefined && follows) return []
        const limits = limitsText(saidLimits(settings.name, limitsFrom(row?.limits), settings))
        return row?.limits === limits ? [] : [writtenQueue(settings, limits, row?.limits ?? null)]
      })
      const isWritten = asked.length === 0 || (await this.#connection.call(writeQueues, [JSON.stringify(asked)]))
      if (isWritten !== true) continue
      const now = asked.length === 0 ? stored : await this.#find(names)
      return names.map((name) => storedQueue(now.get(name)!))
    }
  }

  /** Throws `UnknownQueueError`. */
  async named(names: readonly string[]): Promise<NumberedQueue[]> {
    if (names.some((name) => !this.#known.has(name))) await this.#find(names)
    return names.map((name) => {
      const known = this.#known.get(name)
      if (known === undefined) throw new UnknownQueueError(name, [...this.#known.keys()])
      return known
    })
  }

  async #find(names: readonly string[]): Promise<Map<string, StoredRow>> {
    const rows = (await this.#connection.call(findQueues, [[...new Set(names)]])) as StoredRow[]
    for (const { qid, name, order, limits } of rows)
      this.#known.set(name, { qid, name, order, maxCrashes: boundsOf(limitsFrom(limits)).maxCrashes })
    return new Map(rows.map((row) => [row.name, row]))
  }
}

function writtenQueue({ name, order }: QueueSettings, limits: string, seen: string | null): object {
  const { maxPending = null, maxCrashes, resultsCount = null, dead } = boundsOf(limitsFrom(limits))
  const { ageMs = null, count = null } = dead
  return { name, order, seen, limits, maxPending, maxCrashes, results: resultsCount, deadAge: ageMs, deadCount: count }
}

function storedQueue({ name, order, paused, draining, limits }: StoredRow): StoredQueue {
  return { name, kind: 'plain', order, exclusive: 'id', shards: 1, limits: limitsFrom(limits), paused, draining }
}

function refuseUnsupported({ name, kind, throttle, maxRunning, fifo }: QueueSettings): void {
  const refused =
    kind === 'ordered'
      ? 'ordered queues'
      : throttle !== undefined
        ? 'throttles'
        : maxRunning !== undefined && maxRunning !== 'none'
          ? 'maxRunning'
          : fifo
            ? 'fifo by group'
            : undefined
  if (refused !== undefined)
    throw new UnsupportedByStoreError('postgres', `${refused} (queue '${name}')`, 'Use the SQLite or the Redis store.')
}
