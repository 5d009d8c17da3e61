/**
 * The harness of the Postgres store: a schema of its own on a real server, whose two functions that read a clock are
 * replaced, and triggers that keep the audit.
 */

import pg from 'pg'
import type { JobState } from '../../core/job/job.js'
import { postgresAddress } from '../../stores/postgres/client/postgres-address.js'
import { loadPostgresDriver } from '../../stores/postgres/client/postgres-driver.js'
import { checkPostgres } from '../../stores/postgres/health/postgres-fsck.js'
import { postgresFunctions } from '../../stores/postgres/postgres-functions.js'
import { PostgresStore } from '../../stores/postgres/postgres-store.js'
import { schemaText } from '../../stores/postgres/schema/postgres-schema.js'
import { inSchema } from '../../stores/postgres/schema/sql-function.js'
import { stepLimit, trimLimit } from '../../stores/rules/bounds.js'
import { postgresState } from '../state/postgres-state.js'
import { type AuditEntry, auditKind } from './store-audit.js'
import { defaultStartAt, type HarnessMaker, type StoreHarness, UnseenError } from './store-harness.js'
import { WarmClients } from './warm-clients.js'

/** The server of a test was started so long before it. */
const upForMs = 20 * 365 * 86_400_000

/** A job is scheduled while it is not due, running while it has a fence, and waiting if it sits aside. */
const state = (row: string) =>
  `CASE WHEN ${row}.fence > 0 THEN 'running' WHEN ${row}.pool = -1 THEN 'waiting' WHEN abs(${row}.stamp) > @.us() THEN 'scheduled' ELSE 'ready' END`

/** In PL/pgSQL, which plans them once in a session; a function in SQL is planned anew by every statement that calls it. */
const replaced = `
CREATE TABLE @.harness (ms bigint NOT NULL, run bigint NOT NULL);
CREATE OR REPLACE FUNCTION @.us() RETURNS bigint LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN (SELECT ms * 1000 FROM @.harness LIMIT 1); END';
CREATE OR REPLACE FUNCTION @.run() RETURNS bigint LANGUAGE plpgsql STABLE AS 'BEGIN RETURN (SELECT run FROM @.harness LIMIT 1); END';
CREATE TABLE @.audit (n bigint GENERATED ALWAYS AS IDENTITY, at_ms bigint, qid int, id text, state_from text, state_to text, fence bigint, worker text);
CREATE FUNCTION @.audit_job() RETURNS trigger LANGUAGE plpgsql AS $fn$
DECLARE f bigint; BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO @.audit (at_ms, qid, id, state_to, fence) VALUES (@.us() / 1000, NEW.qid, NEW.id, ${state('NEW')}, 0);
    RETURN NULL;
  END IF;
  f := CASE WHEN OLD.fence > 0 THEN OLD.fence WHEN TG_OP = 'UPDATE' THEN NEW.fence ELSE 0 END;
  INSERT INTO @.audit (at_ms, qid, id, state_from, state_to, fence, worker) VALUES (@.us() / 1000, OLD.qid, OLD.id, ${state('OLD')},
    CASE TG_OP WHEN 'UPDATE' THEN ${state('NEW')} END, f, coalesce((SELECT worker FROM @.bunch WHERE fence = f),
      (SELECT a.worker FROM @.audit a WHERE a.fence = f AND a.id = OLD.id AND a.worker IS NOT NULL ORDER BY n LIMIT 1)));
  RETURN NULL;
END $fn$;
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON @.job FOR EACH ROW
  WHEN (current_setting('harness.empties', true) IS DISTINCT FROM 'yes') EXECUTE FUNCTION @.audit_job();
`

interface PostgresAuditRow {
  readonly at_ms: string
  readonly queue: string
  readonly id: string
  readonly state_from: JobState | null
  readonly state_to: JobState | null
  readonly fence: string
  readonly worker: string | null
}

/**
 * Makes a function that makes the schema as it was: to make another takes many times as long, and the connections of this one
 * have compiled its functions. Only the fences go on, as they do in a schema that is made later. Its setting keeps the triggers
 * quiet; the server's own for that, `session_replication_role`, would have it plan every statement of the session anew.
 */
const emptying = (tables: readonly string[], sequences: readonly string[]) => `
CREATE FUNCTION @.empty() RETURNS void LANGUAGE plpgsql SET harness.empties = 'yes' AS $fn$ BEGIN
  ${tables.map((table) => `DELETE FROM @.${table}${table === 'meta' ? " WHERE name <> 'version'" : ''};`).join(' ')}
  ${sequences.map((sequence) => `PERFORM setval('@.${sequence}', 1, false);`).join(' ')}
  PERFORM setval('@.lane_turn', 0, false);
  PERFORM setval('@.fence_seq', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);
END $fn$`

interface PostgresHarness extends StoreHarness {
  readonly schema: string
}

