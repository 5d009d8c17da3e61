/** One call to the thread of a SQLite store: whether it needs an open store, and how it is made smaller. */

import type { ClaimFrom } from '../../contract/claim.js'
import type { Finding } from '../../contract/store-health.js'
import type { Database } from '../file/sqlite-driver.js'
import { checkSqlite } from '../health/sqlite-check.js'
import { examineSqlite } from '../health/sqlite-examine.js'
import type { ThreadCall } from './sqlite-thread-messages.js'

/** Whether the call can be answered without the session of an open store. */
export function isLook(call: ThreadCall): boolean {
  return call[1] === 'queues' || isHealth(call)
}

/** Whether the call examines the file, which may be one that nothing can open. */
export function isHealth([, name]: ThreadCall): boolean {
  return name === 'check' || name === 'examine'
}

export function healthLook(file: string, [, name, [queue]]: ThreadCall): (db: Database) => Finding[] {
  return (db) => (name === 'check' ? checkSqlite(db, queue as string | undefined) : examineSqlite(file, db))
}

/** A claim becomes one of at most `step` jobs. The session does all other calls in small steps by itself. */
export function smaller([number, name, args]: ThreadCall, step: number): ThreadCall {
  if (name !== 'claim') return [number, name, args]
  const [from, ...more] = args as [readonly ClaimFrom[], ...unknown[]]
  return [number, name, [from.map((one) => ({ ...one, limit: Math.min(step, one.limit) })), ...more]]
}
