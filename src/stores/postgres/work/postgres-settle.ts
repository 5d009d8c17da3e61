/** Settling claims in a Postgres store. Jobs that complete together are removed by one statement. */

import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '../../../core/platform/clock.js'
import type { SettleAnswer, SettleItem } from '../../contract/settle.js'
import { isLed } from '../../rules/wake-lead.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { completeIds } from '../ordered/ordered-end-functions.js'
import { lookAtJobs } from './end-functions.js'
import { type EndingRow, type JobEnd, resultIn, settledBy, settledId } from './job-end.js'
import { ringFor, ringFreed } from './limited-ring.js'
import { placesBy } from './places-by.js'
import type { PostgresRecovery } from './postgres-recovery.js'
import { lookForWork } from './postgres-ring.js'
import type { NumberedQueue, PostgresQueues } from './postgres-settings.js'
import { completeJobs } from './step-function.js'

/** How long the settle of a job waits for somebody else who has locked it, and how often it looks. */
const lockedMs = 2_000
const lockedPauseMs = 50

interface LookedAt extends Partial<EndingRow> {
  readonly id: string
}

export class PostgresSettle {
  readonly #connection: PostgresConnection
  readonly #queues: PostgresQueues
  readonly #recovery: PostgresRecovery

  constructor(connection: PostgresConnection, queues: PostgresQueues, recovery: PostgresRecovery) {
    this.#connection = connection
    this.#queues = queues
    this.#recovery = recovery
  }

  /** See `Store.settle`. */
  async settle(items: readonly SettleItem[]): Promise<SettleAnswer[]> {
    if (new Set(items.map(({ id }) => id)).size === items.length) return this.#settleOnce(items)
    const answers = new Array<SettleAnswer>(items.length)
    // A second item for a job finds what the first has made of it.
    for (let left = [...items.keys()]; left.length > 0; ) {
      const firsts = new Set(placesBy(left, (i) => jobOf(items[i]!)).map(([n]) => left[n!]!))
      const settled = await this.#settleOnce([...firsts].map((i) => items[i]!))
      for (const [n, i] of [...firsts].entries()) answers[i] = settled[n]!
      left = left.filter((i) => !firsts.has(i))
      // The result that the first has kept may be trimmed by now: its job was still there when its claim had ended.
      const kept = new Set(
        [...firsts].filter((i) => answers[i] === 'ok' && keepsResult(items[i]!)).map((i) => jobOf(items[i]!)),
      )
      for (const i of left) if (kept.has(jobOf(items[i]!))) answers[i] = 'lost'
      left = left.filter((i) => answers[i] === undefined)
    }
    return answers
  }

