/** Opening the queues of a Postgres store, and the numbers by which calls name them. */

import { UnknownQueueError, UnsupportedByStoreError } from '../../../core/errors.js'
import type { QueueLimits } from '../../../core/queue/queue-limits.js'
import { refuseOtherThrottle, ruleText, type Throttle } from '../../../core/queue/throttle.js'
import type { QueueSettings, StoredQueue } from '../../contract/queue-settings.js'
import { type QueueSettingsRow, storedQueue } from '../../rows/queue-row.js'
import { throttleIn } from '../../rows/throttle-row.js'
import { boundsOf, changedLimits, limitsFrom, limitsText, runningBounds, saidLimits } from '../../rules/limit-rules.js'
import { shardOf } from '../../rules/payloads.js'
import { refuseGroupBound, refuseOtherForm } from '../../rules/queue-form.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { newThrottleRow, type PaceState, spansOf } from '../limits/limits-look.js'
import { sqlFunction } from '../schema/sql-function.js'

/** Takes names. Returns the rows that there are, shard by shard, as `StoredRow` has them. */
const findQueues = sqlFunction(
  'queues_1',
  'p_names text[]',
  'json',
  `BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_object('qid', qid, 'name', name, 'shard', shard, 'shards', shards, 'resharding', resharding,
    'kind', kind, 'ord', ord, 'exclusive', exclusive, 'merge', merge, 'paused', paused::int, 'draining', draining::int, 'limits', limits,
    'state', (SELECT state FROM @.pace p WHERE scope = 't' || throttle ORDER BY scope DESC, version DESC LIMIT 1))
    ORDER BY shard), '[]') FROM @.queue WHERE name = ANY (p_names));
END`,
)

/**
 * Writes queues, all or none. Takes a list of `{name, kind, ord, exclusive, merge, shards, seen, limits, maxPending, maxCrashes,
 * results, deadAge, deadCount, maxRunning, perGroup, hadThrottle, throttle, throttleBy}`; `seen`: the limits that the caller saw,
 * null for a new queue; `shards`: of a new queue; `hadThrottle`: whether the caller saw a throttle. And new scopes,
 * `{scope, state}`. Returns false, and changes nothing, if one is not as it was seen.
 */
