/** Claiming from a Postgres store: one call of the database takes; what it finds to keep in order is done before. */

import type { Claim, Claimed, Claimer, ClaimFrom, Wait } from '../../contract/claim.js'
import { type LeftQueue, waitsAfter } from '../../rules/claim-waits.js'
import { dueAt } from '../../rules/sequence.js'
import type { Lead } from '../../rules/wake-lead.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import type { LimitsLook } from '../limits/limits-look.js'
import { followLeads, type LeadColumns, type LookedQueue, leadTexts } from '../limits/queue-look.js'
import { type ClaimedColumns, claimOf } from '../schema/claimed-job.js'
import type { EndReports } from './job-end.js'
import { LimitedClaim, mostPayloads } from './limited-claim.js'
import type { PostgresRecovery, RecoveryReport } from './postgres-recovery.js'
import { ringQueue } from './postgres-ring.js'
import type { NumberedQueue, PostgresQueues } from './postgres-settings.js'
import type { PostgresUpkeep } from './postgres-upkeep.js'
import { appointLeads, claimJobs, headAges } from './step-function.js'

/** The answer of `claim_2` about one queue without limits. */
interface StepAnswer extends LookedQueue {
  readonly jobs: ClaimedColumns[] | null
  readonly fence: number | null
  /** Whether ready jobs are left, and whether suspects are. */
  readonly more: boolean
  readonly suspects: boolean
  /** Whether a batch has the shard for itself. */
  readonly busy: boolean
  /** The weight of the claim so far. */
  readonly load: number
}

type ClaimAnswer =
  | { readonly now: number; readonly asked: (StepAnswer | LimitsLook | null)[] }
  | { readonly run: number }
  | { readonly moved: true }
  | Upkeep
interface Upkeep {
  /** The place of the queue among those asked, from 1. */
  readonly upkeep: number
  readonly now: number
}

/** How long this process may go on without looking for expired leases: no lease that it does not know of is shorter. */
const lookEveryMs = 1_000

/** How often leads are computed anew because somebody else has appointed some. */
const mostLeadRaces = 10

interface ClaimParts {
  readonly connection: PostgresConnection
  readonly queues: PostgresQueues
  readonly recovery: PostgresRecovery
  readonly reports: EndReports
  readonly upkeep: PostgresUpkeep
  /** The weight in bytes at which a claim is full. */
  readonly mostClaimBytes: number
}

/** What one queue has answered to a claim. */
interface GrantingQueue {
  readonly look: LookedQueue
  readonly left: LeftQueue
  readonly jobs: readonly ClaimedColumns[]
  readonly fence: number | null
}

/** What a claim has come to. */
interface ClaimSoFar {
  /** The answers of its first targets. */
  readonly asked: (GrantingQueue | null)[]
  /** The number of jobs that they have granted, and their weight. */
  taken: number
  load: number
  now: number
  /** Queues whose upkeep it has done. */
  readonly done: Set<number>
}

export class PostgresClaim {
  readonly #parts: ClaimParts
  readonly #limited: LimitedClaim
  /** By queue: the instant from which a claim looks for expired leases. */
  readonly #looksAt = new Map<number, number>()

  constructor(parts: ClaimParts) {
    this.#parts = parts
    this.#limited = new LimitedClaim(parts.connection, parts.recovery, parts.mostClaimBytes)
  }

