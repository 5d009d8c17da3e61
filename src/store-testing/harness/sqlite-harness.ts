/** The harness of the SQLite store: a file in a directory of its own, a clock in another, and triggers that keep the audit. */

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { JobState } from '../../core/job/job.js'
import { stateNames } from '../../stores/rows/job-row.js'
import { type Database, loadDriver, type OpenDatabase, type Statement } from '../../stores/sqlite/file/sqlite-driver.js'
import { SqliteStore } from '../../stores/sqlite/sqlite-store.js'
import type { CanonicalState } from '../state/canonical-state.js'
import { sqliteState } from '../state/sqlite-state.js'
import { fileClockUrl, readFileClock, writeFileClock } from './file-clock.js'
import { sharedThread } from './shared-thread.js'
import { type AuditEntry, auditKind } from './store-audit.js'
import { defaultStartAt, type HarnessMaker, type StoreHarness } from './store-harness.js'

export interface SqliteHarness extends StoreHarness {
  readonly file: string
  readonly clockFile: string
  /** The URL of the clock module, for the descriptor of a store in another process. */
  readonly clockUrl: string
}

const shardOf = (qid: string) =>
  `SELECT iif(kind = 'ordered', iif(shard < 0, -1 - shard, shard), NULL) FROM queue WHERE queue.qid = ${qid}`
const entry = (at: string, qid: string, id: string, from: string, to: string, fence: string, worker: string) =>
  `INSERT INTO audit (at, queue, shard, id, state_from, state_to, fence, worker) VALUES (${at},
    (SELECT name FROM queue WHERE queue.qid = ${qid}), (${shardOf(qid)}), ${id}, ${from}, ${to}, ${fence}, ${worker})`

/**
 * `updated_at` is the instant of every change of state; a job that leaves does so now, an instant that only the store
 * knows. Queues are named at once: their shards come and go. For ordered queues the live jobs are recorded, not those
 * in the morgue.
 */
const triggers = `
CREATE TABLE audit (n INTEGER PRIMARY KEY, at INTEGER, queue TEXT, shard INTEGER, id TEXT, state_from INTEGER, state_to INTEGER, fence INTEGER, worker TEXT);
CREATE TRIGGER audit_insert AFTER INSERT ON job WHEN new.qid > 0 BEGIN
  ${entry('new.updated_at', 'new.qid', 'new.id', 'NULL', 'new.state', '0', 'NULL')};
END;
CREATE TRIGGER audit_move AFTER UPDATE OF qid ON job WHEN new.qid > 0 AND new.qid <> old.qid BEGIN
  ${entry('NULL', 'old.qid', 'old.id', 'old.state', 'NULL', '0', 'NULL')};
  ${entry('NULL', 'new.qid', 'new.id', 'NULL', 'new.state', '0', 'NULL')};
END;
CREATE TRIGGER audit_death AFTER UPDATE OF qid ON job WHEN new.qid < 0 AND old.qid > 0 BEGIN
  ${entry('new.updated_at', 'old.qid', 'old.id', 'old.state', 'NULL', 'CASE WHEN old.state = 2 THEN old.fence ELSE 0 END', 'CASE WHEN old.state = 2 THEN old.worker END')};
END;
CREATE TRIGGER audit_update AFTER UPDATE OF state ON job WHEN new.qid > 0 AND new.qid = old.qid BEGIN
  ${entry(
    'new.updated_at',
    'new.qid',
    'new.id',
    'old.state',
    'new.state',
    'CASE WHEN new.state = 2 THEN new.fence WHEN old.state = 2 THEN old.fence ELSE 0 END',
    'CASE WHEN new.state = 2 THEN new.worker WHEN old.state = 2 THEN old.worker END',
  )};
END;
CREATE TRIGGER audit_delete AFTER DELETE ON job WHEN old.qid > 0 BEGIN
  ${entry(
    'NULL',
    'old.qid',
    'old.id',
    'old.state',
    'NULL',
    'CASE WHEN old.state = 2 THEN old.fence ELSE 0 END',
    'CASE WHEN old.state = 2 THEN old.worker END',
  )};
END;
`

interface AuditRow {
  readonly at: number | null
  readonly queue: string
  readonly shard: number | null
  readonly id: string
  readonly state_from: number | null
  readonly state_to: number | null
  readonly fence: number
  readonly worker: string | null
}

