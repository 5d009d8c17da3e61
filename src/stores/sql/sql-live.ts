/**
 * Live messages in a SQL store: the watchers of each queue, each with the end of its watch unless it is renewed, and the
 * last messages. Nothing is written while nobody watches.
 */

import { all, first, run, type SqlSteps } from './sql-steps.js'

/** The most messages, of all queues, that are kept for watchers that have not read them yet. */
const mostMessages = 1_000
/** The most messages that are read at once. */
const mostRead = 100

export function* isWatched(queue: string, now: number): SqlSteps<boolean> {
  return (yield* first('SELECT 1 FROM live_watch WHERE queue = ? AND until > ? LIMIT 1', queue, now)) !== undefined
}

/** Writes the message only if the queue is watched. Returns whether it is. */
export function* publishLive(queue: string, message: string, now: number): SqlSteps<boolean> {
  if (!(yield* isWatched(queue, now))) return false
  const written = yield* first<{ seq: number }>(
    'INSERT INTO live_message (seq, queue, message) SELECT coalesce(max(seq), 0) + 1, ?, ? FROM live_message RETURNING seq',
    ...[queue, message],
  )
  // The newest is never removed: the next number follows from it.
  yield* trim(written!.seq - mostMessages)
  return true
}

/**
 * Watches for `forMs` from now. Returns the number of the last message, and whether the watch went on without a break.
 * If not, messages in between were not kept for it.
 */
export function* watchLive(
  queue: string,
  watcher: string,
  forMs: number,
  now: number,
): SqlSteps<{ readonly last: number; readonly isRenewed: boolean }> {
  yield* run('DELETE FROM live_watch WHERE until <= ?', now)
  const until = now + forMs
  const renewed = yield* run('UPDATE live_watch SET until = ? WHERE queue = ? AND watcher = ?', until, queue, watcher)
  if (renewed === 0)
    yield* run('INSERT INTO live_watch (queue, watcher, until) VALUES (?, ?, ?)', queue, watcher, until)
  return { last: yield* numberOf('max'), isRenewed: renewed === 1 }
}

export function* unwatchLive(queue: string, watcher: string): SqlSteps<void> {
  yield* run('DELETE FROM live_watch WHERE queue = ? AND watcher = ?', queue, watcher)
  const anyone = yield* first<{ until: number | null }>('SELECT min(until) AS until FROM live_watch')
  if (anyone!.until === null) yield* trim((yield* numberOf('max')) - 1)
}

export interface ReadMessages {
  readonly messages: string[]
  /** The number of the last message that exists, or of the last one read if `more` are left. */
  readonly last: number
  /** Some in between were removed unread, perhaps some of this queue. */
  readonly isGap: boolean
  readonly more: boolean
}

/** The messages after that number. */
export function* readLive(queue: string, after: number): SqlSteps<ReadMessages> {
  const rows = yield* all<{ seq: number; message: string }>(
    'SELECT seq, message FROM live_message WHERE seq > ? AND queue = ? ORDER BY seq LIMIT ?',
    ...[after, queue, mostRead],
  )
  const oldest = yield* numberOf('min')
  const last = yield* numberOf('max')
  const more = rows.length === mostRead
  return {
    messages: rows.map(({ message }) => message),
    last: more ? rows.at(-1)!.seq : Math.max(after, last),
    isGap: oldest > after + 1,
    more,
  }
}

function* trim(upTo: number): SqlSteps<void> {
  yield* run('DELETE FROM live_message WHERE seq <= ?', upTo)
}

/** The number of the first or last message; 0 if there is none. */
function* numberOf(which: 'min' | 'max'): SqlSteps<number> {
  const found = yield* first<{ seq: number | null }>(`SELECT ${which}(seq) AS seq FROM live_message`)
  return found!.seq ?? 0
}
