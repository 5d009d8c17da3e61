/** Opening the queues of a Postgres store, and the numbers by which calls name them. */

import { UnknownQueueError, UnsupportedByStoreError } from '../../../core/errors.js'
import type { QueueLimits } from '../../../core/queue/queue-limits.js'
import type { QueueSettings, StoredQueue } from '../../contract/queue-settings.js'
import { type QueueSettingsRow, storedQueue } from '../../rows/queue-row.js'
import { boundsOf, changedLimits, limitsFrom, limitsText, saidLimits } from '../../rules/limit-rules.js'
import { shardOf } from '../../rules/payloads.js'
import { refuseOtherForm } from '../../rules/queue-form.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { sqlFunction } from '../schema/sql-function.js'

/** Takes names. Returns the rows that there are, shard by shard, as `StoredRow` has them. */
const findQueues = sqlFunction(
  'queues_1',
  'p_names text[]',
  'json',
  `BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_object('qid', qid, 'name', name, 'shard', shard, 'shards', shards, 'resharding', resharding,
    'kind', kind, 'ord', ord, 'exclusive', exclusive, 'merge', merge, 'paused', paused::int, 'draining', draining::int, 'limits', limits)
    ORDER BY shard), '[]') FROM @.queue WHERE name = ANY (p_names));
END`,
)

/**
 * Writes queues, all or none. Takes a list of `{name, kind, ord, exclusive, merge, shards, seen, limits, maxPending, maxCrashes,
 * results, deadAge, deadCount}`; `seen`: the limits that the caller saw, null for a new queue; `shards`: of a new queue. Returns
 * false, and changes nothing, if one is not as it was seen.
 */
const writeQueues = sqlFunction(
  'write_queues_1',
  'p_queues json',
  'json',
  `DECLARE e record; found_limits text;
BEGIN
  PERFORM pg_advisory_xact_lock(@lock, 1);
  FOR e IN SELECT * FROM json_to_recordset(p_queues) AS x (name text, seen text) LOOP
    found_limits := (SELECT limits FROM @.queue WHERE name = e.name COLLATE "C" ORDER BY shard LIMIT 1);
    IF found_limits IS DISTINCT FROM e.seen THEN RETURN to_json(false); END IF;
  END LOOP;
  FOR e IN SELECT * FROM json_to_recordset(p_queues) AS x (name text, kind text, ord text, exclusive text, merge text, shards int, seen text,
      limits text, "maxPending" bigint, "maxCrashes" int, results bigint, "deadAge" bigint, "deadCount" bigint) LOOP
    IF e.seen IS NULL THEN
      INSERT INTO @.queue (name, shard, shards, kind, ord, exclusive, run)
        SELECT e.name, shard, e.shards, e.kind, e.ord, e.exclusive, @.run() FROM generate_series(0, e.shards - 1) shard;
    END IF;
    UPDATE @.queue SET merge = coalesce(e.merge, merge), limits = e.limits, max_pending = e."maxPending", crash_limit = e."maxCrashes",
      results_limit = e.results, dead_age_ms = e."deadAge", dead_count = e."deadCount" WHERE name = e.name COLLATE "C";
  END LOOP;
  RETURN to_json(true);
END`,
)

/** Takes nothing. Returns the names of all queues, in the order of their bytes. */
const queueNames = sqlFunction(
  'queue_names_1',
  '',
  'json',
  `BEGIN RETURN (SELECT coalesce(json_agg(name ORDER BY name), '[]') FROM (SELECT DISTINCT name FROM @.queue) q); END`,
)

export const settingsFunctions = [queueNames, findQueues, writeQueues]

/** A row of `queue`, as far as it was asked for. */
type StoredRow = Pick<
  QueueSettingsRow,
  | ('qid' | 'name' | 'shard' | 'shards' | 'resharding' | 'kind' | 'ord')
  | ('exclusive' | 'merge' | 'paused' | 'draining' | 'limits')
>

/** A queue as calls name it, or a shard of an ordered one. Its number and its form never change. */
export interface NumberedQueue
  extends Pick<
    QueueSettingsRow,
    'qid' | 'name' | 'shard' | 'shards' | 'resharding' | 'kind' | 'exclusive' | 'merge' | 'limits'
  > {
  readonly order: 'fifo' | 'lifo'
  /** As last seen by this process: how often a queue is buried from matters only to crashes, which look anew. */
  readonly maxCrashes: number
}

/** The shards of a queue as last seen by this process; a plain queue has one. `leaving`: those that a reshard empties. */
export interface QueueShards {
  readonly shards: readonly NumberedQueue[]
  readonly leaving: readonly NumberedQueue[]
}