let emptyFile: Promise<Buffer> | undefined

/** A file of a store that has opened no queue, with the triggers: to make one takes many times as long as to copy it. */
async function createEmpty(openDatabase: OpenDatabase): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-'))
  try {
    const [file, clockFile] = [join(directory, 'jobs.db'), join(directory, 'clock')]
    writeFileClock(clockFile, defaultStartAt)
    // By the clock of a harness: otherwise each store would find that the machine was booted.
    const store = new SqliteStore({ file, clock: fileClockUrl(clockFile) })
    await store.open([])
    await store.close()
    const db = openDatabase(file)
    db.exec(triggers)
    db.close()
    return await readFile(file)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** A comparison looks at the store by the same statements after every step, each of which is prepared once. */
function preparingOnce(db: Database): Database {
  const statements = new Map<string, Statement>()
  return {
    exec: (sql) => db.exec(sql),
    prepare(sql) {
      const statement = statements.get(sql) ?? db.prepare(sql)
      statements.set(sql, statement)
      return statement
    },
    close: () => db.close(),
  }
}

export async function sqliteHarness(options: Parameters<HarnessMaker>[0] = {}): Promise<SqliteHarness> {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-'))
  const file = join(directory, 'store', 'jobs.db')
  const clockFile = join(directory, 'clock')
  const clockUrl = fileClockUrl(clockFile)
  writeFileClock(clockFile, options.startAt ?? defaultStartAt)
  const openDatabase = await loadDriver()
  const handles: SqliteStore[] = []

  emptyFile ??= createEmpty(openDatabase)
  await mkdir(dirname(file), { mode: 0o700 })
  await writeFile(file, await emptyFile, { mode: 0o600 })
  const db = preparingOnce(openDatabase(file))
  let isOpen = true
  const dates: { at: number; count: number }[] = []

  /** Rows without a time of their own were written since the clock last moved. */
  const dateAudit = () => {
    const { count } = db.prepare('SELECT count(*) AS count FROM audit').get() as { count: number }
    dates.push({ at: readFileClock(clockFile).now, count })
  }

  return {
    name: 'sqlite',
    file,
    clockFile,
    clockUrl,
    async open() {
      const { mostClaimBytes: most } = options
      const store = new SqliteStore({
        file,
        clock: clockUrl,
        startThread: sharedThread,
        ...(most === undefined ? {} : { mostClaimBytes: most }),
      })
      handles.push(store)
      return store
    },
    async advance(ms) {
      dateAudit()
      const { now, mono, bootId } = readFileClock(clockFile)
      writeFileClock(clockFile, now + ms, bootId, mono + ms)
    },
    async step(ms) {
      dateAudit()
      const { now, mono, bootId } = readFileClock(clockFile)
      writeFileClock(clockFile, now + ms, bootId, mono)
    },
    async restart() {
      // To a throttle, a restarted machine is one whose boot differs from the last one. Its clock goes on, and so do
      // the leases, which a real restart would end.
      db.exec("UPDATE throttle SET run = run || ' before'")
    },
    async dump(): Promise<CanonicalState> {
      return sqliteState(db, readFileClock(clockFile).now)
    },
    async audit(): Promise<AuditEntry[]> {
      dateAudit()
      return auditEntries(db, dates)
    },
    async close() {
      for (const store of handles.splice(0)) await store.close()
      if (isOpen) db.close()
      isOpen = false
      await rm(directory, { recursive: true, force: true })
    },
  }
}

function auditEntries(db: Database, dates: readonly { at: number; count: number }[]): AuditEntry[] {
  const rows = db.prepare('SELECT * FROM audit ORDER BY n').all() as AuditRow[]
  return rows.flatMap((row, i): AuditEntry[] => {
    const [from, to] = [stateOf(row.state_from), stateOf(row.state_to)]
    const kind = auditKind(from, to)
    if (kind === undefined) return []
    const at = row.at ?? dates.find(({ count }) => i < count)!.at
    const { queue, shard, id, fence, worker } = row
    return [{ at, queue, ...(shard === null ? {} : { shard }), id, kind, from, to, fence, worker }]
  })
}

function stateOf(state: number | null): JobState | null {
  return state === null ? null : stateNames[state]!
}
