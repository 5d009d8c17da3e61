/** The write lock of a SQLite file, as another process would take it. */

/** Tries once; false while somebody else has it, as workers and beats have now and then. */
export function tryWriteLock(db: { exec(sql: string): void }): boolean {
  try {
    db.exec('BEGIN IMMEDIATE')
    return true
  } catch {
    return false
  }
}