export class PostgresQueues {
  readonly #connection: PostgresConnection
  readonly #known = new Map<string, QueueShards>()

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
        if (row !== undefined)
          refuseOtherForm(settings.name, { kind: row.kind, order: row.ord, exclusive: row.exclusive }, settings)
        if (row !== undefined && follows) return []
        const limits = limitsText(saidLimits(settings.name, limitsFrom(row?.limits), settings))
        const { merge = row?.merge } = settings
        return row?.limits === limits && row.merge === merge
          ? []
          : [writtenQueue(settings, limits, row?.limits ?? null)]
      })
      const isWritten = asked.length === 0 || (await this.#connection.call(writeQueues, [JSON.stringify(asked)]))
      if (isWritten !== true) continue
      const now = asked.length === 0 ? stored : await this.#find(names)
      return names.map((name) => storedQueue(now.get(name)! as QueueSettingsRow, undefined))
    }
  }

  /** The only or first shard of each queue. Throws `UnknownQueueError`. */
  async named(names: readonly string[]): Promise<NumberedQueue[]> {
    return (await this.sharded(names)).map(({ shards }) => shards[0]!)
  }

  /** Throws `UnknownQueueError`. */
  async sharded(names: readonly string[]): Promise<QueueShards[]> {
    if (names.some((name) => !this.#known.has(name))) await this.#find(names)
    return names.map((name) => {
      const known = this.#known.get(name)
      if (known === undefined) throw new UnknownQueueError(name, [...this.#known.keys()])
      return known
    })
  }

  /** As it is now. Throws `UnknownQueueError`. */
  async current(name: string): Promise<QueueShards> {
    const [known] = await this.sharded([name])
    if (known!.shards[0]?.kind === 'plain') return known!
    await this.refresh([name])
    return (await this.sharded([name]))[0]!
  }

  /** The shards that hold these ids. Throws `UnknownQueueError`. */
  async holding(ids: readonly { readonly queue: string; readonly id: string }[]): Promise<NumberedQueue[]> {
    const of = await this.sharded(ids.map(({ queue }) => queue))
    return of.map(({ shards }, i) => shards[shardOf(ids[i]!.id, shards.length)]!)
  }

  /** The places of those items that were missed where they were looked for, because a reshard has moved their ids since. */
  async movedSince(
    before: readonly NumberedQueue[],
    items: readonly { readonly queue: string; readonly id: string }[],
    isMissed: (place: number) => boolean,
  ): Promise<number[]> {
    const missed = [...items.keys()].filter((i) => before[i]!.kind === 'ordered' && isMissed(i))
    if (missed.length === 0) return []
    await this.refresh(missed.map((i) => items[i]!.queue))
    const now = await this.holding(missed.map((i) => items[i]!))
    return missed.filter((i, n) => now[n]!.qid !== before[i]!.qid)
  }

  /** All queues of the store, by name. */
  async stored(): Promise<StoredQueue[]> {
    const names = (await this.#connection.call(queueNames, [])) as string[]
    const found = await this.#find(names)
    return names.map((name) => storedQueue(found.get(name)! as QueueSettingsRow, undefined))
  }

  /** See `Records.setLimits`. */
  async setLimits(name: string, change: QueueLimits): Promise<QueueLimits> {
    for (;;) {
      const row = (await this.#find([name])).get(name)
      if (row === undefined) throw new UnknownQueueError(name, [...this.#known.keys()])
      const limits = changedLimits(limitsFrom(row.limits), change)
      const settings = { name, kind: row.kind, order: row.ord, exclusive: row.exclusive, merge: row.merge }
      const written = writtenQueue(settings, limitsText(limits), row.limits)
      if ((await this.#connection.call(writeQueues, [JSON.stringify([written])])) !== true) continue
      await this.#find([name])
      return limits
    }
  }

  /** Looks at queues anew: they were resharded, or merge otherwise. */
  async refresh(names: readonly string[]): Promise<void> {
    await this.#find(names)
  }

  async #find(names: readonly string[]): Promise<Map<string, StoredRow>> {
    const rows = (await this.#connection.call(findQueues, [[...new Set(names)]])) as StoredRow[]
    for (const name of new Set(rows.map((row) => row.name))) {
      const all = rows.filter((row) => row.name === name).map(numbered)
      this.#known.set(name, {
        shards: all.filter(({ shard }) => shard >= 0),
        leaving: all.filter(({ shard }) => shard < 0),
      })
    }
    return new Map(rows.map((row) => [row.name, row]))
  }
}

function numbered(row: StoredRow): NumberedQueue {
  return { ...row, order: row.ord, maxCrashes: boundsOf(limitsFrom(row.limits)).maxCrashes }
}

function writtenQueue(settings: QueueSettings, limits: string, seen: string | null): object {
  const { name, kind, order: ord, exclusive = 'id', merge, shards = 1 } = settings
  const { maxPending = null, maxCrashes, resultsCount = null, dead } = boundsOf(limitsFrom(limits))
  const { ageMs = null, count = null } = dead
  return {
    ...{ name, kind, ord, exclusive, merge, shards: kind === 'ordered' ? shards : 1 },
    ...{ seen, limits, maxPending, maxCrashes, results: resultsCount, deadAge: ageMs, deadCount: count },
  }
}

function refuseUnsupported({ name, throttle, maxRunning, fifo }: QueueSettings): void {
  const refused =
    throttle !== undefined
      ? 'throttles'
      : maxRunning !== undefined && maxRunning !== 'none'
        ? 'maxRunning'
        : fifo
          ? 'fifo by group'
          : undefined
  if (refused !== undefined)
    throw new UnsupportedByStoreError('postgres', `${refused} (queue '${name}')`, 'Use the SQLite or the Redis store.')
}
