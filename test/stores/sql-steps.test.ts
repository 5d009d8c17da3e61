/** Calls of SQL stores as steps: each gives the same answers whether its statements are awaited or not. */
import { readdirSync, readFileSync } from 'node:fs'
import { setImmediate as later } from 'node:timers/promises'
import { beforeEach, expect, it } from 'vitest'
import type { HistoryCounts } from '#src/stores/contract/history.js'
import type { ScheduleDefinition } from '#src/stores/contract/schedules.js'
import { addHistory, readHistory } from '#src/stores/sql/sql-history.js'
import { publishLive, readLive, unwatchLive, watchLive } from '#src/stores/sql/sql-live.js'
import { dueSchedules, putSchedule, resignLead, schedulesAfter } from '#src/stores/sql/sql-schedules.js'
import { atOnce, type SqlSteps } from '#src/stores/sql/sql-steps.js'
import { beatWorker, liveWorkers, signalWorker } from '#src/stores/sql/sql-workers.js'
import { type Database, loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { tables } from '#src/stores/sqlite/file/sqlite-schema.js'

const hour = 3_600_000
const now = 480_000 * hour
const runTimes = [1, 0, 0, 0, 0, 0, 0]
const counts: HistoryCounts = {
  ...{ enqueued: 2, started: 1, completed: 1, failed: 0, dead: 0, crashed: 0, cancelled: 0, runMs: 7 },
  runTimes,
}
const entry = { queue: 'mails', agoMs: 0, counts, gauges: { lagMs: 3, waiting: 1, running: 1 } }
const worker = { id: 'w1', host: 'h', pid: 1, queues: ['mails'] } as unknown as Parameters<typeof beatWorker>[0]
const definition = {
  name: 'nightly',
  queue: 'mails',
  rule: { everyMs: hour },
  job: { payload: '{}' },
} as unknown as ScheduleDefinition
const change = { definition, revision: 'r1', paused: false, nextAt: now + 5 }

/** The calls in their order. */
const calls: readonly (() => SqlSteps<unknown>)[] = [
  () => addHistory([entry, { ...entry, agoMs: 60_000 }], now),
  () => readHistory(['mails', 'none'], { step: 'minute', fromAt: 0, toAt: now + hour }, now),
  () => readHistory(['mails'], { step: 'hour', fromAt: 0, toAt: now + hour }, now),
  () => publishLive('mails', 'nobody hears', now),
  () => watchLive('mails', 'a', 100, now),
  () => publishLive('mails', 'one', now),
  () => publishLive('mails', 'two', now),
  () => readLive('mails', 0),
  () => watchLive('mails', 'a', 100, now + 50),
  () => unwatchLive('mails', 'a'),
  () => readLive('mails', 0),
  () => beatWorker(worker, 1_000, now),
  () => signalWorker('w1', 'stop', now),
  () => signalWorker('w2', 'stop', now),
  () => beatWorker(worker, 1_000, now + 10),
  () => liveWorkers(now + 20),
  () => putSchedule(change, undefined, now),
  () => putSchedule(change, undefined, now),
  () => putSchedule({ ...change, revision: 'r2' }, undefined, now),
  () => schedulesAfter(undefined, 10),
  () => dueSchedules('w1', 1_000, 10, now),
  () => dueSchedules('w2', 1_000, 10, now),
  () => resignLead('w1'),
  () => dueSchedules('w2', 1_000, 10, now + 6),
]

let open: () => Database
beforeEach(async () => {
  const driver = await loadDriver()
  open = () => {
    const db = driver(':memory:')
    db.exec(tables)
    return db
  }
})

function ask(db: Database, { sql, values, gives }: Parameters<Parameters<typeof atOnce>[1]>[0]): unknown {
  const statement = db.prepare(sql)
  if (gives === 'all') return statement.all(...values)
  return gives === 'first' ? statement.get(...values) : Number(statement.run(...values).changes)
}

async function awaited<Answer>(db: Database, steps: SqlSteps<Answer>): Promise<Answer> {
  let step = steps.next()
  while (!step.done) {
    await later()
    step = steps.next(ask(db, step.value))
  }
  return step.value
}

it('a call has the same answer whether its statements are awaited or run at once', async () => {
  const [one, other] = [open(), open()]
  const answers: unknown[] = []
  for (const call of calls) {
    const answer = await awaited(other, call())
    expect(answer).toEqual(atOnce(call(), (statement) => ask(one, statement)))
    answers.push(answer)
  }
  expect(answers[3]).toBe(false)
  expect(answers[7]).toMatchObject({ messages: ['one', 'two'], last: 2, isGap: false })
  expect(answers[14]).toBe('stop')
  expect(answers.slice(16, 19)).toEqual(['written', 'same', 'lost'])
  expect(answers[20]).toMatchObject({ isLead: true, due: [], nextAt: now + 5 })
  expect(answers[21]).toMatchObject({ isLead: false })
  expect(answers[23]).toMatchObject({ isLead: true, due: [{ definition: { name: 'nightly' } }] })
})

it('the statements use no words that only SQLite has', () => {
  const folder = new URL('../../src/stores/sql/', import.meta.url)
  const only = /INDEXED BY|json_each|json_group|\biif\(|\bifnull\(|INSERT OR |PRAGMA|ON CONFLICT DO UPDATE|\?\d/
  for (const file of readdirSync(folder)) expect(readFileSync(new URL(file, folder), 'utf8'), file).not.toMatch(only)
})
