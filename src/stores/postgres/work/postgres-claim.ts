/** Claiming from a Postgres store: one call of the database takes; what it finds to keep in order is done before. */

import type { Buried, Claim, Claimed, Claimer, ClaimFrom, Crash, Expired, Wait } from '../../contract/claim.js'
import { type LeftQueue, waitsAfter } from '../../rules/claim-waits.js'
import { dueAt } from '../../rules/sequence.js'
import type { Lead } from '../../rules/wake-lead.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { jobFlags } from '../schema/postgres-tables.js'
import type { PostgresRecovery } from './postgres-recovery.js'
import { ringQueue } from './postgres-ring.js'
import type { NumberedQueue, PostgresQueues } from './postgres-settings.js'
import type { PostgresUpkeep } from './postgres-upkeep.js'
import { appointLeads, claimJobs, headAges } from './step-function.js'
import { payloadFrom, textFrom } from './stored-payload.js'

/** The answer of `claim_1` about one queue. Instants are in ms; `place` is in µs. */
interface StepAnswer {
  readonly jobs: ClaimedColumns[] | null
  readonly fence: number | null
  /** Whether ready jobs are left, and whether suspects are. */
  readonly more: boolean
  readonly suspects: boolean
  /** When the next job falls due, and when the first lease ends; null as well while ready jobs are left. */
  readonly place: number | null
  readonly lease: number | null
  /** Whether more jobs have expired than one claim ends. */
  readonly expiring: boolean
  readonly paused: boolean
  readonly spares: number
  readonly lead: string | null
  readonly wake: number | null
  readonly suspectLead: string | null
  readonly suspectWake: number | null
  /** Whether somebody waits for the queue. */
  readonly waits: boolean
}

type ClaimedColumns = [
  id: string,
  task: string,
  payload: string,
  codec: string | null,
  meta: string | null,
  rank: number,
  attempt: number,
  crashes: number,
  createdAt: number,
  stamp: number,
  expiresAt: number | null,
  error: string | null,
  checkpoint: [payload: string, codec: string | null] | null,
  flags: number,
]

type ClaimAnswer = { readonly now: number; readonly asked: StepAnswer[] } | { readonly run: number } | Upkeep
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
  readonly upkeep: PostgresUpkeep
  /** The weight in bytes at which a claim is full. */
  readonly mostClaimBytes: number
}

export class PostgresClaim {
  readonly #parts: ClaimParts
  /** By queue: the instant from which a claim looks for expired leases. */
  readonly #looksAt = new Map<number, number>()

  constructor(parts: ClaimParts) {
    this.#parts = parts
  }

  /** See `Store.claim`. */
  async claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    const queues = await this.#parts.queues.named(from.map(({ queue }) => queue))
    const told = { crashed: [] as Crash[], buried: [] as Buried[], expired: [] as Expired[] }
    const isDone = from.map(() => false)
    for (;;) {
      const answer = await this.#ask(queues, from, by, isDone)
      if ('run' in answer) await this.#parts.recovery.noteRun(answer.run)
      else if ('upkeep' in answer) {
        const i = answer.upkeep - 1
        isDone[i] = true
        await this.#parts.recovery.recover(queues[i]!, from[i]!.leaseMs ?? by.leaseMs, told)
      } else return this.#answer(queues, from, by, answer, told)
    }
  }

  async #ask(queues: readonly NumberedQueue[], from: readonly ClaimFrom[], by: Claimer, isDone: readonly boolean[]) {
    const { connection, recovery, mostClaimBytes } = this.#parts
    return (await connection.call(claimJobs, [
      by.worker,
      queues.map(({ qid }) => qid),
      from.map(({ limit }) => Math.min(limit, mostOfClaim)),
      from.map(({ leaseMs = by.leaseMs }) => Math.round(leaseMs)),
      queues.map(({ qid }) => this.#looksAt.get(qid) ?? 0),
      isDone,
      by.alone === true,
      mostClaimBytes,
      await recovery.run(),
    ])) as ClaimAnswer
  }

  async #answer(
    queues: readonly NumberedQueue[],
    from: readonly ClaimFrom[],
    by: Claimer,
    { now, asked }: { readonly now: number; readonly asked: StepAnswer[] },
    told: { readonly crashed: Crash[]; readonly buried: Buried[]; readonly expired: Expired[] },
  ): Promise<Claimed> {
    const waits: Wait[] = []
    let more = false
    for (const [i, one] of asked.entries()) {
      const queue = queues[i]!
      this.#parts.upkeep.asked(queue.qid)
      if (one.lease !== null || !one.more)
        this.#looksAt.set(queue.qid, Math.min(one.lease ?? Number.POSITIVE_INFINITY, now + lookEveryMs))
      const left = new LeftByClaim(queue, one, now)
      const grant = { limit: from[i]!.limit, taken: one.jobs?.length ?? 0 }
      const { waits: of, rings } = await this.#appointed(queue, left, by, grant, now)
      waits.push(...of)
      if (rings && one.waits && !one.paused) this.#parts.connection.call(ringQueue, [queue.qid, false]).catch(() => {})
      more ||= !one.paused && (left.isClaimable || one.expiring || left.nextChangeMs() === 0)
    }
    const last = asked.at(-1)
    const claims = last?.jobs?.map((columns) => claimOf(queues[asked.length - 1]!.name, last.fence!, columns)) ?? []
    return {
      now,
      ...(claims.length > 0 ? { queue: claims[0]!.queue } : {}),
      claims,
      crashed: told.crashed,
      buried: told.buried,
      ...(told.expired.length > 0 ? { expired: told.expired } : {}),
      waits,
      ...(by.heads ? { heads: await this.#heads(queues) } : {}),
      more,
    }
  }

  /** The waits of one queue. Leads that they appoint are written, unless somebody was quicker: then they are computed anew. */
  async #appointed(
    queue: NumberedQueue,
    left: LeftByClaim,
    by: Claimer,
    grant: { readonly limit: number; readonly taken: number },
    now: number,
  ): Promise<ReturnType<typeof waitsAfter>> {
    for (let races = 0; ; races++) {
      const seen = left.leads()
      const answer = waitsAfter(left, by, grant, now)
      const appointed = left.leads()
      if (seen.every((value, i) => value === appointed[i])) return answer
      const others = await this.#parts.connection
        .call(appointLeads, [queue.qid, seen, appointed])
        .catch((error: unknown) => {
          // What was granted must reach the caller: it leads without anybody's knowing, and asks once too often.
          if (grant.taken === 0) throw error
          return null
        })
      if (others === null || races === mostLeadRaces) return answer
      left.follow(others as LeadColumns)
    }
  }

  async #heads(queues: readonly NumberedQueue[]): Promise<NonNullable<Claimed['heads']>> {
    const qids = queues.map(({ qid }) => qid)
    // Without ages rather than without what was granted.
    const ages = (await this.#parts.connection.call(headAges, [qids]).catch(() => qids.map(() => null))) as (
      | number
      | null
    )[]
    return queues.map(({ name }, i) => ({ queue: name, ...(ages[i] === null ? {} : { ageMs: Math.max(0, ages[i]!) }) }))
  }
}

