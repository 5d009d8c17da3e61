/** The errors of a Postgres store: what a server or a socket reported becomes a typed error. Pure. */

import { StoreCorruptError, StoreFullError, StoreRefusedError, StoreUnavailableError } from '../../../core/errors.js'
import { messageOf } from '../../../core/messages/describe.js'
import { unfit } from '../../../core/values/store-address.js'

/**
 * The result of a failed call. `again`: not carried out, and worth sending at once · `elsewhere`: not carried out, and this
 * connection is of no more use · `locked`: not carried out, and somebody else is in the way · `in-doubt`: sent, and perhaps carried out · `full`, `refused`, `corrupt`, `unfit`: not carried
 * out, and sending it again does not help.
 */
type PostgresFailure = 'again' | 'locked' | 'elsewhere' | 'in-doubt' | 'full' | 'refused' | 'corrupt' | 'unfit'

/** By SQLSTATE, or by its class of two letters. */
const failures: Readonly<Record<string, PostgresFailure>> = {
  // Serialization failure and deadlock: the transaction was rolled back.
  '40001': 'again',
  '40P01': 'again',
  // The statement took too long.
  '57014': 'again',
  '55P03': 'locked',
  // A standby takes no writes: another server has become the primary.
  '25006': 'elsewhere',
  // A transaction was idle for too long: this process stood still.
  '25P03': 'elsewhere',
  // A transaction took too long: it was rolled back, and its session ended.
  '25P04': 'elsewhere',
  '53300': 'elsewhere',
  '57P03': 'elsewhere',
  // The server ends the connection: perhaps after the commit, before the answer.
  '57P01': 'in-doubt',
  '57P02': 'in-doubt',
  '57P04': 'in-doubt',
  '57P05': 'in-doubt',
  '08': 'in-doubt',
  // A disk, or a pooler or proxy with words of its own: nobody knows how far it came.
  '58': 'in-doubt',
  XX000: 'in-doubt',
  '28': 'refused',
  '42501': 'refused',
  // Out of memory: the transaction was rolled back.
  '53200': 'again',
  '53': 'full',
  '22': 'corrupt',
  '23': 'corrupt',
  '42': 'corrupt',
  XX001: 'corrupt',
  XX002: 'corrupt',
  '3D000': 'unfit',
}

/**
 * Classifies the error of a call. `hasLeft`: whether the call may have reached the server. `isConnecting`: whether it came before there was
 * a session, perhaps from a pooler or a proxy in front of the server.
 */
export function postgresFailure(error: unknown, hasLeft: boolean, isConnecting = false): PostgresFailure {
  const code = sqlStateOf(error)
  if (code === undefined) return hasLeft ? 'in-doubt' : 'elsewhere'
  const failure = failures[code] ?? failures[code.slice(0, 2)] ?? (isConnecting ? 'elsewhere' : 'corrupt')
  return failure === 'in-doubt' && !hasLeft ? 'elsewhere' : failure
}

/** Whether the server refuses a user or password. */
export function isLoginRefused(error: unknown): boolean {
  return sqlStateOf(error)?.startsWith('28') === true
}

/** Whether the server answered one call with an error and keeps the session, in which other calls may be under way. */
export function isOfOneCall(error: unknown): boolean {
  return (error as { severity?: unknown } | undefined)?.severity === 'ERROR'
}

/** The typed error. `where` names the server without secrets. */
export function postgresError(where: string, error: unknown, failure: PostgresFailure): Error {
  const said = messageOf(error).trimEnd().replace(/\.$/, '')
  switch (failure) {
    case 'full':
      return new StoreFullError(
        `the Postgres at ${where} has no room left (${said}). Nothing was changed; workers can go on.`,
      )
    case 'refused':
      return new StoreRefusedError(
        `the Postgres at ${where} refuses Millrace: ${said}. Check the user and the password in the store's address, and the user's rights.`,
      )
    case 'unfit':
      return unfit(`the Postgres at ${where} says: ${said}. Create it first.`)
    case 'corrupt':
      return new StoreCorruptError(
        `the Postgres at ${where} holds something that is not Millrace's, or is damaged, in the store's schema (${said}). Give the store a schema of its own.`,
      )
    case 'locked':
      return lockedError(`the Postgres at ${where} has rows that this call needs`)
    case 'in-doubt':
      return new StoreUnavailableError(
        `the connection to the Postgres at ${where} was lost before the answer came (${said}). Whether the call was carried out is in doubt.`,
      )
    default:
      return new StoreUnavailableError(
        `the Postgres at ${where} cannot be used now: ${said}. Nothing was changed by this call; try again.${sqlStateOf(error) === '57014' ? " If it is always so: 'statement_timeout' is too short for the role that the store connects as." : ''}`,
        { inDoubt: false },
      )
  }
}

/** `what`: what a transaction of somebody else has. */
export function lockedError(what: string): StoreUnavailableError {
  const error = new StoreUnavailableError(
    `${what} in a transaction that is still open (perhaps one with completeIn or enqueueIn). Nothing was changed by this call. End that transaction, and try again: pg_stat_activity lists the transactions that are open, the oldest by xact_start.`,
    { inDoubt: false },
  )
  locked.add(error)
  return error
}

const locked = new WeakSet<object>()

/** Whether it is an error that `lockedError` has made. */
export function isLocked(error: unknown): boolean {
  return locked.has(error as object)
}

/** The code of an error that the server reported; undefined for one of the driver or the network. */
function sqlStateOf(error: unknown): string | undefined {
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown }
  return typeof code === 'string' && typeof severity === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}
