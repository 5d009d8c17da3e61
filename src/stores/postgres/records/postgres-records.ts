/** Records of a Postgres store: administration of single jobs and whole queues, in bounded steps. */

import { setTimeout as delay } from 'node:timers/promises'
import type { JobState } from '../../../core/job/job.js'
import { systemClock } from '../../../core/platform/clock.js'
import type { JobSelection, Records, Step } from '../../contract/job-records.js'
import { completed, dead, running, scheduled, waiting, waitingStates } from '../../rows/job-row.js'
import { longestExpectMs, stepLimit, stepPayloads } from '../../rules/bounds.js'
import { changedFields } from '../../rules/field-changes.js'
import { refuseNewPlace } from '../../rules/queue-form.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { lockedError } from '../client/postgres-errors.js'
import { reviveIds, runNextNow } from '../ordered/ordered-admin.js'
import { storedText } from '../schema/stored-payload.js'
import { lookAtJobs } from '../work/end-functions.js'
import { type EndingRow, endedBy, type JobEnd } from '../work/job-end.js'
import { ringFor } from '../work/limited-ring.js'
import { placesBy } from '../work/places-by.js'
import type { PostgresRecovery } from '../work/postgres-recovery.js'
import type { PostgresReshard } from '../work/postgres-reshard.js'
import { topics } from '../work/postgres-ring.js'
import type { NumberedQueue, PostgresQueues } from '../work/postgres-settings.js'
import type { PostgresSettle } from '../work/postgres-settle.js'
import type { PostgresWait } from '../work/postgres-wait.js'
import { selectJobs } from './listing-functions.js'
import { fieldsIn, PostgresLook } from './postgres-look.js'
import * as db from './record-functions.js'

interface SelectedRow extends EndingRow {
  readonly state: number
  /** Of an ordered id: how many payloads are not in hand. */
  readonly payloads: number
}

/** How long an action on single jobs waits for somebody else who has locked them, and how often it tries. */
const lockedMs = 2_000
/** The same for an action on a whole queue, which then passes over them. */
const passedOverMs = 500
const lockedPauseMs = 50

interface RecordsParts {
  readonly connection: PostgresConnection
  readonly queues: PostgresQueues
  readonly recovery: PostgresRecovery
  readonly settle: PostgresSettle
  readonly wait: PostgresWait
  readonly reshards: PostgresReshard
}