/** A limit may be infinite; no claim takes more. */
const mostOfClaim = 10_000

type LeadColumns = [worker: string | null, at: number | null, suspectWorker: string | null, suspectAt: number | null]

/** A queue as a claim has left it. It has no limits, so all jobs that are ready are open. */
class LeftByClaim implements LeftQueue {
  readonly of: { readonly queue: string }
  readonly isStopped: boolean
  readonly isFull = false
  readonly isBusy = false
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

  constructor({ name }: NumberedQueue, answer: StepAnswer, now: number) {
    this.of = { queue: name }
    this.isStopped = answer.paused
    this.ordinary = answer.more ? 1 : 0
    this.suspects = answer.suspects ? 1 : 0
    this.scheduled = answer.place === null ? 0 : 1
    this.isClaimable = answer.more && !answer.paused
    this.#answer = answer
    this.#now = now
    this.follow([answer.lead, answer.wake, answer.suspectLead, answer.suspectWake])
  }

  isOpenForSuspects(): boolean {
    return this.suspects > 0 && !this.isStopped
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

  leads(): (string | null)[] {
    const text = (at: number | undefined) => (at === undefined ? null : String(at))
    const { lead, suspectLead } = this
    return [lead?.worker ?? null, text(lead?.wakeAt), suspectLead?.worker ?? null, text(suspectLead?.wakeAt)]
  }

  follow([worker, at, suspectWorker, suspectAt]: LeadColumns): void {
    this.lead = worker === null || at === null ? undefined : { worker, wakeAt: at }
    this.suspectLead =
      suspectWorker === null || suspectAt === null ? undefined : { worker: suspectWorker, wakeAt: suspectAt }
  }
}

function claimOf(queue: string, fence: number, columns: ClaimedColumns): Claim {
  const [
    id,
    task,
    payload,
    codec,
    meta,
    rank,
    attempt,
    crashes,
    createdAt,
    stamp,
    expiresAt,
    error,
    checkpoint,
    flags,
  ] = columns
  return {
    queue,
    id,
    task,
    payload: payloadFrom(payload),
    ...(codec === null ? {} : { codec }),
    ...(meta === null ? {} : { meta: payloadFrom(meta) }),
    priority: 0 - rank,
    attempt,
    crashes,
    fence,
    createdAt,
    runAt: dueAt(Math.abs(stamp)),
    ...(expiresAt === null ? {} : { expiresAt }),
    ...(error === null ? {} : { error: textFrom(error) }),
    ...(checkpoint === null ? {} : { checkpoint: checkpointOf(checkpoint) }),
    ...((flags & jobFlags.join) === 0 ? {} : { isJoin: true }),
    ...((flags & jobFlags.member) === 0 ? {} : { isMember: true }),
  }
}

function checkpointOf([payload, codec]: [string, string | null]) {
  return { payload: payloadFrom(payload), ...(codec === null ? {} : { codec }) }
}
