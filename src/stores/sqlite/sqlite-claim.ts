/** Claiming from a SQLite store: recover expired leases, promote due jobs, take, lease, fence. */

import { hasLed, leadAfter, suspectLeadAfter, suspectLeadMs } from '../../core/lead.js'
import { nextFence } from '../../core/stamp.js'
import { upkeepLimit } from '../../core/upkeep.js'
import type { Buried, Claimer, ClaimFrom, Crash, Wait } from '../store.js'
import { SqliteCrashes } from './sqlite-crash.js'
import type { Statement } from './sqlite-driver.js'
import { type JobRow, jobColumns } from './sqlite-job.js'
import type { SqliteLook } from './sqlite-look.js'
import { bounded, leadOf, ordinary, type QueueRow, setLead, setSuspectLead, suspectLeadOf } from './sqlite-queue.js'
import type { SqliteSession } from './sqlite-session.js'

/** What `claim` answers; the claims are still the JSON text that SQLite made of them, for the other thread to read. */
export interface ClaimedText {
  readonly now: number
  readonly queue?: string
  readonly claims?: string
  readonly fence?: number
  readonly crashed: Crash[]
  readonly buried: Buried[]
  readonly waits: Wait[]
  readonly heads?: { queue: string; ageMs?: number }[]
  readonly more: boolean
}

/** The two clocks at the moment of a claim. */
interface Instant {
  readonly now: number
  readonly mono: number
}

export class SqliteClaim {
  readonly #session: SqliteSession
  readonly #look: SqliteLook
  readonly #expired: Statement
  readonly #promote: Statement
  readonly #heads: Statement
  readonly #take: Statement
  readonly #recount: Statement

