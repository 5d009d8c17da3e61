/** The interface of a SQLite store's thread: each call that the other side may make, by name. */

import { bound } from '../../../core/values/bound.js'
import type { HistoryEntry, HistoryPoint, HistorySpan } from '../../contract/history.js'
import type { FsckFinding } from '../../contract/store-health.js'
import { isLimited, isStopped } from '../../rows/queue-row.js'
import { addHistory, readHistory } from '../../sql/sql-history.js'
import { isWatched, publishLive, type ReadMessages, readLive, unwatchLive, watchLive } from '../../sql/sql-live.js'
import { SqliteDeaths } from '../records/sqlite-deaths.js'
import { SqliteJoinCalls } from '../records/sqlite-join-calls.js'
import { SqliteList } from '../records/sqlite-list.js'
import { SqliteLook } from '../records/sqlite-look.js'
import { SqliteRecords } from '../records/sqlite-records.js'
import { SqliteWorkers } from '../records/sqlite-registry.js'
import { SqliteReshard } from '../records/sqlite-reshard.js'
import { SqliteSchedules } from '../records/sqlite-schedules.js'
import { SqliteStepCalls } from '../records/sqlite-step-calls.js'
import { SqliteThrottleAdmin } from '../records/sqlite-throttle-admin.js'
import type { QueueRow } from '../rows/sqlite-queue.js'
import { SqliteQueueState } from '../rows/sqlite-queue-state.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'
import { repairQueue } from '../sqlite-fsck.js'
import { SqliteClaim } from '../work/sqlite-claim.js'
import { SqliteEnqueue } from '../work/sqlite-enqueue.js'
import { SqliteSettings } from '../work/sqlite-settings.js'
import { SqliteSettle } from '../work/sqlite-settle.js'

export type SqliteOperations = ReturnType<typeof sqliteOperations>

interface Peeked {
  /** The queues that end the wait now. */
  readonly found: string[]
  /** Whether something in the queues will change by itself. */
  readonly changes: boolean
}

/** Calls on the file alone. No store is opened or made for them. */
interface FileLooks {
  check(queue?: string): FsckFinding[]
  examine(): FsckFinding[]
}

type Operations = SqliteOperations['reads'] & SqliteOperations['writes'] & FileLooks

export type OperationName = keyof Operations
export type OperationArgs<Name extends OperationName> = Parameters<Operations[Name]>
export type OperationAnswer<Name extends OperationName> = ReturnType<Operations[Name]>

