/** Recovery before a claim: expired leases become crashes, and jobs that nobody began in time end. */

import { systemClock } from '../../../core/platform/clock.js'
import type { Buried, Crash, Expired } from '../../contract/claim.js'
import { fates } from '../../rows/join-row.js'
import { rememberedForMs, trimLimit, upkeepLimit } from '../../rules/bounds.js'
import { afterCrash } from '../../rules/claim-end.js'
import { expiredReason } from '../../rules/sequence.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { endIds } from '../ordered/ordered-end-functions.js'
import { spareFrom } from '../schema/postgres-schema.js'
import { endedStates, jobFlags } from '../schema/postgres-tables.js'
import { sqlFunction } from '../schema/sql-function.js'
import { type ScoredColumns, scoredFrom, storedText } from '../schema/stored-payload.js'
import {
  crashedJobs,
  endJobs,
  expiredJobs,
  foldLeft,
  postponeLeases,
  retireBunches,
  spareLeases,
  trimEnded,
} from './end-functions.js'
import { type EndingRow, type EndReports, endedBy, type JobEnd } from './job-end.js'
import { ringFor, ringFreed } from './limited-ring.js'
import { tellAll, topics } from './postgres-ring.js'
import type { NumberedQueue } from './postgres-settings.js'

/**
 * Takes nothing. Returns the run of the server. The first call of a run renews the fences: the server may have forgotten numbers that
 * claims were given and did not wait for.
 */
const serverRun = sqlFunction(
  'server_run_2',
  '',
  'json',
  `BEGIN
  IF @.run()::text IS DISTINCT FROM (SELECT value FROM @.meta WHERE name = 'run') THEN
    -- Lock, and look in the next statement.
    PERFORM pg_advisory_xact_lock(@lock, 2);
    IF @.run()::text IS DISTINCT FROM (SELECT value FROM @.meta WHERE name = 'run') THEN
      PERFORM setval('@.fence_seq', greatest(nextval('@.fence_seq'), @.us()));
      INSERT INTO @.meta VALUES ('run', @.run()) ON CONFLICT (name) DO UPDATE SET value = excluded.value;
    END IF;
  END IF;
  RETURN to_json(@.run());
END`,
)

export const recoveryFunctions = [serverRun]

export interface CrashedRow extends EndingRow {
  readonly worker: string
  readonly alone: boolean
  /** The crashes at which the queue buries a job now: this process may have seen another number. */
  readonly crashLimit: number
}

interface CrashedAnswer {
  readonly now: number
  readonly run: number
  /** The run that the queue knows of, and until when its leases are spared. */
  readonly ownRun: number
  readonly spares: number
  readonly rows: CrashedRow[]
}

type TellJoins = EndReports['deliver']

/** A queue to which nothing is added is trimmed at most so often. */
const trimEveryMs = 1_000

/** The crashes and ends that the answer to the claim lists. */
export interface RecoveryReport {
  readonly crashed: Crash[]
  readonly buried: Buried[]
  readonly expired: Expired[]
  /** The number from which on there are reports for joins, to be delivered when the claim is over. */
  tellsFrom?: number
}

type JobEndsAnswer = [
  now: number,
  done: (boolean | null)[],
  told: number | null,
  woke: boolean,
  freed: boolean,
  isLimited: boolean,
]

type IdEndsAnswer = [
  now: number,
  done: boolean[],
  buried: (ScoredColumns | null)[],
  wakeAt: number | null,
  freed: boolean,
]

export class PostgresRecovery {
  readonly #connection: PostgresConnection
  readonly #reports: EndReports
  #run: Promise<number> | undefined
  /** When each queue is to be trimmed again though nothing was added to it, and the bounds that it was trimmed to. */
  readonly #trimmed = new Map<number, { readonly limits: string; readonly againAt: number }>()

  constructor(connection: PostgresConnection, reports: EndReports) {
    this.#connection = connection
    this.#reports = reports
  }

  /** The run of the server that this process knows. All fences of claims that know it are greater than those of the runs before. */
  run(): Promise<number> {
    if (this.#run === undefined) {
      const asked = this.#connection.call(serverRun, []) as Promise<number>
      this.#run = asked
      asked.catch(() => {
        this.#run = undefined
      })
    }
    return this.#run
  }