  constructor(session: SqliteSession, look: SqliteLook) {
    this.#session = session
    this.#look = look
    const { db } = session
    this.#expired = db.prepare(
      `SELECT ${jobColumns} FROM job WHERE qid = ? AND state = 2 AND lease_until <= ? ORDER BY lease_until, rid LIMIT ${upkeepLimit}`,
    )
    this.#promote = db.prepare(
      `UPDATE job SET state = 1, updated_at = ? WHERE rid IN
         (SELECT rid FROM job WHERE qid = ? AND state = 0 AND stamp < ? ORDER BY stamp, rid LIMIT ${upkeepLimit})`,
    )
    // One text for all: a row object per job, and its copy to the other thread, cost more than the claim itself.
    this.#heads = db.prepare(
      `SELECT json_group_array(json_array(id, task,
           CASE typeof(payload) WHEN 'blob' THEN hex(payload) ELSE payload END,
           CASE typeof(meta) WHEN 'blob' THEN hex(meta) ELSE meta END,
           (typeof(payload) = 'blob') + 2 * (typeof(meta) = 'blob'),
           codec, -rank, attempt, crashes, created_at, stamp, error)) AS claims,
         count(*) AS taken, total(attempt > 1) AS retries
       FROM (SELECT * FROM job WHERE qid = ? AND state = 1 AND suspect = ? ORDER BY rank, place, rid LIMIT ?)`,
    )
    this.#take = db.prepare(
      `UPDATE job SET state = 2, fence = ?, worker = ?, alone = ?, lease_until = ?, updated_at = ? WHERE rid IN
         (SELECT rid FROM job WHERE qid = ? AND state = 1 AND suspect = ? ORDER BY rank, place, rid LIMIT ?)`,
    )
    this.#recount = db.prepare(
      'SELECT count(*) AS ready, coalesce(sum(suspect), 0) AS suspects FROM job WHERE qid = ? AND state = 1',
    )
  }

  claim(from: readonly ClaimFrom[], by: Claimer): ClaimedText {
    const { clock, queues } = this.#session
    const at: Instant = { now: clock.now(), mono: clock.mono() }
    const rows = queues.of(from)
    const crashes = new SqliteCrashes(this.#session)
    const waits: Wait[] = []
    let more = false
    const answer = (granted: { queue?: string; claims?: string; fence?: number }): ClaimedText => ({
      now: at.now,
      ...granted,
      crashed: crashes.crashed,
      buried: crashes.buried,
      waits,
      ...(by.heads ? { heads: rows.map((row) => this.#head(row, at)) } : {}),
      more,
    })
    for (const [i, { queue, limit, leaseMs }] of from.entries()) {
      const row = rows[i]!
      this.#recover(row, at, crashes)
      this.#promoteDue(row, at)
      const granted = this.#grant(row, limit, by, leaseMs ?? by.leaseMs, at)
      more ||= this.#look.hasWork(row, at.now, at.mono)
      const hasLeft = granted !== undefined && hasLed(leadOf(row), by.worker, at.mono)
      if (hasLeft) setLead(row, undefined)
      if (granted === undefined) waits.push(...this.#wait(row, by, at))
      waits.push(...this.#suspectWait(row, by.worker, by.alone === true || limit === 0, at))
      // Whoever is woken wakes the next: one ring is enough for any number of jobs.
      if (ordinary(row) > 0 || hasLeft) this.#session.ring(row)
      if (granted !== undefined) return answer({ queue, ...granted })
    }
    return answer({})
  }

  /** Expired leases end as crashes. */
  #recover(queue: QueueRow, { now, mono }: Instant, crashes: SqliteCrashes): void {
    if (queue.running === 0) return
    for (const job of this.#expired.all(queue.qid, mono) as JobRow[]) crashes.add(queue, job, now)
  }

  #promoteDue(queue: QueueRow, { now }: Instant): void {
    if (queue.scheduled === 0 || this.#look.dueAt(queue)! > now) return
    const promoted = Number(this.#promote.run(now, queue.qid, (now + 1) * 1_000).changes)
    queue.scheduled -= promoted
    queue.ready += promoted
  }

  /** What the claim gets of this queue: a suspect first where it is alone. */
  #grant(
    queue: QueueRow,
    limit: number,
    by: Claimer,
    leaseMs: number,
    { now, mono }: Instant,
  ): { claims: string; fence: number } | undefined {
    const suspect = by.alone && queue.suspects > 0 ? 1 : 0
    const waiting = suspect ? queue.suspects : ordinary(queue)
    if (queue.paused || waiting === 0 || limit <= 0) return undefined
    const { claims, taken, retries } = this.#heads.get(queue.qid, suspect, by.alone ? 1 : limit) as {
      claims: string
      taken: number
      retries: number
    }
    // A count that is wrong must not stop a fleet.
    if (taken === 0) {
      Object.assign(queue, this.#recount.get(queue.qid))
      return undefined
    }
    queue.last_fence = nextFence(queue.last_fence, now)
    this.#take.run(
      queue.last_fence,
      by.worker,
      by.alone ? 1 : 0,
      bounded(mono + leaseMs),
      now,
      queue.qid,
      suspect,
      taken,
    )
    queue.ready -= taken
    if (suspect) queue.suspects -= taken
    queue.running += taken
    queue.retries -= retries
    return { claims, fence: queue.last_fence }
  }

  /** Why nothing was granted, where there was nothing, and whether this claimer is to ask again. */
  #wait(queue: QueueRow, { worker, alone }: Claimer, { now, mono }: Instant): Wait[] {
    const waiting = alone ? queue.ready : ordinary(queue)
    if (!queue.paused && waiting > 0) return []
    const forMs = queue.paused ? undefined : this.#look.nextChangeMs(queue, now, mono)
    const reason = queue.paused ? 'paused' : queue.scheduled > 0 ? 'scheduled' : 'empty'
    const before = leadOf(queue)
    if (forMs === undefined) {
      if (before?.worker === worker) setLead(queue, undefined)
      return [{ queue: queue.name, reason }]
    }
    const lead = leadAfter(before, worker, bounded(mono + forMs), mono)
    setLead(queue, lead)
    return [{ queue: queue.name, reason, forMs, ...leads(lead.worker === worker) }]
  }

  /** That suspects are left behind, and whether this claimer is to make room for one. */
  #suspectWait(queue: QueueRow, worker: string, makesRoom: boolean, { mono }: Instant): Wait[] {
    if (queue.paused) return []
    if (queue.suspects === 0) {
      setSuspectLead(queue, undefined)
      return []
    }
    const before = suspectLeadOf(queue)
    const lead = suspectLeadAfter(before, worker, makesRoom, mono)
    setSuspectLead(queue, lead)
    return [{ queue: queue.name, reason: 'suspect', forMs: suspectLeadMs, ...leads(lead !== before) }]
  }

  #head(queue: QueueRow, { now }: Instant): { queue: string; ageMs?: number } {
    const ageMs = this.#look.headAgeMs(queue, now)
    return { queue: queue.name, ...(ageMs === undefined ? {} : { ageMs }) }
  }
}

function leads(isLead: boolean): { lead?: true } {
  return isLead ? { lead: true } : {}
}
