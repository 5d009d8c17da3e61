/** The errors of the Redis store: classifies what a server or socket reported, and makes the typed error. Pure. */

import {
  isMillraceError,
  StoreCorruptError,
  StoreFullError,
  StoreRefusedError,
  StoreUnavailableError,
} from '../../../core/errors.js'
import { messageOf } from '../../../core/messages/describe.js'
import { ScriptRefusal } from './redis-script.js'

/**
 * The result of a failed call.
 * `unknown-script`: send the text · `not-executed`: may be sent again · `in-doubt`: sent, and perhaps executed ·
 * `full`, `unwritable`: not executed, and trying again soon does not help · `corrupt`: the stored data is not
 * Millrace's · `refused`: a right or a password is missing · `script-refusal`: Millrace's own script refused
 */
export type RedisFailure =
  | 'unknown-script'
  | 'not-executed'
  | 'in-doubt'
  | 'full'
  | 'unwritable'
  | 'corrupt'
  | 'refused'
  | 'script-refusal'

/** The words of servers that have executed nothing and soon will, each with the reason for people. */
const notExecuted: Readonly<Record<string, string>> = {
  LOADING: 'it is loading its data from disk',
  MASTERDOWN: 'it is a replica that has lost its master',
  CLUSTERDOWN: "slots of the cluster are served by nobody: see 'redis-cli --cluster check'",
  TRYAGAIN: 'the keys asked for are being moved to another node of the cluster',
  MOVED: 'the slot asked for keeps moving between the nodes of the cluster',
  ASK: 'the slot asked for is being moved to another node of the cluster',
  BUSY: "a script keeps it busy: see 'redis-cli slowlog get', end it with 'SCRIPT KILL'",
  READONLY: 'it is a replica and takes no writes: either a failover is under way, or it is the wrong server',
  NOREPLICAS: "fewer replicas are connected than its 'min-replicas-to-write' asks for",
  UNBLOCKED: 'it has become a replica',
}

const refusedWords = new Set(['NOAUTH', 'WRONGPASS', 'NOPERM'])