const writeQueues = sqlFunction(
  'write_queues_1',
  'p_queues json, p_scopes json',
  'json',
  `DECLARE e record; found_limits text; found_throttle text; key text;
BEGIN
  PERFORM pg_advisory_xact_lock(@lock, 1);
  FOR e IN SELECT * FROM json_to_recordset(p_queues) AS x (name text, seen text, "hadThrottle" boolean) LOOP
    found_limits := NULL; found_throttle := NULL;
    SELECT limits, throttle INTO found_limits, found_throttle FROM @.queue WHERE name = e.name COLLATE "C" ORDER BY shard LIMIT 1;
    IF found_limits IS DISTINCT FROM e.seen OR (found_throttle IS NOT NULL) <> e."hadThrottle" THEN RETURN to_json(false); END IF;
  END LOOP;
  IF EXISTS (SELECT FROM json_to_recordset(p_scopes) AS x (scope text), @.pace p WHERE p.scope = 't' || x.scope COLLATE "C") THEN RETURN to_json(false); END IF;
  INSERT INTO @.pace (scope, version, state) SELECT 't' || scope, 1, state FROM json_to_recordset(p_scopes) AS x (scope text, state text);
  FOR e IN SELECT * FROM json_to_recordset(p_queues) AS x (name text, kind text, ord text, exclusive text, merge text, shards int, seen text,
      limits text, "maxPending" bigint, "maxCrashes" int, results bigint, "deadAge" bigint, "deadCount" bigint, "maxRunning" bigint,
      "perGroup" bigint, throttle text, "throttleBy" text) LOOP
    IF e.seen IS NULL THEN
      INSERT INTO @.queue (name, shard, shards, kind, ord, exclusive, run)
        SELECT e.name, shard, e.shards, e.kind, e.ord, e.exclusive, @.run() FROM generate_series(0, e.shards - 1) shard;
    END IF;
    UPDATE @.queue SET merge = coalesce(e.merge, merge), limits = e.limits, max_pending = e."maxPending", crash_limit = e."maxCrashes",
      results_limit = e.results, dead_age_ms = e."deadAge", dead_count = e."deadCount", max_running = e."maxRunning", max_per_group = e."perGroup",
      throttle = coalesce(queue.throttle, e.throttle), throttle_by = coalesce(throttle_by, e."throttleBy"),
      limited = limited OR coalesce(e."maxRunning", e."perGroup") IS NOT NULL OR e.throttle IS NOT NULL WHERE name = e.name COLLATE "C";
  END LOOP;
  -- Decisions that are under way went by what held before.
  FOR e IN SELECT DISTINCT coalesce('t' || x.throttle, 'q' || x.name) AS key FROM @.queue x
      WHERE x.limited AND x.name IN (SELECT name COLLATE "C" FROM json_to_recordset(p_queues) AS y (name text)) ORDER BY key LOOP
    PERFORM pg_advisory_xact_lock(@lock + 3, hashtext(e.key));
    INSERT INTO @.pace SELECT e.key, coalesce(p.version, 0) + 1, coalesce(p.from_ms, 0), coalesce(p.late_ms, 0), coalesce(p.state, '{}') FROM (SELECT) x
      LEFT JOIN (SELECT * FROM @.pace WHERE scope = e.key ORDER BY scope DESC, version DESC LIMIT 1) p ON true;
  END LOOP;
  UPDATE @.lane SET turn = nextval('@.lane_turn'), blocked = false WHERE blocked AND NOT paused
    AND qid = ANY (array(SELECT qid FROM @.queue WHERE name IN (SELECT name COLLATE "C" FROM json_to_recordset(p_queues) AS y (name text))));
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

/** Takes scopes. Returns the state of each, null if there is none. */
const findScopes = sqlFunction(
  'scopes_1',
  'p_scopes text[]',
  'json',
  `BEGIN
  RETURN (SELECT json_object_agg(s, (SELECT state FROM @.pace WHERE scope = 't' || s COLLATE "C" ORDER BY scope DESC, version DESC LIMIT 1)) FROM unnest(p_scopes) s);
END`,
)

export const settingsFunctions = [queueNames, findQueues, writeQueues, findScopes]

/** A row of `queue`, as far as it was asked for, and the state of its scope. */
type StoredRow = Pick<
  QueueSettingsRow,
  | ('qid' | 'name' | 'shard' | 'shards' | 'resharding' | 'kind' | 'ord')
  | ('exclusive' | 'merge' | 'paused' | 'draining' | 'limits')
> & { readonly state: string | null }

/** A queue as calls name it, or a shard of an ordered one. Its number and its form never change. */
export interface NumberedQueue
  extends Pick<
    QueueSettingsRow,
    'qid' | 'name' | 'shard' | 'shards' | 'resharding' | 'kind' | 'exclusive' | 'merge' | 'limits'
  > {
  readonly order: 'fifo' | 'lifo'
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
      const scopes = await this.#scopes(queues)
      const made = new Map<string, Throttle>()
      const asked = queues.flatMap((settings) => {
        const { name, throttle, merge } = settings
        const row = stored.get(name)
        if (row !== undefined)
          refuseOtherForm(name, { kind: row.kind, order: row.ord, exclusive: row.exclusive }, settings)
        if (row !== undefined && follows) return []
        if (row?.kind === 'ordered') refuseGroupBound(name, settings.maxRunning, row.resharding ?? row.shards)
        const limits = limitsText(saidLimits(name, limitsFrom(row?.limits), settings))
        const own = throttleOf(row?.state)
        if (throttle !== undefined) {
          const ofScope = scopes.get(throttle.scope) ?? made.get(throttle.scope)
          refuseOtherThrottle(name, own ?? ofScope, throttle)
          if (own === undefined && ofScope === undefined) made.set(throttle.scope, throttle)
        }
        const isSame = row?.limits === limits && row.merge === (merge ?? row.merge)
        if (isSame && (throttle === undefined || own !== undefined)) return []
        return [writtenQueue(settings, limits, row, own === undefined ? throttle : undefined)]
      })
      const newScopes = [...made].map(([scope, throttle]) => ({ scope, state: JSON.stringify(firstState(throttle)) }))
      const isWritten =
        asked.length === 0 ||
        (await this.#connection.call(writeQueues, [JSON.stringify(asked), JSON.stringify(newScopes)]))
      if (isWritten !== true) continue
      const now = asked.length === 0 ? stored : await this.#find(names)
      return names.map((name) =>
        storedQueue(now.get(name)! as StoredRow & QueueSettingsRow, throttleOf(now.get(name)!.state)),
      )
    }
  }

  /** The throttles of the scopes that are asked for. */
  async #scopes(queues: readonly QueueSettings[]): Promise<Map<string, Throttle>> {
    const scopes = queues.flatMap(({ throttle }) => throttle?.scope ?? [])
    if (scopes.length === 0) return new Map()
    const states = (await this.#connection.call(findScopes, [scopes])) as Record<string, string | null>
    return new Map(
      Object.entries(states).flatMap(([scope, state]) => {
        const throttle = throttleOf(state)
        return throttle === undefined ? [] : [[scope, throttle] as const]
      }),
    )
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

  /**
   * Calls with all shards of a queue, those that a reshard empties too; again if a reshard has begun meanwhile, as its shards have what
   * held before. Returns all answers. Throws `UnknownQueueError`.
   */
  async everywhere<T>(name: string, call: (shards: readonly NumberedQueue[]) => Promise<T>): Promise<T[]> {
    const answers: T[] = []
    for (let called: string | undefined; ; ) {
      const { shards, leaving } = await this.current(name)
      const all = [...shards, ...leaving]
      const numbers = all.map(({ qid }) => qid).join()
      if (numbers === called) return answers
      called = numbers
      answers.push(await call(all))
    }
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
    return names.map((name) =>
      storedQueue(found.get(name)! as StoredRow & QueueSettingsRow, throttleOf(found.get(name)!.state)),
    )
  }

  /** See `Records.setLimits`. */
  async setLimits(name: string, change: QueueLimits): Promise<QueueLimits> {
    for (;;) {
      const row = (await this.#find([name])).get(name)
      if (row === undefined) throw new UnknownQueueError(name, [...this.#known.keys()])
      if (row.kind === 'ordered') refuseGroupBound(name, change.maxRunning, row.resharding ?? row.shards)
      const limits = changedLimits(limitsFrom(row.limits), change)
      const settings = { name, kind: row.kind, order: row.ord, exclusive: row.exclusive, merge: row.merge }
      const written = writtenQueue(settings, limitsText(limits), row, undefined)
      if ((await this.#connection.call(writeQueues, [JSON.stringify([written]), '[]'])) !== true) continue
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
  return { ...row, order: row.ord }
}

/** `throttle`: that which it is to get. */
function writtenQueue(
  settings: QueueSettings,
  limits: string,
  row: StoredRow | undefined,
  throttle: Throttle | undefined,
): object {
  const { name, kind, order: ord, exclusive = 'id', merge, shards = 1 } = settings
  const bounds = boundsOf(limitsFrom(limits))
  const { maxPending = null, maxCrashes, resultsCount = null, dead } = bounds
  const { total = null, perGroup = null } = runningBounds(bounds.maxRunning)
  const { ageMs = null, count = null } = dead
  const by = throttle === undefined ? null : throttle.eachGroup === undefined ? throttle.by : 'both'
  return {
    ...{ name, kind, ord, exclusive, merge, shards: kind === 'ordered' ? shards : 1 },
    ...{ seen: row?.limits ?? null, limits, maxPending, maxCrashes, results: resultsCount },
    ...{ deadAge: ageMs, deadCount: count, maxRunning: total, perGroup },
    ...{ hadThrottle: (row?.state ?? null) !== null, throttle: throttle?.scope ?? null, throttleBy: by },
  }
}

function throttleOf(state: string | null | undefined): Throttle | undefined {
  const { t } = JSON.parse(state ?? '{}') as PaceState
  return t === undefined ? undefined : throttleIn(t)
}

/** The state of a scope in which nothing has been counted yet. */
function firstState({ scope, by, rules, eachGroup }: Throttle): PaceState {
  const each_group = eachGroup?.map(ruleText).join(' ') ?? null
  const t = newThrottleRow({ scope, counts_by: by, rules: rules.map(ruleText).join(' '), each_group })
  return { t, whole: spansOf(rules), each: spansOf(by === 'group' ? rules : eachGroup) }
}

function refuseUnsupported({ name, fifo }: QueueSettings): void {
  if (fifo)
    throw new UnsupportedByStoreError(
      'postgres',
      `fifo by group (queue '${name}')`,
      'Use the SQLite or the Redis store.',
    )
}