export function postgresRecords({ connection, queues, recovery, settle, wait, reshards }: RecordsParts): Records {
  const look = new PostgresLook(connection, queues, reshards)

  /** One bounded step over the selected jobs in these states. `change` returns how many it has changed. */
  async function step(
    name: string,
    where: JobSelection,
    states: readonly number[],
    change: (queue: NumberedQueue, rows: readonly SelectedRow[]) => Promise<number>,
    { next = false, again = false } = {},
  ): Promise<Step> {
    const { shards, leaving } = await queues.current(name)
    const ids = typeof where === 'object' ? [...new Set(where.ids)] : null
    let changed = 0
    let left = stepLimit
    let payloads = 0
    for (const queue of [...shards, ...leaving]) {
      const select = async (these: readonly string[] | null, most: number) => {
        const values = [queue.qid, these, where === 'failed', states, next, again, most]
        return (await connection.call(selectJobs, values)) as SelectedRow[]
      }
      const rows = await select(ids, left + 1)
      const taken: SelectedRow[] = []
      for (const row of rows) {
        if (taken.length === left || payloads >= stepPayloads) break
        taken.push(row)
        payloads += Number(row.payloads)
      }
      left -= taken.length
      const until = systemClock.mono() + (ids === null ? passedOverMs : lockedMs)
      for (let these = taken; these.length > 0; ) {
        const done = await change(queue, these)
        changed += done
        if (done === these.length) break
        // Others have begun or ended meanwhile.
        these = await select(
          these.map(({ id }) => id),
          these.length,
        )
        if (done > 0 || these.length === 0) continue
        // A transaction of a user ends these jobs; of a whole queue all others have been changed.
        if (systemClock.mono() >= until) {
          if (ids === null) break
          throw lockedJob(name, these[0]!.id)
        }
        await delay(lockedPauseMs)
      }
      if (rows.length > taken.length) return { changed, more: true }
    }
    return { changed, more: false }
  }

  async function endAll(queue: NumberedQueue, ends: readonly JobEnd[]): Promise<number> {
    const { done } = await recovery.end(queue, ends)
    return done.filter((is) => is).length
  }

  const ring = (queue: NumberedQueue) => ringFor(connection, queue.qid, false)

  /** Removes jobs without a trace. */
  async function drop(queue: NumberedQueue, rows: readonly SelectedRow[]): Promise<number> {
    const gone = rows.filter(({ state }) => state !== completed && state !== dead)
    const ended = rows.filter(({ state }) => state === completed || state === dead)
    let changed = await endAll(
      queue,
      gone.map((row) => ({ ...unchanged(row), to: 'gone' })),
    )
    if (ended.length > 0) {
      const values = [queue.qid, ended.map(({ id }) => id), ended.map(({ state }) => state)]
      const [removed, told] = (await connection.call(db.removeEnded, values)) as [number, number | null]
      await recovery.ended(queue, false, told)
      changed += removed
    }
    if (changed > 0) await connection.call(db.noteLoss, [queue.qid])
    return changed
  }

  async function switchTo(name: string, paused: boolean | null, draining: boolean | null): Promise<void> {
    await queues.everywhere(name, (shards) =>
      connection.call(db.switchQueue, [shards.map(({ qid }) => qid), paused, draining]),
    )
  }

  return {
    queues: () => queues.stored(),
    get: (name, id) => look.get(name, id),
    list: (name, query) => look.list(name, query),

    cancel: (name, where, reason) =>
      step(name, where, [...waitingStates, running], async (queue, rows) => {
        const why = reason === undefined ? null : storedText(reason)
        const asked = rows.filter(({ state }) => state === running)
        const ends = rows
          .filter(({ state }) => state !== running)
          .map((row): JobEnd => (isOrdered(queue) ? { ...unchanged(row), to: 'gone' } : endedBy(row, 'cancelled', why)))
        const changed = await endAll(queue, ends)
        if (asked.length === 0) return changed
        const values = [queue.qid, asked.map(({ id }) => id), asked.map(({ fence }) => fence), why]
        return changed + ((await connection.call(db.askToCancel, values)) as number)
      }),

    delete: (name, where) =>
      step(name, where, typeof where === 'object' ? [...waitingStates, completed] : waitingStates, drop),

    runNow: (name, where) =>
      step(
        name,
        where,
        [scheduled, running],
        async (queue, rows) => {
          const behind = rows.filter(({ state }) => state === running)
          const ends = rows
            .filter(({ state }) => state !== running)
            .map((row): JobEnd => ({ ...unchanged(row), to: 'line' }))
          const changed = await endAll(queue, ends)
          if (changed > 0) ring(queue)
          if (behind.length === 0) return changed
          const values = [queue.qid, behind.map(({ id }) => id), behind.map(({ fence }) => fence)]
          return changed + ((await connection.call(runNextNow, values)) as number)
        },
        { next: true },
      ),

    async reschedule(name, ids, { priority, delayMs, runAt }) {
      const { shards, leaving } = await queues.current(name)
      let changed = 0
      for (const queue of [...shards, ...leaving]) {
        refuseNewPlace(name, queue.kind)
        const at = runAt === undefined ? null : Math.trunc(runAt) * 1_000
        const forUs = delayMs === undefined ? null : Math.ceil(delayMs) * 1_000
        const until = systemClock.mono() + lockedMs
        for (let these = ids; these.length > 0; ) {
          const values = [queue.qid, these, priority === undefined ? null : 0 - priority, at, forUs]
          const [done, locked, isLater] = (await connection.call(db.placeJobs, values)) as [number, string[], boolean]
          changed += done
          if (done > 0) ringFor(connection, queue.qid, isLater)
          these = locked
          if (locked.length === 0) break
          if (done === 0 && systemClock.mono() >= until) throw lockedJob(name, locked[0]!)
          await delay(lockedPauseMs)
        }
      }
      return changed
    },

    bury: (name, where) =>
      step(name, where, waitingStates, (queue, rows) =>
        endAll(
          queue,
          rows.map((row) => ({ ...unchanged(row), to: 'dead', reason: 'buried' })),
        ),
      ),

    async fail(name, id, { delayMs, last = false, reason }) {
      for (let fence: number | undefined; ; ) {
        const queue = await reshards.homeOf(name, id)
        const [, [row]] = (await connection.call(lookAtJobs, [queue.qid, [id]])) as [number, Partial<EndingRow>[]]
        if (!row?.fence) return 'gone'
        // Its claim is held, and yet it could not be settled.
        if (row.fence === fence) throw lockedJob(name, id)
        const failure = { kind: 'retry', delayMs, last, error: reason, reason } as const
        const [answer] = await settle.settle([{ queue: name, id, fence: row.fence, ...failure }])
        if (answer === 'ok') return 'ok'
        fence = row.fence
      }
    },

    async setFields(name, id, changes) {
      for (;;) {
        const queue = await reshards.homeOf(name, id)
        const row = await look.shown(queue, id)
        const state = Number(row?.['state'])
        if (row === undefined || state > waiting || (state === dead && isOrdered(queue))) return 'gone'
        const seen = row['fields'] as string | null
        const fields = changedFields(fieldsIn(seen), changes)
        if (fields === undefined) return 'full'
        const text = Object.keys(fields).length === 0 ? null : storedText(JSON.stringify(fields))
        if (await connection.call(db.writeFields, [queue.qid, id, seen, text])) return 'ok'
      }
    },

    pause: (name) => switchTo(name, true, null),
    async resume(name) {
      await switchTo(name, false, false)
      const [found] = await queues.sharded([name])
      for (const queue of found!.shards) ring(queue)
    },
    drain: (name) => switchTo(name, null, true),

    async setLimits(name, change) {
      const limits = await queues.setLimits(name, change)
      for (const queue of (await queues.sharded([name]))[0]!.shards) ring(queue)
      return limits
    },

    clear: (name) => step(name, 'all', [...waitingStates, dead], drop),

    reshard: (name, shards) => reshards.reshard(name, shards),
    move: (from, to) => reshards.move(from, to),

    morgue: {
      get: (name, id) => look.getDead(name, id),
      list: (name, query) => look.list(name, { ...query, state: 'dead' as JobState }),
      revive: (name, where) =>
        step(
          name,
          where === 'failed' ? 'all' : where,
          [dead],
          async (queue, rows) => {
            const values = [queue.qid, rows.map(({ id }) => id)]
            const [changed, told] = isOrdered(queue)
              ? [(await connection.call(reviveIds, values)) as number, null]
              : ((await connection.call(db.reviveJobs, values)) as [number, number | null])
            await recovery.ended(queue, false, told)
            if (changed > 0) ring(queue)
            return changed
          },
          { again: true },
        ),
      delete: (name, where) => step(name, where === 'failed' ? 'all' : where, [dead], drop),
    },

    async watch(jobs, forMs, signal) {
      const until = performance.now() + forMs
      const held = await queues.holding(jobs)
      const groups = placesBy(jobs, (_, i) => String(held[i]!.qid))
      const ear = await wait.ear(
        groups.map(([i]) => topics.endsOf(held[i!]!.qid)),
        signal,
      )
      try {
        for (;;) {
          await ear.attend()
          const ended = new Set<number>()
          for (const places of groups) {
            const ids = places.map((i) => jobs[i]!.id)
            const found = (await connection.call(db.endedOf, [held[places[0]!]!.qid, ids])) as string[]
            for (const i of places) if (found.includes(jobs[i]!.id)) ended.add(i)
          }
          const leftMs = until - performance.now()
          if (ended.size > 0) return jobs.filter((_, i) => ended.has(i))
          if (leftMs <= 0 || signal.aborted || ear.isOver()) return []
          await ear.heard(leftMs)
        }
      } finally {
        ear.stop()
      }
    },

    async expect(jobs, by, forMs) {
      const held = await queues.holding(jobs)
      for (const places of placesBy(jobs, (_, i) => String(held[i]!.qid))) {
        const queue = held[places[0]!]!
        if (queue.kind === 'ordered') continue
        const ids = places.map((i) => jobs[i]!.id)
        await connection.call(db.expectEnds, [queue.qid, ids, by, Math.round(Math.min(forMs, longestExpectMs))])
      }
    },
  }
}

function unchanged({ id, fence, attempt, crashes, error, pool }: EndingRow) {
  return { id, fence, attempt, crashes, error, pool: Math.max(pool, 0) }
}

function lockedJob(queue: string, id: string): Error {
  return lockedError(`job '${id}' of queue '${queue}' is ended`)
}

function isOrdered({ kind }: NumberedQueue): boolean {
  return kind === 'ordered'
}
