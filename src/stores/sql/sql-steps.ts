/**
 * Calls written in SQL as steps: a generator yields each statement and is given its answer. A store whose database is in
 * its own thread runs them without a pause, within one transaction; one whose database is behind a network awaits each.
 * An async function could not serve both: a transaction of SQLite would be open while other calls of the thread run.
 *
 * The texts are in the part of SQL that SQLite and Postgres share. Values are bound as `?` in their order.
 */

import type { SqlValue } from '../rows/stored-text.js'

interface SqlStatement {
  readonly sql: string
  readonly values: readonly SqlValue[]
  /** All rows, the first row or undefined, or the number of rows that were changed. */
  readonly gives: 'all' | 'first' | 'changes'
}

export type SqlSteps<Answer> = Generator<SqlStatement, Answer, unknown>

export function* all<Found>(sql: string, ...values: SqlValue[]): SqlSteps<Found[]> {
  return (yield { sql, values, gives: 'all' }) as Found[]
}

export function* first<Found>(sql: string, ...values: SqlValue[]): SqlSteps<Found | undefined> {
  return (yield { sql, values, gives: 'first' }) as Found | undefined
}

export function* run(sql: string, ...values: SqlValue[]): SqlSteps<number> {
  return (yield { sql, values, gives: 'changes' }) as number
}

/** Runs the steps without a pause. */
export function atOnce<Answer>(steps: SqlSteps<Answer>, ask: (statement: SqlStatement) => unknown): Answer {
  let step = steps.next()
  while (!step.done) step = steps.next(ask(step.value))
  return step.value
}