  /** See `Store.claim`. */
  async claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    const told: RecoveryReport = { crashed: [], buried: [], expired: [] }
    try {
      return await this.#claim(from, by, told)
    } finally {
      // What was granted must reach the caller: a sweep delivers what is left.
      if (told.tellsFrom !== undefined) await this.#parts.reports.deliver(told.tellsFrom).catch(() => {})
    }
  }

  async #claim(from: readonly ClaimFrom[], by: Claimer, told: RecoveryReport): Promise<Claimed> {
    const soFar: ClaimSoFar = { asked: [], taken: 0, load: 0, now: 0, done: new Set() }
    let targets = await this.#targets(from)
    for (;;) {
      const rest = this.#rest(targets, soFar, by)
      if (rest.length === 0 && soFar.now > 0) return this.#answer(targets, by, soFar, told)
      try {
        if (await this.#ask(rest, by, soFar, told)) continue
        await this.#parts.queues.refresh(from.map(({ queue }) => queue))
        if (soFar.taken > 0) return this.#answer(targets, by, soFar, told)
        targets = await this.#targets(from)
        soFar.asked.length = 0
      } catch (error) {
        // What was granted must reach the caller.
        if (soFar.taken === 0) throw error
        return this.#answer(targets, by, soFar, told)
      }
    }
  }

  /** The targets that are still to be asked. Only other shards of an ordered queue add to what it has granted. */
  #rest(targets: readonly Target[], { asked, taken, load }: ClaimSoFar, by: Claimer): Target[] {
    const rest = targets.slice(asked.length)
    if (taken === 0) return rest
    const last = targets[asked.length - 1]!.queue
    const isFull = by.alone === true || load >= this.#parts.mostClaimBytes
    if (isFull || last?.kind !== 'ordered' || last.exclusive === 'shard') return []
    const end = rest.findIndex(({ from }) => from.queue !== last.name || from.limit <= taken)
    return end < 0 ? rest : rest.slice(0, end)
  }

  /** Asks at least one of these targets. False: one of the shards has left its queue. */
  async #ask(targets: readonly Target[], by: Claimer, soFar: ClaimSoFar, told: RecoveryReport): Promise<boolean> {
    const answer = await this.#call(targets, by, soFar)
    if ('moved' in answer) return false
    if ('run' in answer) this.#parts.recovery.forgetRun()
    else if ('upkeep' in answer) {
      const { queue, from } = targets[answer.upkeep - 1]!
      soFar.done.add(queue!.qid)
      await this.#parts.recovery.recover(queue!, from.leaseMs ?? by.leaseMs, told)
    } else {
      if (soFar.taken === 0) soFar.now = answer.now
      for (const [i, one] of answer.asked.entries()) {
        const { queue, from } = targets[i]!
        if (one === null || queue === undefined) soFar.asked.push(null)
        else if ('limits' in one) {
          const { limit } = bounded(from)
          const granted = await this.#limited.grant(one, { ...from, limit: limit - soFar.taken }, by, soFar.load)
          const { queue: limited, jobs, fence, bytes } = granted
          soFar.asked.push({ look: limited.look, left: limited.left(), jobs, fence })
          soFar.taken += jobs.length
          soFar.load += bytes
          if (jobs.length > 0) soFar.now = granted.now
        } else {
          const { jobs, fence, load } = one
          soFar.asked.push({ look: one, left: new LeftByClaim(queue, one, answer.now), jobs: jobs ?? [], fence })
          soFar.taken += jobs?.length ?? 0
          soFar.load = load
        }
      }
    }
    return true
  }

  /** The queues asked, and the shards of ordered ones. */
  async #targets(from: readonly ClaimFrom[]): Promise<Target[]> {
    const of = await this.#parts.queues.sharded(from.map(({ queue }) => queue))
    return from.flatMap((one, i): Target[] => {
      const { shards } = of[i]!
      if (shards[0]!.kind === 'plain') return [{ from: one, queue: shards[0] }]
      if (one.shard !== undefined) return [{ from: one, queue: shards[one.shard] }]
      return shards.map((queue) => ({ from: { ...one, shard: queue.shard }, queue }))
    })
  }

  async #call(targets: readonly Target[], by: Claimer, { taken, load, done }: ClaimSoFar) {
    const { connection, recovery, mostClaimBytes } = this.#parts
    return (await connection.call(claimJobs, [
      by.worker,
      targets.map(({ queue }) => queue?.qid ?? 0),
      targets.map(({ from }) => bounded(from).limit - taken),
      targets.map(({ from }) => mostPayloads(from)),
      targets.map(({ from: { leaseMs = by.leaseMs } }) => Math.round(leaseMs)),
      targets.map(({ queue }) => this.#looksAt.get(queue?.qid ?? 0) ?? 0),
      targets.map(({ queue }) => queue !== undefined && done.has(queue.qid)),
      by.alone === true,
      mostClaimBytes,
      // The jobs of a group have their average weight, which is no whole number.
      Math.ceil(load),
      await recovery.run(),
    ])) as ClaimAnswer
  }

  async #answer(
    targets: readonly Target[],
    by: Claimer,
    { asked, now }: ClaimSoFar,
    told: RecoveryReport,
  ): Promise<Claimed> {
    const waits: Wait[] = []
    const claims: Claim[] = []
    let more = false
    const before = new Map<number, LeftQueue>()
    for (const [i, one] of asked.entries()) {
      const { queue, from } = targets[i]!
      if (queue === undefined || one === null) {
        waits.push({ queue: from.queue, shard: from.shard!, reason: 'empty' })
        continue
      }
      const { look, left, jobs, fence } = one
      // A queue that was named before has the leads that this appointed.
      const { lead, suspectLead } = before.get(queue.qid) ?? left
      Object.assign(left, { lead, suspectLead })
      before.set(queue.qid, left)
      this.#parts.upkeep.asked(queue.qid)
      if (look.lease !== null || !left.isClaimable)
        this.#looksAt.set(queue.qid, Math.min(look.lease ?? Number.POSITIVE_INFINITY, now + lookEveryMs))
      const grant = { limit: from.limit - claims.length, taken: jobs.length }
      claims.push(...jobs.map((columns) => claimOf(queue.name, fence!, columns)))
      const { waits: of, rings } = await this.#appointed(queue, left, by, grant, now)
      waits.push(...of)
      if (rings && look.waits && !look.stopped)
        this.#parts.connection.call(ringQueue, [queue.qid, false, true]).catch(() => {})
      more ||= !look.stopped && (left.isClaimable || look.expiring || left.nextChangeMs() === 0)
    }
    return {
      now,
      ...(claims.length > 0 ? { queue: claims[0]!.queue } : {}),
      claims,
      crashed: told.crashed,
      buried: told.buried,
      ...(told.expired.length > 0 ? { expired: told.expired } : {}),
      waits,
      ...(by.heads ? { heads: await this.#heads(targets) } : {}),
      more,
    }
  }

  /** The waits of one queue. Leads that they appoint are written, unless somebody was quicker: then they are computed anew. */
  async #appointed(
    queue: NumberedQueue,
    left: LeftQueue,
    by: Claimer,
    grant: { readonly limit: number; readonly taken: number },
    now: number,
  ): Promise<ReturnType<typeof waitsAfter>> {
    for (let races = 0; ; races++) {
      const seen = leadTexts(left)
      const answer = waitsAfter(left, by, grant, now)
      const appointed = leadTexts(left)
      if (seen.every((value, i) => value === appointed[i])) return answer
      const others = await this.#parts.connection
        .call(appointLeads, [queue.qid, seen, appointed])
        .catch((error: unknown) => {
          // What was granted must reach the caller: it leads without anybody's knowing, and asks once too often.
          if (grant.taken === 0) throw error
          return null
        })
      if (others === null || races === mostLeadRaces) return answer
      followLeads(left, others as LeadColumns)
    }
  }

  async #heads(targets: readonly Target[]): Promise<NonNullable<Claimed['heads']>> {
    const qids = targets.map(({ queue }) => queue?.qid ?? 0)
    // Without ages rather than without what was granted.
    const ages = (await this.#parts.connection.call(headAges, [qids]).catch(() => qids.map(() => null))) as (
      | number
      | null
    )[]
    return targets.map(({ from: { queue, shard } }, i) => ({
      queue,
      ...(shard === undefined ? {} : { shard }),
      ...(ages[i] === null ? {} : { ageMs: Math.max(0, ages[i]!) }),
    }))
  }
}