/** Makes harnesses on the server at `url`. `direct`: its address if that of `url` is a pooler's. */
export function postgresHarness(
  url: string,
  direct = url,
): (options?: Parameters<HarnessMaker>[0]) => Promise<PostgresHarness> {
  const address = postgresAddress(url)
  /** Schemas that nobody uses any more, each with its connections. */
  const free: UsedSchema[] = []
  return async ({ startAt = defaultStartAt, mostClaimBytes } = {}): Promise<PostgresHarness> => {
    const used = free.pop()
    const { schema, eyes, clients } = used ?? (await connected(direct))
    // A comparison mostly asks for the state, always by the same texts: the server reads each of them once.
    const ask = async (text: string, values: unknown[] = []) =>
      (await eyes.query({ name: nameOf(text), text: inSchema(text, schema), values })).rows
    /** As the fsck of a store asks, but without a connection of its own. */
    const query = async (text: string, values: readonly unknown[] = []) =>
      (await eyes.query({ name: nameOf(text), text, values: [...values], rowMode: 'array' })).rows as unknown[][]
    if (used === undefined) {
      await eyes.query(`BEGIN; ${schemaText(schema, postgresFunctions)} ${inSchema(replaced, schema)} COMMIT`)
      const relations = async (kind: 'r' | 'S') =>
        (
          await ask('SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = $2', [
            schema,
            kind,
          ])
        ).map(({ relname }) => String(relname))
      await eyes.query(inSchema(emptying(await relations('r'), await relations('S')), schema))
    }
    await ask('INSERT INTO @.harness VALUES ($1, $2)', [startAt, startAt - upForMs])
    const handles: PostgresStore[] = []
    let isOpen = true

    return {
      name: 'postgres',
      schema,
      byClock: {
        reason: 'a claim writes nothing but its number into a job, and an enqueue waits for nobody to learn its place',
        async forget() {
          await ask(`SELECT @.trim_1(qid, ${trimLimit}) FROM @.queue`)
          await ask(`SELECT @.deliver_1(0, ${stepLimit})`)
          // The next claim would do it: jobs that come before it come behind those that fell due.
          await ask(`UPDATE @.lane l SET turn = o.turn, due = NULL FROM (
            SELECT qid, grp, nextval('@.lane_turn') AS turn FROM (
              SELECT qid, grp FROM @.lane l WHERE due <= @.us() AND turn IS NULL ORDER BY due, (SELECT min(seq) FROM @.job j
                WHERE j.qid = l.qid AND j.grp = l.grp AND j.pool = 2 AND abs(j.stamp) = l.due)) d) o
            WHERE l.qid = o.qid AND l.grp = o.grp`)
        },
      },
      async open() {
        const store = new PostgresStore({
          address: { ...address, schema },
          makeClient: clients.lend,
          ...(mostClaimBytes === undefined ? {} : { mostClaimBytes }),
        })
        handles.push(store)
        return store
      },
      async advance(ms) {
        await ask('UPDATE @.harness SET ms = ms + $1', [ms])
      },
      async step() {
        throw new UnseenError('the Postgres store does not follow a clock that is set')
      },
      async restart() {
        await ask('UPDATE @.harness SET run = ms')
      },
      dump: () => postgresState(ask),
      async audit() {
        // Claims that are made at the same moment have no order but that of their fences; each job keeps its own.
        const rows =
          (await ask(`SELECT a.*, q.name AS queue, max(fence) OVER (PARTITION BY qid, id ORDER BY n) AS latest
          FROM @.audit a JOIN @.queue q USING (qid) ORDER BY latest, n`)) as unknown as PostgresAuditRow[]
        return rows.flatMap(auditEntry)
      },
      async close() {
        const found = isOpen && handles.length > 0 ? await checkPostgres({ schema, query }) : []
        const faults = found.filter(({ level }) => level === 'error')
        await clients.takeBack(async () => {
          for (const store of handles.splice(0)) await store.close()
        })
        if (!isOpen) return
        isOpen = false
        await ask('SELECT @.empty()')
        free.push({ schema, eyes, clients })
        if (faults.length > 0) throw new Error(`fsck: ${faults.map(({ what, text }) => `${what}: ${text}`).join('\n')}`)
      },
    }
  }
}

interface UsedSchema {
  readonly schema: string
  readonly eyes: pg.Client
  /** Of its stores. */
  readonly clients: WarmClients
}

const names = new Map<string, string>()

/** Of the statement with this text, in every schema. */
function nameOf(text: string): string {
  const name = names.get(text) ?? `look_${names.size}`
  names.set(text, name)
  return name
}

let made = 0

async function connected(url: string): Promise<UsedSchema> {
  const eyes = new pg.Client({ connectionString: url })
  // The server ends before this process does.
  eyes.on('error', () => {})
  await eyes.connect()
  // It only looks, by the same few texts.
  await eyes.query('SET plan_cache_mode = force_generic_plan')
  return { schema: `test_${process.pid}_${++made}`, eyes, clients: new WarmClients(await loadPostgresDriver()) }
}

function auditEntry({
  at_ms,
  queue,
  id,
  state_from: from,
  state_to: to,
  fence,
  worker,
}: PostgresAuditRow): AuditEntry[] {
  const kind = auditKind(from, to)
  const isClaim = from === 'running' || to === 'running'
  if (kind === undefined) return []
  return [{ at: Number(at_ms), queue, id, kind, from, to, fence: isClaim ? Number(fence) : 0, worker }]
}