/** Classifies the error of a call. `hasLeft`: whether the call may have reached the server. */
export function failureOf(error: unknown, hasLeft: boolean): RedisFailure {
  if (!isReply(error)) return hasLeft ? 'in-doubt' : 'not-executed'
  const word = wordOf(error)
  if (word === 'NOSCRIPT') return 'unknown-script'
  if (word === 'MILLRACE') return 'script-refusal'
  if (notExecuted[word] !== undefined) return 'not-executed'
  if (word === 'OOM') return 'full'
  if (word === 'MISCONF') return 'unwritable'
  if (
    refusedWords.has(word) ||
    /^ERR (?:unknown command|.*\bAUTH\b|The user executing the script can't)/.test(error.message)
  )
    return 'refused'
  // Only a script that has written nothing can be killed.
  if (/^ERR max number of clients|Script killed by user/.test(error.message)) return 'not-executed'
  return 'corrupt'
}

/** Whether the server refuses a user or password, and has executed nothing. */
export function isLoginRefused(error: unknown): boolean {
  return isReply(error) && ['NOAUTH', 'WRONGPASS'].includes(wordOf(error))
}

/** Whether the server accepts no writes: the way to the master must be looked up again. */
export function isReadOnly(error: unknown): boolean {
  return isReply(error) && wordOf(error) === 'READONLY'
}

/** The typed error for a failed call. `where` names the server without secrets. */
export function redisError(where: string, error: unknown, failure: RedisFailure): Error {
  // The client's error must not become the cause: it may contain the words of a command, including passwords.
  const said = saidBy(error)
  switch (failure) {
    case 'script-refusal':
      return new ScriptRefusal(said.split(' ')[1] ?? '')
    case 'full':
      return new StoreFullError(
        `the Redis at ${where} has no memory left (${said}). Nothing was changed; workers can go on. Let them catch up, or raise its 'maxmemory'.`,
      )
    case 'unwritable':
      return new StoreUnavailableError(
        `the Redis at ${where} refuses all writes because it cannot save to its disk (${said}). Nothing was changed. ` +
          `See its log; free space where its 'dir' is, or mend the rights there; it takes writes again after its next save ('BGSAVE').`,
        { inDoubt: false },
      )
    case 'refused':
      return new StoreRefusedError(`the Redis at ${where} refuses Millrace: ${remedyOf(said)}`)
    case 'corrupt':
      return new StoreCorruptError(
        `the Redis at ${where} holds something that is not Millrace's, or is damaged, under the store's keys (${said}). ` +
          'Give the store a namespace of its own, or look at the keys that begin with its namespace.',
      )
    case 'in-doubt':
      return new StoreUnavailableError(
        `the connection to the Redis at ${where} was lost before the answer came (${said}). Whether the call was carried out is in doubt.`,
      )
    default:
      return new StoreUnavailableError(
        isReply(error)
          ? `the Redis at ${where} cannot be used now: ${notExecuted[wordOf(error)] ?? said}. Nothing was changed by this call; try again.`
          : `the Redis at ${where} cannot be reached: ${said}.${hintOn(where, said)} Nothing was changed by this call; try again.`,
        { inDoubt: false },
      )
  }
}

/** The error if the server refuses a login that `connect` has given, after it has taken an earlier one. */
export function loginRefused(where: string, error: unknown): StoreUnavailableError {
  return new StoreUnavailableError(
    `the Redis at ${where} refuses the login that 'connect' gives (${saidBy(error)}). It is asked for again at each connection. Nothing was changed by this call; try again.`,
    { inDoubt: false },
  )
}

/** The error if fewer replicas than required have confirmed the call in time. */
export function tooFewReplicas(where: string, asked: number, confirmed: number): StoreUnavailableError {
  return new StoreUnavailableError(
    `the call is stored at ${where}, but ${confirmed} of ${asked} replicas have it after 1 s; a failover could lose it, so it counts as in doubt. ` +
      "Check the replicas ('INFO replication'), or lower 'replicas'.",
  )
}

/** The error if no server could be asked in time. `last` is the error of the last attempt to connect. */
export function unreachable(where: string, last: unknown): Error {
  if (isMillraceError(last)) return last
  // The server was reached, but was unusable all this time.
  if (isReply(last)) return redisError(where, last, failureOf(last, false))
  const why = last === undefined ? 'no connection could be made in time' : wordsOf(last)
  return new StoreUnavailableError(
    `the Redis at ${where} cannot be reached: ${why}.${hintOn(where, why)} Nothing was changed; try again.`,
    { inDoubt: false },
  )
}

/** The likely cause of a failure whose own words name none, as a sentence; '' for any other failure. */
function hintOn(where: string, said: string): string {
  if (/Last error: (?:NOAUTH|WRONGPASS|NOPERM)/.test(said))
    return " The Sentinels refuse the login: check the store's 'sentinelUsername' and 'sentinelPassword'."
  if (!where.startsWith('rediss'))
    return where.startsWith('redis') && isCut(said)
      ? " If the server speaks at this port only with TLS, the address begins with 'rediss:'."
      : ''
  // The server's refusal reaches the client as an alert, unless the connection breaks while the client still writes.
  const mayWantCertificate = /ECONNRESET|EPIPE|alert (?:certificate required|handshake failure)/.test(said)
  return [
    mayWantCertificate
      ? " A server that requires a client certificate ends connections in this way: check the store's 'tls'."
      : '',
    isCut(said) ? " If the server speaks at this port without TLS, the address begins with 'redis:'." : '',
  ].join('')
}

/** Whether a connection was made and then ended, or answered in another protocol. */
function isCut(said: string): boolean {
  return /ECONNRESET|EPIPE|^Connection is closed|wrong version number|before secure TLS/.test(said)
}

/** The text of the server's or client's error. */
function saidBy(error: unknown): string {
  const said = wordsOf(error)
  // ioredis's error for calls that ran when the connection ended. It names an option of Millrace, not of the user.
  return said.startsWith('Reached the max retries per request') ? 'the connection ended' : said
}

/** The message without its end: OpenSSL ends its messages with a line break, others with a full stop. */
function wordsOf(error: unknown): string {
  return messageOf(error).trimEnd().replace(/\.$/, '')
}

/** Whether a server replied with this error. Any other error is the client's, about its connection. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && (error.name === 'ReplyError' || /^Too many Cluster redirections/.test(error.message))
}

/** The first word of a reply. If the client gave up following redirections, that of the last reply. */
function wordOf({ message }: Error): string {
  return message.replace(/^Too many Cluster redirections\..*?ReplyError: /, '').split(' ', 1)[0]!
}

function remedyOf(said: string): string {
  const command = /run the '([^']+)' command/.exec(said)?.[1] ?? /unknown command '([^']+)'/i.exec(said)?.[1]
  if (command !== undefined) return `it may not run '${command}' (${said}). Grant the user '+${command}'.`
  if (/^NOPERM.*channel/.test(said)) return `a right is missing (${said}). Grant the user '&<namespace>*'.`
  if (/^NOPERM/.test(said)) return `a right is missing (${said}). Grant the user '~{<namespace>*'.`
  return `${said}. Check the user and the password in the store's address.`
}
