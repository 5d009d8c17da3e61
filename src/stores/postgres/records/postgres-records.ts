/** Records of a Postgres store: administration of single jobs and whole queues, in bounded steps. */

import { UnsupportedByStoreError } from '../../../core/errors.js'
import type { JobState } from '../../../core/job/job.js'
import type { JobSelection, Records, Step, StoredJob } from '../../contract/job-records.js'
import { completed, dead, ready, running, scheduled, waiting } from '../../rows/job-row.js'
import { longestExpectMs, stepLimit } from '../../rules/bounds.js'
import { afterFailure } from '../../rules/claim-end.js'
import { changedFields } from '../../rules/field-changes.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { jobFlags } from '../schema/postgres-tables.js'
import { lookAtJobs } from '../work/end-functions.js'
import { type EndingRow, endedBy, type JobEnd } from '../work/job-end.js'
import { placesBy } from '../work/places-by.js'
import type { PostgresRecovery } from '../work/postgres-recovery.js'
import { ringQueue, topics } from '../work/postgres-ring.js'
import type { NumberedQueue, PostgresQueues } from '../work/postgres-settings.js'
import type { PostgresWait } from '../work/postgres-wait.js'
import { storedText } from '../work/stored-payload.js'
import { fieldsIn, PostgresLook } from './postgres-look.js'
import * as db from './record-functions.js'

interface SelectedRow extends EndingRow {
  readonly state: number
}

interface RecordsParts {
  readonly connection: PostgresConnection
  readonly queues: PostgresQueues
  readonly recovery: PostgresRecovery
  readonly wait: PostgresWait
}

/** A join goes before its members, whose ends would make it dead. */
const waitingStates = [waiting, ready, scheduled]

