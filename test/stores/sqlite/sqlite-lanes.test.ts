import { afterEach, describe, expect, it } from 'vitest'
import type { NewJob } from '#src/stores/contract/new-job.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { machineClock } from '#src/stores/sqlite/file/sqlite-clock.js'
import { type Database, loadDriver, type Statement } from '#src/stores/sqlite/file/sqlite-driver.js'
import { openFile } from '#src/stores/sqlite/file/sqlite-file.js'
import { SqliteRoom } from '#src/stores/sqlite/file/sqlite-room.js'
import { pools } from '#src/stores/sqlite/file/sqlite-schema.js'
import { SqliteTransaction } from '#src/stores/sqlite/rows/sqlite-transaction.js'
import { type SqliteOperations, sqliteOperations } from '#src/stores/sqlite/thread/sqlite-thread-api.js'
import { job, queue, SqliteScene } from './sqlite-scene.js'

const scene = new SqliteScene()
afterEach(() => scene.close())

const by = { worker: 'w', leaseMs: 60_000 }

/** What the operations of a store do in its file: each statement that is run, and how many rows it gave or changed. */
class Watched {
  readonly db: Database
  readonly operations: SqliteOperations['writes']
  readonly #transaction: SqliteTransaction
  ran: { readonly sql: string; readonly rows: number }[] = []

  private constructor(file: string, db: Database) {
    this.db = db
    const told = (sql: string, rows: number) => this.ran.push({ sql, rows })
    const watched = (sql: string): Statement => {
      const statement = db.prepare(sql)
      return {
        run(...values) {
          const answer = statement.run(...values)
          told(sql, Number(answer.changes))
          return answer
        },
        get(...values) {
          const row = statement.get(...values)
          told(sql, row === undefined ? 0 : 1)
          return row
        },
        all(...values) {
          const rows = statement.all(...values)
          told(sql, rows.length)
          return rows
        },
        iterate: (...values) => statement.iterate(...values),
      }
    }
    this.#transaction = new SqliteTransaction(
      { exec: (sql) => db.exec(sql), prepare: watched, close() {} },
      machineClock,
      new SqliteRoom(file, db),
    )
    this.operations = sqliteOperations(this.#transaction).writes
  }

  static async open(file: string): Promise<Watched> {
    return new Watched(file, openFile(file, await loadDriver(), machineClock))
  }

  /** What a step did, in one transaction. */
  watch<T>(step: () => T): { readonly answer: T; readonly ran: Watched['ran']; readonly rows: number } {
    this.ran = []
    this.db.exec('BEGIN IMMEDIATE')
    const answer = step()
    this.#transaction.flush()
    this.db.exec('COMMIT')
    return { answer, ran: this.ran, rows: this.ran.reduce((sum, { rows }) => sum + rows, 0) }
  }

  plansOf(ran: Watched['ran']): string[] {
    const texts = [...new Set(ran.map(({ sql }) => sql))]
    const details = (sql: string) => this.db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]
    return texts.flatMap((sql) => details(sql).map(({ detail }) => detail))
  }
}

/** So many groups with two jobs each. */
function fill({ operations }: Watched, name: string, groups: number): void {
  const inGroup = (i: number): NewJob => job(`j${i}`, { group: `g${i % groups}` })
  for (let at = 0; at < 2 * groups; at += 1_000) {
    const jobs = Array.from({ length: Math.min(1_000, 2 * groups - at) }, (_, i) => inGroup(at + i))
    operations.enqueue([{ callId: `c${at}`, queue: name, jobs }])
  }
}

