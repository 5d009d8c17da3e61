/** The operations of the SQLite store's thread: every call that may cross from the other side, by name. */

import { SqliteClaim } from './sqlite-claim.js'
import { SqliteEnqueue } from './sqlite-enqueue.js'
import { SqliteList } from './sqlite-list.js'
import { SqliteRecords } from './sqlite-records.js'
import { SqliteWorkers } from './sqlite-registry.js'
import type { SqliteSession } from './sqlite-session.js'
import { SqliteSettings } from './sqlite-settings.js'
import { SqliteSettle } from './sqlite-settle.js'

export type SqliteOperations = ReturnType<typeof sqliteOperations>
export type OperationName = keyof SqliteOperations['reads'] | keyof SqliteOperations['writes']

export function sqliteOperations(session: SqliteSession) {
  const enqueue = new SqliteEnqueue(session)
  const claim = new SqliteClaim(session)
  const settle = new SqliteSettle(session)
  const settings = new SqliteSettings(session, claim)
  const list = new SqliteList(session)
  const records = new SqliteRecords(session, settle)
  const workers = new SqliteWorkers(session)
  const dataVersion = session.db.prepare('PRAGMA data_version')
  return {
    reads: {
      depth: settings.depth.bind(settings),
      get: list.get.bind(list),
      list: list.list.bind(list),
      queues: records.queues.bind(records),
      ended: records.ended.bind(records),
      workers: workers.list.bind(workers),
      /** Which of the queues have something to claim now. */
      peek(queues: readonly string[]): string[] {
        const { clock } = session
        return queues.filter((name) => claim.hasWork(session.queues.get(name), clock.now(), clock.mono()))
      },
      /** Changes when another connection commits. */
      dataVersion: (): number => (dataVersion.get() as { data_version: number }).data_version,
    },
    writes: {
      open: settings.open.bind(settings),
      enqueue: enqueue.enqueue.bind(enqueue),
      claim: claim.claim.bind(claim),
      settle: settle.settle.bind(settle),
      extend: settle.extend.bind(settle),
      cancel: records.cancel.bind(records),
      delete: records.delete.bind(records),
      runNow: records.runNow.bind(records),
      bury: records.bury.bind(records),
      fail: records.fail.bind(records),
      pause: records.pause.bind(records),
      resume: records.resume.bind(records),
      drain: records.drain.bind(records),
      clear: records.clear.bind(records),
      revive: records.revive.bind(records),
      deleteDead: records.deleteDead.bind(records),
      beat: workers.beat.bind(workers),
      removeWorker: workers.remove.bind(workers),
    },
  }
}