export function postgresRecords({ connection, queues, recovery, wait }: RecordsParts): Records {
  const look = new PostgresLook(connection, queues)

  /** One bounded step over the selected jobs in these states. `change` returns how many it has changed. */
  async function step(
    name: string,
    where: JobSelection,
    states: readonly number[],
    change: (queue: NumberedQueue, rows: readonly SelectedRow[]) => Promise<number>,
  ): Promise<Step> {
    const [{ shards }] = (await queues.sharded([name])) as [Awaited<ReturnType<PostgresQueues['sharded']>>[number]]
    refuseOrdered(shards[0]!)
    const ids = typeof where === 'object' ? [...new Set(where.ids)] : null
    let changed = 0
    let left = stepLimit + 1
    for (const queue of shards) {
      if (left <= 0) break
      const found = (await connection.call(db.selectJobs, [queue.qid, ids, where === 'failed', states, left])) as [
        number,
        SelectedRow[],
      ]
      const rows = found[1]
      left -= rows.length
      const taken = left <= 0 ? rows.slice(0, rows.length - 1) : rows
      if (taken.length > 0) changed += await change(queue, taken)
    }
    return { changed, more: left <= 0 }
  }

  async function endAll(queue: NumberedQueue, ends: readonly JobEnd[]): Promise<number> {
    const { done } = await recovery.end(queue, ends, true)
    return done.filter((is) => is).length
  }

  const ring = (queue: NumberedQueue) => void connection.call(ringQueue, [queue.qid, false]).catch(() => {})

  /** Removes jobs without a trace. */
  async function drop(queue: NumberedQueue, rows: readonly SelectedRow[]): Promise<number> {
    const gone = rows.filter(({ state }) => state !== completed && state !== dead)
    const ended = rows.filter(({ state }) => state === completed || state === dead)
    const changed =
      (await endAll(
        queue,
        gone.map((row) => ({ ...unchanged(row), to: 'gone' })),
      )) +
      (ended.length === 0
        ? 0
        : ((await connection.call(db.removeEnded, [
            queue.qid,
            ended.map(({ id }) => id),
            ended.map(({ state }) => state),
          ])) as number))
    if (changed > 0) await connection.call(db.noteLoss, [queue.qid])
    return changed
  }

  async function switchTo(name: string, paused: boolean | null, draining: boolean | null): Promise<void> {
    const [found] = await queues.sharded([name])
    const qids = [...found!.shards, ...found!.leaving].map(({ qid }) => qid)
    await connection.call(db.switchQueue, [qids, paused, draining])
  }

  return {
    queues: () => queues.stored(),
    get: (name, id) => look.get(name, id),
    list: (name, query) => look.list(name, query),

    cancel: (name, where, reason) =>
      step(name, where, [...waitingStates, running], async (queue, rows) => {
        const why = reason === undefined ? null : storedText(reason)
        const asked = rows.filter(({ state }) => state === running)
        const ends = rows.filter(({ state }) => state !== running).map((row) => endedBy(row, 'cancelled', why))
        const changed = await endAll(queue, ends)
        if (asked.length === 0) return changed
        const values = [queue.qid, asked.map(({ id }) => id), asked.map(({ fence }) => fence), why]
        return changed + ((await connection.call(db.askToCancel, values)) as number)
      }),

    delete: (name, where) =>
      step(name, where, typeof where === 'object' ? [...waitingStates, completed] : waitingStates, drop),

    runNow: (name, where) =>
      step(name, where, [scheduled], async (queue, rows) => {
        const changed = await endAll(
          queue,
          rows.map((row) => ({ ...unchanged(row), to: 'line' })),
        )
        if (changed > 0) ring(queue)
        return changed
      }),

    bury: (name, where) =>
      step(name, where, waitingStates, (queue, rows) =>
        endAll(
          queue,
          rows.map((row) => ({ ...unchanged(row), to: 'dead', reason: 'buried' })),
        ),
      ),

    async fail(name, id, { delayMs, last = false, reason }) {
      const [queue] = await queues.holding([{ queue: name, id }])
      refuseOrdered(queue!)
      for (;;) {
        const [, [row]] = (await connection.call(lookAtJobs, [queue!.qid, [id]])) as [number, EndingRow[]]
        if (row === undefined || !(row.fence > 0)) return 'gone'
        const cancelRequested = (row.flags & jobFlags.cancelling) !== 0
        const job = {
          attempt: row.attempt,
          crashes: row.crashes,
          error: row.error,
          reason: row.reason ?? null,
          cancelRequested,
        }
        const { becomes, ...after } = afterFailure<string | null>({ last, error: reason }, job, false, (text) =>
          text === undefined ? null : storedText(text),
        )
        const end: JobEnd =
          becomes === 'cancelled'
            ? endedBy({ ...row, ...after }, 'cancelled', after.reason)
            : becomes === 'exhausted'
              ? { ...unchanged(row), ...after, to: 'dead', reason: storedText(reason) }
              : {
                  ...unchanged(row),
                  ...after,
                  pool: 0,
                  to: delayMs > 0 ? 'later' : 'line',
                  delay: Math.round(delayMs * 1_000),
                }
        const { done } = await recovery.end(queue!, [{ ...end, count: 'failed' }], true)
        if (!done[0]) continue
        if (end.to === 'line' || end.to === 'later')
          connection.call(ringQueue, [queue!.qid, end.to === 'later']).catch(() => {})
        return 'ok'
      }
    },

    async setFields(name, id, changes) {
      const [queue] = await queues.holding([{ queue: name, id }])
      refuseOrdered(queue!)
      for (;;) {
        const row = await look.shown(queue!, id)
        if (row === undefined || Number(row['state']) > waiting) return 'gone'
        const seen = row['fields'] as string | null
        const fields = changedFields(fieldsIn(seen), changes)
        if (fields === undefined) return 'full'
        const text = Object.keys(fields).length === 0 ? null : storedText(JSON.stringify(fields))
        if (await connection.call(db.writeFields, [queue!.qid, id, seen, text])) return 'ok'
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

    reshard: async () => {
      throw notYet('a reshard')
    },
    move: async () => {
      throw notYet('a move between queues')
    },

    morgue: {
      async get(name, id) {
        const job: StoredJob | undefined = await look.get(name, id)
        return job?.state === 'dead' ? job : undefined
      },
      list: (name, query) => look.list(name, { ...query, state: 'dead' as JobState }),
      revive: (name, where) =>
        step(name, where === 'failed' ? 'all' : where, [dead], async (queue, rows) => {
          const revived = await connection.call(db.reviveJobs, [queue.qid, rows.map(({ id }) => id)])
          const [changed, told] = revived as [number, number | null]
          await recovery.ended(queue, false, told)
          if (changed > 0) ring(queue)
          return changed
        }),
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

/** Their payloads are rows of their own, which no change here knows. */
function refuseOrdered({ kind }: NumberedQueue): void {
  if (kind === 'ordered') throw notYet('the administration of the jobs of an ordered queue')
}

function notYet(what: string): UnsupportedByStoreError {
  return new UnsupportedByStoreError('postgres', what, 'Use the SQLite or the Redis store.')
}