  /** The server has another run than the one that this process knows. */
  forgetRun(): void {
    this.#run = undefined
  }

  /**
   * Recovers at most `upkeepLimit` crashed jobs, and ends as many expired ones. `leaseMs`: the lease that the claim asks for.
   * Reports for joins are left to the caller.
   */
  async recover(queue: NumberedQueue, leaseMs: number, told: RecoveryReport): Promise<void> {
    const tell = async (from: number) => {
      told.tellsFrom = Math.min(from, told.tellsFrom ?? from)
    }
    await this.#crash(queue, leaseMs, told, tell)
    await this.#expire(queue, told, tell)
  }

  async #crash(queue: NumberedQueue, leaseMs: number, told: RecoveryReport, tell: TellJoins): Promise<void> {
    const found = (await this.#connection.call(crashedJobs, [queue.qid, upkeepLimit])) as CrashedAnswer
    const { now, run, ownRun, rows } = found
    let { spares } = found
    if (rows.length > 0 && run !== ownRun) {
      spares = spareFrom(run, ownRun, now) + leaseMs
      await this.#connection.call(spareLeases, [queue.qid, run, Math.round(spares)])
    }
    if (spares <= now) await this.crash(queue, rows, told, undefined, tell)
    // Jobs of the same claims may go on with leases of their own.
    await this.#connection.call(retireBunches, [queue.qid])
  }