  /** The same for items of which no two are for the same job. */
  async #settleOnce(items: readonly SettleItem[]): Promise<SettleAnswer[]> {
    const queues = await this.#queues.holding(items)
    const answers = new Array<SettleAnswer>(items.length).fill('ok')
    const isBare = items.map(leavesNothing)
    const groups = placesBy(items, ({ fence }, i) => `${queues[i]!.qid} ${isBare[i] ? fence : ''}`)
    await Promise.all(
      groups.map(async (places) => {
        const queue = queues[places[0]!]!
        const left = isBare[places[0]!] ? await this.#complete(queue, items, places) : places
        await this.#endEach(queue, items, left, answers)
      }),
    )
    const moved = await this.#queues.movedSince(queues, items, (i) => answers[i] === 'gone')
    const again = moved.length === 0 ? [] : await this.#settleOnce(moved.map((i) => items[i]!))
    for (const [n, i] of moved.entries()) answers[i] = again[n]!
    return answers
  }

  /** Completes jobs of one claim. Returns the places of those of which something else has to be known. */
  async #complete(queue: NumberedQueue, items: readonly SettleItem[], places: readonly number[]): Promise<number[]> {
    const { fence } = items[places[0]!]!
    const ids = places.map((i) => items[i]!.id)
    const missing =
      queue.kind === 'ordered'
        ? await this.#completeIds(queue, fence, ids)
        : await this.#completeJobs(
            queue,
            fence,
            places.map((i) => items[i]!),
          )
    const left = new Set(missing)
    return places.filter((i) => left.has(items[i]!.id))
  }

  /** Returns the ids that did not end. */
  async #completeJobs(queue: NumberedQueue, fence: number, items: readonly SettleItem[]): Promise<string[]> {
    const ids = items.map(({ id }) => id)
    const answer = await this.#connection.call(completeJobs, [queue.qid, fence, ids, ...resultColumns(items)])
    const [missing, told, freed] = (answer ?? [[], null, false]) as [string[], number | null, boolean]
    if (freed) ringFreed(this.#connection, queue.qid)
    await this.#recovery.ended(queue, told !== null, told)
    return missing
  }

  /** The same for ordered ids. */
  async #completeIds(queue: NumberedQueue, fence: number, ids: readonly string[]): Promise<string[]> {
    const answer = await this.#connection.call(completeIds, [queue.qid, fence, ids])
    const [missing, now, wakeAt, freed] = answer as [string[], now: number, wakeAt: number | null, freed: boolean]
    await this.#recovery.ended(queue, false, null)
    if (freed) ringFreed(this.#connection, queue.qid)
    await this.#ringAt(queue, wakeAt, now)
    return missing
  }

  /**
   * Looks at jobs, decides what becomes of them, and carries that out; begins anew with those that have changed meanwhile. A job
   * that a transaction of its user ends is waited for shortly; then its claim is lost to that transaction.
   */
  async #endEach(
    queue: NumberedQueue,
    items: readonly SettleItem[],
    places: readonly number[],
    answers: SettleAnswer[],
  ): Promise<void> {
    const settles = queue.kind === 'ordered' ? settledId : settledBy
    const until = systemClock.mono() + lockedMs
    let left = places
    while (left.length > 0) {
      const looked = await this.#connection.call(lookAtJobs, [queue.qid, left.map((i) => items[i]!.id)])
      const [now, found] = looked as [number, LookedAt[]]
      const rows = new Map(found.map((row) => [row.id, row]))
      const decided = new Map<number, JobEnd>()
      for (const i of left) {
        const row = rows.get(items[i]!.id)
        answers[i] = row === undefined ? 'gone' : 'lost'
        if (row?.fence !== items[i]!.fence || row.fence === 0) continue
        decided.set(i, settles(row as EndingRow, items[i]!))
      }
      const ends = [...decided.values()]
      const { done, woke, wakeAt } = await this.#recovery.end(queue, ends)
      const settled = ends.filter((_, n) => done[n])
      for (const [n, i] of [...decided.keys()].entries()) if (done[n]) answers[i] = 'ok'
      await this.#ringAt(queue, wakeAt === undefined ? dueAfter(settled, woke, now) : wakeAt, now)
      if (done.includes(null)) await delay(lockedPauseMs)
      const isLate = systemClock.mono() >= until
      left = [...decided.keys()].filter((_, n) => done[n] === false || (done[n] === null && !isLate))
    }
    if (queue.kind === 'plain' && places.some((i) => answers[i] === 'gone')) await this.#recovery.endedInside(queue)
  }

  /**
   * Something of the queue waits again from this instant on, unless the lead asks before; null: nothing does. Never rejects, as the
   * ends are committed: one ring too many does no harm.
   */
  async #ringAt({ qid }: NumberedQueue, due: number | null, now: number): Promise<void> {
    if (due === null) return
    const isReady = due <= now
    if (!isReady) {
      const found = (await this.#connection.call(lookForWork, [[qid], false]).catch(() => ({ queues: [] }))) as {
        queues: ({ lead: string | null; wake: number | null } | null)[]
      }
      const { lead = null, wake = null } = found.queues[0] ?? {}
      const known = lead === null || wake === null ? undefined : { worker: lead, wakeAt: wake }
      if (isLed(known, now) && known.wakeAt <= due) return
    }
    ringFor(this.#connection, qid, !isReady)
  }
}

/** Results for joins, and their codecs; null for all of them if there are none. */
function resultColumns(items: readonly SettleItem[]): [results: unknown, codecs: unknown] {
  const ends = items.map(resultIn)
  const column = (name: 'result' | 'codec') =>
    ends.some((end) => end[name] !== undefined) ? ends.map((end) => end[name] ?? null) : null
  return [column('result'), column('codec')]
}

/** When the first of these jobs is due again; null: none waits. */
function dueAfter(ends: readonly JobEnd[], woke: boolean, now: number): number | null {
  if (woke) return now
  const dues = ends.flatMap(({ to, delay = 0 }) =>
    to === 'back' || to === 'line' ? [now] : to === 'later' ? [now + delay / 1_000] : [],
  )
  return dues.length === 0 ? null : Math.min(...dues)
}

function jobOf({ queue, id }: SettleItem): string {
  return `${queue} ${id}`
}

function keepsResult(item: SettleItem): boolean {
  return item.kind === 'complete' && item.result !== undefined && item.result.onlyForJoins !== true
}

/** Whether nothing of the job has to be kept or decided: it only goes, but perhaps its id is remembered. */
function leavesNothing(item: SettleItem): boolean {
  return (
    item.kind === 'complete' &&
    (item.result === undefined || item.result.onlyForJoins === true) &&
    item.hold === undefined &&
    item.fence > 0
  )
}
