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
import { payloadFrom, type ScoredColumns, scoredFrom, textFrom } from './stored-payload.js'

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
  /** It is paused, or being resharded. */
  readonly stopped: boolean
  /** Whether a batch has the shard for itself. */
  readonly busy: boolean
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
  /** Ordered queues only, like `hasMore`. */
  payloads?: ScoredColumns[],
  hasMore?: boolean,
]

type ClaimAnswer = AskedQueues | { readonly run: number } | { readonly moved: true } | Upkeep
/** Null: there is no such shard. */
type AskedQueues = { readonly now: number; readonly asked: (StepAnswer | null)[] }
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
    const told = { crashed: [] as Crash[], buried: [] as Buried[], expired: [] as Expired[] }
    const done = new Set<number>()
    for (;;) {
      const targets = await this.#targets(from)
      const answer = await this.#ask(targets, by, done)
      if ('run' in answer) await this.#parts.recovery.noteRun(answer.run)
      else if ('moved' in answer) await this.#parts.queues.refresh(from.map(({ queue }) => queue))
      else if ('upkeep' in answer) {
        const { queue, from } = targets[answer.upkeep - 1]!
        done.add(queue!.qid)
        await this.#parts.recovery.recover(queue!, from.leaseMs ?? by.leaseMs, told)
      } else return this.#answer(targets, by, answer, told)
    }
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

  async #ask(targets: readonly Target[], by: Claimer, done: ReadonlySet<number>) {
    const { connection, recovery, mostClaimBytes } = this.#parts
    return (await connection.call(claimJobs, [
      by.worker,
      targets.map(({ queue }) => queue?.qid ?? 0),
      targets.map(({ from }) => Math.min(from.limit, mostOfClaim)),
      targets.map(({ from: { maxPayloads: most = Number.POSITIVE_INFINITY } }) =>
        most === Number.POSITIVE_INFINITY ? null : Math.max(1, most),
      ),
      targets.map(({ from: { leaseMs = by.leaseMs } }) => Math.round(leaseMs)),
      targets.map(({ queue }) => this.#looksAt.get(queue?.qid ?? 0) ?? 0),
      targets.map(({ queue }) => queue !== undefined && done.has(queue.qid)),
      by.alone === true,
      mostClaimBytes,
      await recovery.run(),
    ])) as ClaimAnswer
  }

  async #answer(
    targets: readonly Target[],
    by: Claimer,
    { now, asked }: AskedQueues,
    told: { readonly crashed: Crash[]; readonly buried: Buried[]; readonly expired: Expired[] },
  ): Promise<Claimed> {
    const waits: Wait[] = []
    const claims: Claim[] = []
    let more = false
    for (const [i, one] of asked.entries()) {
      const { queue, from } = targets[i]!
      if (queue === undefined || one === null) {
        waits.push({ queue: from.queue, shard: from.shard!, reason: 'empty' })
        continue
      }
      this.#parts.upkeep.asked(queue.qid)
      if (one.lease !== null || !one.more)
        this.#looksAt.set(queue.qid, Math.min(one.lease ?? Number.POSITIVE_INFINITY, now + lookEveryMs))
      const left = new LeftByClaim(queue, one, now)
      const grant = { limit: from.limit - claims.length, taken: one.jobs?.length ?? 0 }
      claims.push(...(one.jobs ?? []).map((columns) => claimOf(queue.name, one.fence!, columns)))
      const { waits: of, rings } = await this.#appointed(queue, left, by, grant, now)
      waits.push(...of)
      if (rings && one.waits && !one.stopped) this.#parts.connection.call(ringQueue, [queue.qid, false]).catch(() => {})
      more ||= !one.stopped && (left.isClaimable || one.expiring || left.nextChangeMs() === 0)
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

type LeadColumns = [worker: string | null, at: number | null, suspectWorker: string | null, suspectAt: number | null]

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
    this.follow([answer.lead, answer.wake, answer.suspectLead, answer.suspectWake])
  }

  isOpenForSuspects(): boolean {
    return this.suspects > 0 && !this.isStopped && !this.isFull
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
    payloads,
    hasMore,
  ] = columns
  return {
    queue,
    id,
    task,
    payload: payloadFrom(payload),
    ...(codec === null ? {} : { codec }),
    ...(meta === null ? {} : { meta: payloadFrom(meta) }),
    ...(payloads === undefined ? {} : { payloads: payloads.map(scoredFrom) }),
    ...(hasMore === true ? { hasMore } : {}),
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