  /**
   * Ends running jobs as crashes, as far as their leases are still over, or as far as the worker `died` still holds them. `error`: how
   * it died; absent: their last errors stay.
   */
  async crash(
    queue: NumberedQueue,
    rows: readonly CrashedRow[],
    told: Omit<RecoveryReport, 'expired'>,
    died?: { readonly worker: string; readonly error: string | undefined },
    tell?: TellJoins,
  ): Promise<void> {
    const ends = rows.map((row) => ({ row, ...afterCrash(crashedClaim(row), row.crashLimit) }))
    const why = died === undefined ? { lapsed: true } : { heldBy: died.worker }
    const { done, buried } = await this.end(
      queue,
      ends.map(({ row, crashes, becomes }) => {
        const error = died?.error === undefined ? row.error : storedText(died.error)
        return { ...crashEnd(queue, { ...row, error }, crashes, becomes), ...why }
      }),
      tell,
    )
    const locked = rows.filter((_, i) => done[i] === null)
    if (locked.length > 0)
      await this.#connection.call(postponeLeases, [
        queue.qid,
        locked.map(({ id }) => id),
        locked.map(({ fence }) => fence),
      ])
    for (const [i, { row, crashes, becomes }] of ends.entries()) {
      if (!done[i]) continue
      const { id, task, worker, alone, fence } = row
      told.crashed.push({ queue: queue.name, id, task, worker, charged: alone, crashes })
      const payload = buried?.[i]
      if (becomes === 'dead')
        told.buried.push({
          ...{ queue: queue.name, id, task, reason: 'crashed', fence },
          ...(payload ? { payload: scoredFrom(payload) } : {}),
        })
    }
  }

  async #expire(queue: NumberedQueue, told: RecoveryReport, tell: TellJoins): Promise<void> {
    const rows = (await this.#connection.call(expiredJobs, [queue.qid, upkeepLimit])) as EndingRow[]
    if (rows.length === 0) return
    const { done } = await this.end(
      queue,
      rows.map((row) => ({
        ...endedBy(row, 'cancelled', expiredReason),
        count: 'expired',
        fate: fates.indexOf('expired'),
      })),
      tell,
    )
    for (const [i, { id, task }] of rows.entries()) if (done[i]) told.expired.push({ queue: queue.name, id, task })
  }

  /** Carries ends out, and trims what they leave. A limited queue is rung if a claimer would receive a job. */
  async end(queue: NumberedQueue, ends: readonly JobEnd[], tell?: TellJoins): Promise<EndsAnswer> {
    if (ends.length === 0) return { done: [], woke: false }
    const isTrimmed = (done: EndsAnswer['done']) => ends.some(({ to }, i) => done[i] && leavesSomething.includes(to))
    const values = [queue.qid, JSON.stringify(ends)]
    if (queue.kind === 'ordered') {
      const answer = await this.#connection.call(endIds, values)
      const [, done, buried, wakeAt, freed] = answer as IdEndsAnswer
      if (freed) ringFreed(this.#connection, queue.qid)
      await this.ended(queue, isTrimmed(done), null, tell)
      return { done, woke: false, buried, wakeAt }
    }
    const answer = await this.#connection.call(endJobs, values)
    const [, done, told, woke, freed, isLimited] = answer as JobEndsAnswer
    await this.ended(queue, isTrimmed(done), told, tell)
    const isBack = ends.some(({ to, pool }) => to === 'later' || ((to === 'back' || to === 'line') && pool !== 1))
    if (freed) ringFreed(this.#connection, queue.qid)
    else if (isLimited && (isBack || woke)) ringFor(this.#connection, queue.qid, false)
    return { done, woke, ...(isLimited ? { wakeAt: null } : {}) }
  }

  /**
   * Jobs have ended. `trims`: more may be kept of them than may be. `told`: the number from which on there are reports for joins;
   * null: there are none. `tell`: delivers them. Never rejects, as the ends are committed: the next end makes up for a trim that fails,
   * and a sweep for reports that are not delivered.
   */
  async ended(
    queue: NumberedQueue,
    trims: boolean,
    told: number | null,
    tell: TellJoins = (from) => this.#reports.deliver(from),
  ): Promise<void> {
    // Who waits for a result is told.
    this.#connection.call(tellAll, [topics.endsOf(queue.qid)]).catch(() => {})
    const trimmed = trims || this.#isTrimDue(queue) ? await this.#trim(queue) : null
    const from = told ?? trimmed
    if (from !== null) await tell(from).catch(() => {})
  }

  /** Jobs of the queue may have ended in transactions of users. Never rejects: the upkeep behind claims does the same. */
  async endedInside(queue: NumberedQueue): Promise<void> {
    const folded = await this.#connection.call(foldLeft, [queue.qid]).catch(() => null)
    if (folded === null) return
    const [told, freed] = folded as [told: number | null, freed: boolean]
    if (freed) ringFreed(this.#connection, queue.qid)
    await this.ended(queue, false, told)
  }

  /** What is kept gets too old although nothing is added, and its bounds may change. */
  #isTrimDue({ qid, limits }: NumberedQueue): boolean {
    const last = this.#trimmed.get(qid)
    return last === undefined || last.limits !== limits || last.againAt <= systemClock.mono()
  }

  /** One that fails is due again at the next end. */
  async #trim({ qid, limits }: NumberedQueue): Promise<number | null> {
    const trimmed = await this.#connection.call(trimEnded, [qid, trimLimit]).catch(() => [null, true])
    const [told, more] = trimmed as [number | null, boolean]
    this.#trimmed.set(qid, { limits, againAt: more ? Number.NEGATIVE_INFINITY : systemClock.mono() + trimEveryMs })
    return told
  }
}

const leavesSomething: readonly JobEnd['to'][] = ['dead', 'exhausted', 'kept', 'known']

interface EndsAnswer {
  /** False for a job that is no longer as it was seen; null for one that somebody else has locked. */
  readonly done: readonly (boolean | null)[]
  /** One is ready because its signal came first. */
  readonly woke: boolean
  /** Of an ordered queue: the first payload that each has buried, and from when on a claimer is needed; null: none is. */
  readonly buried?: readonly (ScoredColumns | null)[]
  readonly wakeAt?: number | null
}

function crashedClaim({ alone, flags, crashes }: CrashedRow) {
  return { alone, cancelRequested: (flags & jobFlags.cancelling) !== 0, crashes }
}

function crashEnd(
  { kind }: NumberedQueue,
  row: CrashedRow,
  crashes: number,
  becomes: ReturnType<typeof afterCrash>['becomes'],
): JobEnd {
  const { id, fence, attempt, error } = row
  const kept = { id, fence, attempt, crashes, error, count: 'crashed' as const }
  if (becomes === 'suspect') return { ...kept, to: 'back', pool: 1 }
  if (becomes === 'dead') return { ...kept, to: kind === 'ordered' ? 'exhausted' : 'dead', reason: 'crashed' }
  if (kind === 'ordered') return { ...kept, to: 'gone' }
  return {
    ...kept,
    to: 'known',
    state: endedStates.rememberedCancelled,
    forMs: rememberedForMs('cancelled', row.remember, true),
    reason: row.reason ?? null,
    rest: true,
  }
}
