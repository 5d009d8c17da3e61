/** Claiming from a SQLite store: recover expired leases, promote due jobs, take, lease, fence. */

import { hasLed, leadAfter, suspectLeadAfter, suspectLeadMs } from '../../core/lead.js'
import { nextFence } from '../../core/stamp.js'
import { upkeepLimit } from '../../core/upkeep.js'
import type { Buried, Claim, Claimer, ClaimFrom, Crash, Wait } from '../store.js'
import { SqliteCrashes } from './sqlite-crash.js'
import type { Statement } from './sqlite-driver.js'
import { mostClaimBytes, SqliteHandover, type Taking } from './sqlite-handover.js'
import { type JobRow, jobColumns } from './sqlite-job.js'
import type { SqliteLook } from './sqlite-look.js'
import {
  bounded,
  byKind,
  claimable,
  isFull,
  isStopped,
  leadOf,
  ordinary,
  placeIn,
  type QueueRow,
  setLead,
  setSuspectLead,
  suspectLeadOf,
} from './sqlite-queue.js'
import type { SqliteSession } from './sqlite-session.js'

/** What `claim` answers; the claims of plain queues are still the JSON text that SQLite made of them, for the other thread to read. */
export interface ClaimedText {
  readonly now: number
  readonly queue?: string
  readonly granted: readonly Granted[]
  readonly crashed: Crash[]
  readonly buried: Buried[]
  readonly waits: Wait[]
  readonly heads?: { queue: string; shard?: number; ageMs?: number }[]
  readonly more: boolean
}

/** What one queue granted, or one shard: as the text that SQLite made of it, or with payloads. */
export type Granted = { readonly queue: string; readonly fence: number; readonly text: string } | readonly Claim[]

interface Grant {
  readonly granted: Granted
  /** How many jobs. */
  readonly taken: number
  /** How many bytes of payloads, of an ordered queue. */
  readonly bytes: number
}

/** What one entry of a claim asks: a queue, or a shard of an ordered one, which may not be there. */
interface Candidate {
  readonly from: ClaimFrom
  readonly row: QueueRow | undefined
}

/** The two clocks at the moment of a claim. */
interface Instant {
  readonly now: number
  readonly mono: number
}

export class SqliteClaim {
  readonly #session: SqliteSession
  readonly #look: SqliteLook
  readonly #handover: SqliteHandover
  readonly #expired: ReturnType<typeof byKind>
  readonly #promote: ReturnType<typeof byKind>
  readonly #heads: Statement
  readonly #takeHeads: Statement
  readonly #recount: Statement