describe('a claim over lanes', () => {
  const rules = [{ limit: 1, windowMs: 60_000, moderate: false }]
  const kinds: Record<string, Partial<QueueSettings>> = {
    'no limits': {},
    'a throttle by group': { throttle: { scope: 'sites', by: 'group', rules } },
    'a limit of running jobs for each group': { maxRunning: { perGroup: 1 } },
  }
  for (const [title, settings] of Object.entries(kinds)) {
    it(`costs as much with 4,000 groups as with 10, with ${title}`, async () => {
      const cost: number[][] = []
      for (const groups of [10, 4_000]) {
        const watched = await Watched.open(`${scene.file}-${groups}`)
        watched.watch(() => watched.operations.open([{ ...queue, ...settings }]))
        watched.watch(() => fill(watched, queue.name, groups))
        const { answer, ran, rows } = watched.watch(() =>
          watched.operations.claim([{ queue: queue.name, limit: 10 }], by),
        )
        const taken = answer.granted.length
        cost.push([taken, ran.length, rows])
        for (const plan of watched.plansOf(ran)) expect(plan).not.toMatch(/SCAN (?!\(|opened|CONSTANT)|USE TEMP B-TREE/)
        watched.db.close()
      }
      const [few, many] = cost

      expect(few![0]).toBe(10)
      expect(many![0]).toBe(10)
      expect(many![1]).toBeLessThanOrEqual(few![1]! * 1.2)
      expect(many![2]).toBeLessThanOrEqual(few![2]! * 1.2)
    }, 60_000)
  }

  it('leaves nothing of 3,000 groups once their jobs and their windows have ended', async () => {
    const watched = await Watched.open(scene.file)
    const short = [{ limit: 1, windowMs: 1, moderate: false }]
    watched.watch(() =>
      watched.operations.open([{ ...queue, throttle: { scope: 'sites', by: 'group', rules: short } }]),
    )
    watched.watch(() => fill(watched, queue.name, 3_000))
    const count = (table: string) => watched.db.prepare(`SELECT count(*) AS n FROM ${table}`).get()
    const most: number[] = []
    for (let round = 0; round < 1_000; round += 1) {
      const { answer, rows } = watched.watch(() => watched.operations.claim([{ queue: queue.name, limit: 250 }], by))
      most.push(rows)
      const ended = answer.granted.flatMap((one) => {
        if (!('text' in one)) return []
        return (JSON.parse(one.text) as [id: string][]).map(([id]) => ({ ...one, id, kind: 'complete' as const }))
      })
      watched.watch(() => watched.operations.settle(ended))
      if (watched.db.prepare('SELECT 1 FROM job').get() === undefined) break
    }
    // Whoever asks the throttle trims it.
    for (let round = 0; round < 12; round += 1) {
      watched.watch(() =>
        watched.operations.enqueue([
          { callId: `l${round}`, queue: queue.name, jobs: [job(`l${round}`, { group: 'l' })] },
        ]),
      )
      watched.watch(() => watched.operations.claim([{ queue: queue.name, limit: 1, leaseMs: 1 }], by))
    }

    expect(count('throttle_counter')).toEqual({ n: 1 })
    expect(count('lane')).toEqual({ n: 1 })
    expect(Math.max(...most)).toBeLessThan(250 * 16)
    watched.db.close()
  }, 60_000)
})

describe('a queue without groups and limits', () => {
  it('never queries a lane, a throttle or a start', async () => {
    const watched = await Watched.open(scene.file)
    watched.watch(() => watched.operations.open([queue]))
    const jobs = ['a', 'b', 'c'].map((id) => job(id))
    const enqueued = watched.watch(() => watched.operations.enqueue([{ callId: 'c', queue: queue.name, jobs }]))
    const claimed = watched.watch(() => watched.operations.claim([{ queue: queue.name, limit: 2 }], by))
    const fence = (claimed.answer.granted[0] as { fence: number }).fence
    const key = { queue: queue.name, fence }
    const settled = watched.watch(() =>
      watched.operations.settle([
        { ...key, id: 'a', kind: 'complete' },
        { ...key, id: 'b', kind: 'release', delayMs: 0 },
      ]),
    )
    const ran = [...enqueued.ran, ...claimed.ran, ...settled.ran]

    const looks = /\b(FROM|JOIN|INTO|UPDATE) (lane|throttle|throttle_counter|throttle_start)\b/
    expect(ran.filter(({ sql }) => looks.test(sql))).toEqual([])
    expect(claimed.ran.filter(({ sql }) => !sql.includes('FROM queue'))).toHaveLength(3)
    watched.db.close()
  })

  it('finds its next jobs in order, without sorting, past any number of jobs with a group', async () => {
    const watched = await Watched.open(scene.file)
    const plan = (where: string, order: string) =>
      watched.db
        .prepare(`EXPLAIN QUERY PLAN SELECT rid FROM job WHERE qid = 1 AND ${where} ORDER BY ${order} LIMIT 5`)
        .all()
        .map((row) => (row as { detail: string }).detail)

    const first = 'SEARCH job USING COVERING INDEX job_ready (qid=? AND pool=?)'
    for (const pool of Object.values(pools)) expect(plan(pool, 'rank, position, rid')).toEqual([first])
    expect(plan(`${pools.grouped} AND grp = 'x'`, 'rank, position, rid')).toEqual([
      'SEARCH job USING COVERING INDEX job_lane (qid=? AND grp=?)',
    ])
    expect(plan(pools.grouped, 'grp, rank, position, rid')).toEqual([
      'SEARCH job USING COVERING INDEX job_lane (qid=?)',
    ])
    watched.db.close()
  })
})