export function sqliteOperations(transaction: SqliteTransaction) {
  const enqueue = new SqliteEnqueue(transaction)
  const state = new SqliteQueueState(transaction.db, transaction.limits, transaction.amnesty)
  const claim = new SqliteClaim(transaction, state)
  const settle = new SqliteSettle(transaction)
  const settings = new SqliteSettings(transaction, state)
  const jobs = new SqliteLook(transaction)
  const list = new SqliteList(transaction, jobs)
  const records = new SqliteRecords(transaction, settle)
  const reshard = new SqliteReshard(transaction)
  const workers = new SqliteWorkers(transaction)
  const schedules = new SqliteSchedules(transaction, enqueue)
  const joins = new SqliteJoinCalls(transaction)
  const steps = new SqliteStepCalls(transaction, settle)
  const deaths = new SqliteDeaths(transaction)
  const throttleAdmin = new SqliteThrottleAdmin(transaction)
  const dataVersion = transaction.db.prepare('PRAGMA data_version')
  /** Whether something in the queue changes by itself. Ready jobs may be shut for a while. */
  const mayChange = (row: QueueRow, mono: number) =>
    row.scheduled + row.running > 0 ||
    (row.ready > 0 && isLimited(row) && transaction.limits.opensAt(row, mono) !== undefined)
  return {
    reads: {
      ...bound(settings, 'depth'),
      ...bound(jobs, 'get', 'getDead'),
      ...bound(list, 'list'),
      ...bound(records, 'queues', 'ended'),
      ...bound(workers, 'held'),
      ...bound(joins, 'isSweepDue'),
      ...bound(steps, 'isWaitOver'),
      ...bound(deaths, 'unreported', 'backlog'),
      ...bound(throttleAdmin, 'holds', 'rates'),
      workers: workers.list.bind(workers),
      schedule: schedules.get.bind(schedules),
      schedules: schedules.list.bind(schedules),
      lookAtJoin: joins.look.bind(joins),
      endsIn: joins.ends.bind(joins),
      readSteps: steps.read.bind(steps),
      isWatched: (queue: string): boolean => transaction.run(isWatched(queue, transaction.clock.mono())),
      readLive: (queue: string, after: number): ReadMessages => transaction.run(readLive(queue, after)),
      readHistory: (queues: readonly string[], span: HistorySpan): HistoryPoint[][] =>
        transaction.run(readHistory(queues, span, transaction.clock.now())),
      throttleState: throttleAdmin.state.bind(throttleAdmin),
      /** The result of a wait's look at its queues. `rung`: those of the queues whose last ring nobody heard. */
      peek(names: readonly string[], rung: readonly string[]): Peeked {
        const { clock, queues } = transaction
        const [now, mono] = [clock.now(), clock.mono()]
        const rows = names.flatMap((name) => queues.rowsOf(name))
        const ends = (row: QueueRow) =>
          state.wakes(row, now, mono) || (rung.includes(row.name) && state.needsLead(row, now, mono))
        return {
          found: [...new Set(rows.filter(ends).map(({ name }) => name))],
          changes: rows.some((row) => !isStopped(row) && mayChange(row, mono)),
        }
      },
      /** Changes when another connection commits. */
      dataVersion: (): number => (dataVersion.get() as { data_version: number }).data_version,
    },
    writes: {
      ...bound(settings, 'open', 'setLimits'),
      ...bound(enqueue, 'enqueue'),
      ...bound(joins, 'seal', 'sweep'),
      ...bound(steps, 'signal'),
      ...bound(deaths, 'reported'),
      ...bound(claim, 'claim'),
      ...bound(settle, 'settle', 'complete', 'extend'),
      ...bound(
        records,
        'cancel',
        'delete',
        'runNow',
        'reschedule',
        'bury',
        'fail',
        'setFields',
        'pause',
        'resume',
        'drain',
        'clear',
        'move',
        'revive',
        'deleteDead',
      ),
      ...bound(transaction.expected, 'expect'),
      ...bound(reshard, 'reshard'),
      ...bound(workers, 'beat', 'gone', 'adopt'),
      ...bound(schedules, 'tick', 'resign'),
      ...bound(throttleAdmin, 'setRate', 'release'),
      enqueueGraph: enqueue.graph.bind(enqueue),
      keepStep: steps.keep.bind(steps),
      forgetStep: steps.forget.bind(steps),
      endVainWaits: steps.sweep.bind(steps),
      signalWorker: workers.signal.bind(workers),
      removeWorker: workers.remove.bind(workers),
      putSchedule: schedules.put.bind(schedules),
      removeSchedule: schedules.remove.bind(schedules),
      dueSchedules: schedules.due.bind(schedules),
      publishLive(queue: string, message: string): boolean {
        const isRead = transaction.run(publishLive(queue, message, transaction.clock.mono()))
        if (isRead) transaction.hasMessages = true
        return isRead
      },
      watchLive: (queue: string, watcher: string, forMs: number) =>
        transaction.run(watchLive(queue, watcher, forMs, transaction.clock.mono())),
      unwatchLive: (queue: string, watcher: string): void => transaction.run(unwatchLive(queue, watcher)),
      addHistory: (entries: readonly HistoryEntry[]): void =>
        transaction.run(addHistory(entries, transaction.clock.now())),
      setThrottle: throttleAdmin.set.bind(throttleAdmin),
      pauseGroup: throttleAdmin.pause.bind(throttleAdmin),
      resumeGroup: throttleAdmin.resume.bind(throttleAdmin),
      repair: (queue: string) => repairQueue(transaction, queue),
    },
  }
}