/** A queue or shard that is asked; undefined: there is no such shard. */
interface Target {
  readonly from: ClaimFrom
  readonly queue: NumberedQueue | undefined
}

/** A limit may be infinite; no claim takes more. */
const mostOfClaim = 10_000

function bounded(from: ClaimFrom): ClaimFrom {
  return { ...from, limit: Math.min(from.limit, mostOfClaim) }
}

/** A queue as a claim has left it. It has no limits, so all jobs that are ready are open. */
class LeftByClaim implements LeftQueue {
  readonly of: { readonly queue: string; readonly shard?: number }
  readonly isStopped: boolean
  readonly isFull: boolean
  readonly isBusy: boolean
  readonly opensAt = Number.NEGATIVE_INFINITY
  /** The rules ask only whether there are any. */
  readonly ordinary: number
  readonly suspects: number
  readonly scheduled: number
  readonly isClaimable: boolean
  lead: Lead | undefined
  suspectLead: Lead | undefined
  readonly #answer: StepAnswer
  readonly #now: number

  constructor({ name, kind, shard }: NumberedQueue, answer: StepAnswer, now: number) {
    this.of = kind === 'ordered' ? { queue: name, shard } : { queue: name }
    this.isStopped = answer.stopped
    this.isBusy = answer.busy
    this.isFull = answer.busy
    this.ordinary = answer.more ? 1 : 0
    this.suspects = answer.suspects ? 1 : 0
    this.scheduled = answer.place === null ? 0 : 1
    this.isClaimable = answer.more && !answer.stopped && !answer.busy
    this.#answer = answer
    this.#now = now
    followLeads(this, [answer.lead, answer.wake, answer.suspectLead, answer.suspectWake])
  }

  suspectInMs(): number {
    return 0
  }

  hasShutLane(): boolean {
    return false
  }

  nextChangeMs(): number | undefined {
    const { place, lease, spares } = this.#answer
    const due = place === null ? Number.POSITIVE_INFINITY : dueAt(place)
    const ends = lease === null ? Number.POSITIVE_INFINITY : Math.max(lease, spares)
    const at = Math.min(due, ends)
    return at > Number.MAX_SAFE_INTEGER ? undefined : Math.max(0, at - this.#now)
  }
}
