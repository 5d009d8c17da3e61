/** One call to the thread of a SQLite store: whether it needs an opened store, and how it is made smaller. */

import type { ClaimFrom } from '../../contract/claim.js'
import type { Finding } from '../../contract/store-health.js'
import type { Database } from '../file/sqlite-driver.js'
import { checkSqlite } from '../health/sqlite-check.js'
import { examineSqlite } from '../health/sqlite-examine.js'
import type { ThreadCall } from './sqlite-thread-messages.js'

/** Whether it can be answered without the session of an opened store. */
export function isLook(call: ThreadCall): boolean {
  return call[1] === 'queues' || isHealth(call)
}

/** Whether it examines the file, also one that nothing can open. */
export function isHealth([, name]: ThreadCall): boolean {
  return name === 'check' || name === 'examine'
}

export function healthLook(file: string, [, name, [queue]]: ThreadCall): (db: Database) => Finding[] {
  return (db) => (name === 'check' ? checkSqlite(db, queue as string | undefined) : examineSqlite(file, db))
}

/** A claim of at most so many jobs. All else is done in small steps by the session. */
export function smaller([number, name, args]: ThreadCall, step: number): ThreadCall {
  if (name !== 'claim') return [number, name, args]
  const [from, ...more] = args as [readonly ClaimFrom[], ...unknown[]]
  return [number, name, [from.map((one) => ({ ...one, limit: Math.min(step, one.limit) })), ...more]]
}
