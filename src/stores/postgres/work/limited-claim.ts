/** A claim on a limited queue: look, decide, apply. Nothing is locked between the look and its plan; a plan that came late is made anew. */

import type { Claimer, ClaimFrom } from '../../contract/claim.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { applyPlan } from '../limits/apply-function.js'
import { LimitedQueue } from '../limits/limited-queue.js'
import type { LimitsLook } from '../limits/limits-look.js'
import { lookAtLimits } from '../limits/look-function.js'
import type { ClaimedColumns } from '../schema/claimed-job.js'
import type { PostgresRecovery } from './postgres-recovery.js'

type Applied =
  | { readonly run: number }
  | { readonly stale: LimitsLook; readonly short: boolean }
  | { readonly now: number; readonly jobs: ClaimedColumns[] | null; readonly fence: number | null }

/** What a limited queue has granted, and how the claim leaves it. */
interface LimitedGrant {
  readonly queue: LimitedQueue
  readonly now: number
  readonly jobs: readonly ClaimedColumns[]
  readonly fence: number | null
  /** The weight of the jobs. */
  readonly bytes: number
}

/** How often a plan fails because somebody holds one of its jobs, until fewer jobs will do. */
const patience = 2

export class LimitedClaim {
  readonly #connection: PostgresConnection
  readonly #recovery: PostgresRecovery
  readonly #mostBytes: number

  constructor(connection: PostgresConnection, recovery: PostgresRecovery, mostBytes: number) {
    this.#connection = connection
    this.#recovery = recovery
    this.#mostBytes = mostBytes
  }

  /** `bytes`: the weight that the claim has already. */
  async grant(seen: LimitsLook, from: ClaimFrom, by: Claimer, bytes: number): Promise<LimitedGrant> {
    const isAlone = by.alone === true
    const limit = isAlone ? Math.min(from.limit, 1) : from.limit
    const { qid } = seen.limits.of
    const asking = [qid, limit, isAlone, this.#mostBytes]
    const payloads = mostPayloads(from)
    let look = seen
    let most = limit
    let misses = 0
    for (;;) {
      const limited = new LimitedQueue(look)
      const decided = limited.decide({ ...from, limit: most }, by, this.#mostBytes - bytes)
      if (decided === undefined) return { queue: limited, now: look.now, jobs: [], fence: null, bytes: 0 }
      const { key, version } = look.limits
      const leaseMs = Math.round(from.leaseMs ?? by.leaseMs)
      const run = await this.#recovery.run()
      const at = [
        payloads,
        leaseMs,
        by.worker,
        run,
        key,
        version,
        look.now,
        misses >= patience,
        JSON.stringify(decided.plan),
      ]
      const answer = (await this.#connection.call(applyPlan, [...asking, ...at])) as Applied
      if ('run' in answer) {
        this.#recovery.forgetRun()
        look = (await this.#connection.call(lookAtLimits, [...asking, [], true, payloads])) as LimitsLook
      } else if ('stale' in answer) {
        // A queue that had nothing to grant grants nothing now, but opens its lanes: a later queue may have granted already.
        if (!seen.grants) most = 0
        if (answer.short) misses += 1
        look = answer.stale
      } else {
        const { now, jobs, fence } = answer
        if (fence !== null) limited.granted(now + leaseMs)
        return { queue: limited, now, jobs: decided.inOrder(jobs ?? []), fence, bytes: decided.bytes }
      }
    }
  }
}

/** The most payloads of each ordered id that a claim takes; null: all. */
export function mostPayloads({ maxPayloads: most = Number.POSITIVE_INFINITY }: ClaimFrom): number | null {
  return most === Number.POSITIVE_INFINITY ? null : Math.max(1, most)
}