  constructor(session: SqliteSession, look: SqliteLook) {
    this.#session = session
    this.#look = look
    this.#handover = new SqliteHandover(session)
    const { db } = session
    this.#expired = byKind(
      db,
      (tie) =>
        `SELECT ${jobColumns} FROM job WHERE qid = ? AND state = 2 AND lease_until <= ? ORDER BY lease_until, ${tie} LIMIT ${upkeepLimit}`,
    )
    this.#promote = byKind(
      db,
      (tie) =>
        `UPDATE job SET state = 1, updated_at = ? WHERE rid IN
           (SELECT rid FROM job WHERE qid = ? AND state = 0 AND stamp < ? ORDER BY stamp, ${tie} LIMIT ${upkeepLimit})`,
    )
    // One text for all: a row object per job, and its copy to the other thread, cost more than the claim itself.
    this.#heads = db.prepare(
      `SELECT json_group_array(json_array(id, task,
           CASE typeof(payload) WHEN 'blob' THEN hex(payload) ELSE payload END,
           CASE typeof(meta) WHEN 'blob' THEN hex(meta) ELSE meta END,
           (typeof(payload) = 'blob') + 2 * (typeof(meta) = 'blob'),
           codec, -rank, attempt, crashes, created_at, stamp, error)) AS claims,
         count(*) AS taken, total(attempt > 1) AS retries
       FROM (SELECT id, task, payload, meta, codec, rank, attempt, crashes, created_at, stamp, error FROM job WHERE qid = ? AND state = 1 AND suspect = ? ORDER BY rank, place, rid LIMIT ?)`,
    )
    this.#takeHeads = db.prepare(
      `UPDATE job SET state = 2, fence = ?, worker = ?, alone = ?, lease_until = ?, updated_at = ? WHERE rid IN
         (SELECT rid FROM job WHERE qid = ? AND state = 1 AND suspect = ? ORDER BY rank, place, rid LIMIT ?)`,
    )
    this.#recount = db.prepare(
      'SELECT count(*) AS ready, coalesce(sum(suspect), 0) AS suspects FROM job WHERE qid = ? AND state = 1',
    )
  }

  claim(from: readonly ClaimFrom[], by: Claimer): ClaimedText {
    const { clock } = this.#session
    const at: Instant = { now: clock.now(), mono: clock.mono() }
    const candidates = from.flatMap((one) => this.#candidatesOf(one))
    const crashes = new SqliteCrashes(this.#session)
    const waits: Wait[] = []
    const granted: Granted[] = []
    let queue: string | undefined
    let taken = 0
    let bytes = 0
    let more = false
    for (const { from, row } of candidates) {
      const limit = from.limit - taken
      // Of an ordered queue its shards that stand in a row, unless one of them is all that may be granted.
      const isNext = from.queue === queue && row?.kind !== 'plain' && row?.exclusive !== 'shard'
      if (taken > 0 && !(isNext && !by.alone && limit > 0 && bytes < mostClaimBytes)) break
      if (row === undefined) {
        waits.push({ queue: from.queue, shard: from.shard!, reason: 'empty' })
        continue
      }
      this.#recover(row, at, crashes)
      this.#promoteDue(row, at)
      const grant = this.#grant(row, { ...from, limit }, by, at, bytes)
      if (grant !== undefined) {
        granted.push(grant.granted)
        taken += grant.taken
        bytes += grant.bytes
        queue = from.queue
      }
      more ||= this.#look.hasWork(row, at.now, at.mono)
      const hasLeft = grant !== undefined && hasLed(leadOf(row), by.worker, at.mono)
      if (hasLeft) setLead(row, undefined)
      if (grant === undefined) waits.push(...this.#wait(row, by, at))
      waits.push(...this.#suspectWait(row, by.worker, by.alone === true || limit === 0, at))
      // Whoever is woken wakes the next: one ring is enough for any number of jobs.
      if (claimable(row) > 0 || hasLeft) this.#session.ring(row)
    }
    return {
      now: at.now,
      ...(queue === undefined ? {} : { queue }),
      granted,
      crashed: crashes.crashed,
      buried: crashes.buried,
      waits,
      ...(by.heads ? { heads: candidates.map((candidate) => this.#head(candidate, at)) } : {}),
      more,
    }
  }

  #candidatesOf(from: ClaimFrom): Candidate[] {
    const { queues } = this.#session
    const row = queues.get(from.queue)
    if (row.kind === 'plain') return [{ from, row }]
    if (from.shard !== undefined)
      return [{ from, row: from.shard < 0 ? undefined : queues.shard(from.queue, from.shard) }]
    return queues.shardsOf(from.queue).map((row) => ({ from: { ...from, shard: row.shard }, row }))
  }

  /** Expired leases end as crashes. */
  #recover(queue: QueueRow, { now, mono }: Instant, crashes: SqliteCrashes): void {
    if (queue.running === 0) return
    for (const job of this.#expired[queue.kind].all(queue.qid, mono) as JobRow[]) crashes.add(queue, job, now)
  }

  #promoteDue(queue: QueueRow, { now }: Instant): void {
    if (queue.scheduled === 0 || this.#look.dueAt(queue)! > now) return
    const promoted = Number(this.#promote[queue.kind].run(now, queue.qid, (now + 1) * 1_000).changes)
    queue.scheduled -= promoted
    queue.ready += promoted
  }

  /** What the claim, which has so many bytes already, gets of this queue: a suspect first where it is alone. */
  #grant(queue: QueueRow, from: ClaimFrom, by: Claimer, { now, mono }: Instant, bytes: number): Grant | undefined {
    const suspect = by.alone && queue.suspects > 0 ? 1 : 0
    const waiting = suspect ? queue.suspects : ordinary(queue)
    const limit = by.alone ? Math.min(1, from.limit) : from.limit
    if (isStopped(queue) || isFull(queue) || waiting === 0 || limit <= 0) return undefined
    const leaseUntil = bounded(mono + (from.leaseMs ?? by.leaseMs))
    const taking: Taking = { suspect, leaseUntil, now, bytes }
    if (queue.kind === 'ordered') {
      const taken = this.#handover.take(queue, { ...from, limit }, by, taking)
      const { claims } = taken
      if (claims.length > 0) return { granted: claims, taken: claims.length, bytes: taken.bytes }
    } else {
      const grant = this.#take(queue, limit, by, taking)
      if (grant !== undefined) return grant
    }
    // A count that is wrong must not stop a fleet.
    Object.assign(queue, this.#recount.get(queue.qid))
    return undefined
  }

  /** Of a plain queue; undefined where there is nothing. */
  #take(queue: QueueRow, limit: number, by: Claimer, { suspect, leaseUntil, now }: Taking): Grant | undefined {
    const { claims, taken, retries } = this.#heads.get(queue.qid, suspect, limit) as {
      claims: string
      taken: number
      retries: number
    }
    if (taken === 0) return undefined
    queue.last_fence = nextFence(queue.last_fence, now)
    this.#takeHeads.run(queue.last_fence, by.worker, by.alone ? 1 : 0, leaseUntil, now, queue.qid, suspect, taken)
    queue.ready -= taken
    if (suspect) queue.suspects -= taken
    queue.running += taken
    queue.retries -= retries
    return { granted: { queue: queue.name, fence: queue.last_fence, text: claims }, taken, bytes: 0 }
  }

  /** Why nothing was granted, where there was nothing, and whether this claimer is to ask again. */
  #wait(queue: QueueRow, { worker, alone }: Claimer, { now, mono }: Instant): Wait[] {
    const waiting = alone ? queue.ready : ordinary(queue)
    const [stopped, full] = [isStopped(queue), isFull(queue)]
    if (!stopped && !full && waiting > 0) return []
    const of = placeIn(queue)
    const forMs = stopped ? undefined : this.#look.nextChangeMs(queue, now, mono)
    const reason = stopped ? 'paused' : full ? 'full' : queue.scheduled > 0 ? 'scheduled' : 'empty'
    const before = leadOf(queue)
    if (forMs === undefined) {
      if (before?.worker === worker) setLead(queue, undefined)
      return [{ ...of, reason }]
    }
    const lead = leadAfter(before, worker, bounded(mono + forMs), mono)
    setLead(queue, lead)
    return [{ ...of, reason, forMs, ...leads(lead.worker === worker) }]
  }

  /** That suspects are left behind, and whether this claimer is to make room for one. */
  #suspectWait(queue: QueueRow, worker: string, makesRoom: boolean, { mono }: Instant): Wait[] {
    if (isStopped(queue) || isFull(queue)) return []
    if (queue.suspects === 0) {
      setSuspectLead(queue, undefined)
      return []
    }
    const before = suspectLeadOf(queue)
    const lead = suspectLeadAfter(before, worker, makesRoom, mono)
    setSuspectLead(queue, lead)
    return [{ ...placeIn(queue), reason: 'suspect', forMs: suspectLeadMs, ...leads(lead !== before) }]
  }

  #head({ from, row }: Candidate, { now }: Instant): { queue: string; shard?: number; ageMs?: number } {
    const { queue, shard } = from
    const ageMs = row === undefined ? undefined : this.#look.headAgeMs(row, now)
    return { queue, ...(shard === undefined ? {} : { shard }), ...(ageMs === undefined ? {} : { ageMs }) }
  }
}

function leads(isLead: boolean): { lead?: true } {
  return isLead ? { lead: true } : {}
}
