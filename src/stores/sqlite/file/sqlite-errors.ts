/** The SQLite store's errors: SQLite's codes turned into typed errors, and errors carried from thread to thread. */

import {
  ClosedError,
  ConfigConflictError,
  ConfigError,
  InvalidArgumentError,
  isMillraceError,
  MillraceError,
  StoreCorruptError,
  StoreFullError,
  StoreUnavailableError,
  StoreVersionError,
  ThrottleConflictError,
  UnknownQueueError,
} from '../../../core/errors.js'
import { messageOf } from '../../../core/messages/describe.js'

/** Primary result codes (sqlite.org/rescode.html); the upper bits of an extended code say more. */
const code = {
  error: 1,
  perm: 3,
  busy: 5,
  locked: 6,
  nomem: 7,
  readonly: 8,
  ioerr: 10,
  corrupt: 11,
  full: 13,
  cantopen: 14,
  notadb: 26,
}

/** SQLite's fixed texts (`sqlite3_errstr`): drivers leave the code out if a query fails after its first rows. */
const codeOfText: Readonly<Record<string, number>> = {
  'database is locked': code.busy,
  'database table is locked': code.locked,
  'attempt to write a readonly database': code.readonly,
  'disk I/O error': code.ioerr,
  'database disk image is malformed': code.corrupt,
  'database or disk is full': code.full,
  'file is not a database': code.notadb,
}

const codeOfName: Readonly<Record<string, number | undefined>> = Object.fromEntries(
  Object.entries(code).map(([name, value]) => [name.toUpperCase(), value]),
)

function primaryCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined
  const { errcode, code: driverCode } = error as { errcode?: unknown; code?: unknown }
  if (typeof errcode === 'number') return errcode & 0xff
  if (typeof driverCode !== 'string') return undefined
  // `better-sqlite3` names the code: SQLITE_BUSY, or more exactly SQLITE_BUSY_SNAPSHOT.
  const [, named] = /^SQLITE_([A-Z]+)/.exec(driverCode) ?? []
  if (named !== undefined) return codeOfName[named]
  return driverCode === 'ERR_SQLITE_ERROR' ? codeOfText[error.message] : undefined
}

/**
 * Extended codes of a write that may have found no room: a disk does not always report that plainly, a quota never
 * does.
 */
const ioerrWrite = 778
const ioerrShmSize = 4874

/** Whether the cause may be a lack of room. If the disk has failed instead, one more try does no harm. */
export function isOutOfRoom(error: unknown): boolean {
  const { errcode, code: systemCode } = (error ?? {}) as { errcode?: unknown; code?: unknown }
  if (errcode === ioerrWrite || errcode === ioerrShmSize) return true
  if (systemCode === 'SQLITE_IOERR_WRITE' || systemCode === 'SQLITE_IOERR_SHMSIZE') return true
  return primaryCode(error) === code.full || systemCode === 'ENOSPC' || systemCode === 'EDQUOT'
}

/** Whether another connection was in the way. Another try may succeed. */
export function isBusy(error: unknown): boolean {
  const primary = primaryCode(error)
  return primary === code.busy || primary === code.locked
}

/** Whether the connection can no longer be trusted: it must be opened anew, and the file checked. */
export function isSuspect(error: unknown): boolean {
  const primary = primaryCode(error)
  return primary === code.ioerr || primary === code.corrupt || primary === code.notadb
}

/** Whether a table, column or index of ours does not exist: the tables are not those that we made. */
export function isMisunderstood(error: unknown): boolean {
  return primaryCode(error) === code.error && /^no such (?:table|column|index)\b/.test((error as Error).message)
}

/** Whether SQLite takes the file for a damaged database, and not for something that is no database. */
export function isMalformed(error: unknown): boolean {
  return primaryCode(error) === code.corrupt
}

export function corrupt(file: string, what: string, cause?: unknown): StoreCorruptError {
  return new StoreCorruptError(
    `the SQLite store '${file}' is damaged: ${what}. Nothing was written to it. Stop all processes that use it and restore it from a backup, ` +
      `or save what can be read with 'sqlite3 ${file} .recover'.`,
    { cause },
  )
}

export function foreign(file: string, what: string, cause?: unknown): StoreCorruptError {
  return new StoreCorruptError(
    `'${file}' is not a Millrace store: ${what}. Nothing was written to it. Give the store a file of its own.`,
    { cause },
  )
}

export function unavailable(file: string, what: string, cause?: unknown): StoreUnavailableError {
  return new StoreUnavailableError(`the SQLite store '${file}' cannot be used: ${what}`, { cause })
}

/** A settle for which there was so little room that each of its claims needed a commit of its own. */
export function partlySettled(file: string, error: unknown): StoreUnavailableError {
  return unavailable(
    file,
    `only some of the claims are settled (${messageOf(error)}). What was asked may be sent again.`,
    error,
  )
}

const parts = { file: 'file', log: "log ('-wal')", index: "index ('-shm')" } as const

/** The open file is not the one at its path any more. */
export function moved(file: string, part: keyof typeof parts): StoreUnavailableError {
  return new StoreUnavailableError(
    `the SQLite store '${file}' cannot be used: its ${parts[part]} was removed or replaced while it was open. ` +
      'Nothing was changed, and the next call opens it anew. Stop all processes before you remove or restore a store.',
    { inDoubt: false },
  )
}

/** Our own code failed, or the runtime did. That says nothing about the file: only SQLite's codes for damage do. */
function stumbled(file: string, error: Error): StoreUnavailableError {
  return new StoreUnavailableError(
    `the SQLite store '${file}' could not do what was asked: its own code failed (${error.name}: ${error.message}). Nothing was changed. ` +
      'Run `millrace fsck`, which looks the file over. If that finds nothing, report this with the stack of its cause.',
    { cause: error, inDoubt: false },
  )
}

/** The typed error for an error of SQLite, or of a system call on its file. */
export function typedError(file: string, error: unknown): unknown {
  if (isMillraceError(error) || !(error instanceof Error)) return error
  const { message } = error
  if (isMisunderstood(error)) return corrupt(file, message, error)
  switch (primaryCode(error)) {
    case code.busy:
    case code.locked:
      return unavailable(file, `another process holds its write lock (${message}). Try again.`, error)
    case code.corrupt:
      return corrupt(file, message, error)
    case code.notadb:
      return foreign(file, message, error)
    case code.full:
      return new StoreFullError(
        `the SQLite store '${file}' has no room left on its disk (${message}). Nothing was changed. Free some space and try again.`,
        { cause: error },
      )
    case code.readonly:
    case code.perm:
      return unavailable(
        file,
        `it cannot be written to (${message}). Check the rights of the file and its directory.`,
        error,
      )
    case code.cantopen:
      return unavailable(
        file,
        `it cannot be opened (${message}). Check that its directory exists and may be written to.`,
        error,
      )
    case code.ioerr:
      return unavailable(file, `its disk failed (${message}). What was asked may be sent again.`, error)
    case code.nomem:
      return unavailable(file, `out of memory (${message}).`, error)
  }
  if (primaryCode(error) !== undefined) return unavailable(file, `SQLite failed (${message}).`, error)
  const { code: systemCode } = error as { code?: unknown }
  if (systemCode === 'ENOSPC' || systemCode === 'EDQUOT')
    return new StoreFullError(`the SQLite store '${file}' has no room left on its disk (${message}).`, { cause: error })
  if (systemCode === 'EACCES' || systemCode === 'EPERM')
    return unavailable(
      file,
      `the user of this process may not read or write it (${message}). Run the process as the user who made the file, or give ` +
        'both users a folder that a group shares: docs/stores/sqlite.md, “Several users”.',
      error,
    )
  if (typeof systemCode === 'string' && /^E[A-Z]+$/.test(systemCode)) return unavailable(file, message, error)
  return stumbled(file, error)
}

/** An error as it crosses between threads, which keep neither its class nor its fields. */
export interface CarriedError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly fields: Record<string, unknown>
}

export function carried(error: unknown): CarriedError {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error), stack: undefined, fields: {} }
  const fields: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(error)) {
    if (value === null || typeof value !== 'object' || Array.isArray(value)) fields[key] = value
  }
  if (error.cause instanceof Error) fields['cause'] = error.cause
  return { name: error.name, message: error.message, stack: error.stack, fields }
}

const classes: readonly (abstract new (...args: never[]) => Error)[] = [
  ClosedError,
  ConfigConflictError,
  ConfigError,
  InvalidArgumentError,
  MillraceError,
  StoreCorruptError,
  StoreFullError,
  StoreUnavailableError,
  StoreVersionError,
  ThrottleConflictError,
  UnknownQueueError,
]

/** The same error again, with the same class. Its message is finished: no constructor may write another. */
export function rebuilt({ name, message, stack, fields }: CarriedError): Error {
  const error = new Error(message)
  const prototype = classes.find((type) => type.name === name)?.prototype
  if (prototype !== undefined) Object.setPrototypeOf(error, prototype)
  const { cause, ...own } = fields
  Object.assign(error, own)
  if (cause !== undefined) Object.defineProperty(error, 'cause', { value: cause, enumerable: false })
  if (stack !== undefined) error.stack = stack
  return error
}
