/**
 * The groups that jobs of this worker have held: jobs that were claimed before a hold, and have not begun, obey it. Jobs
 * that are claimed later are not of the group, or somebody has ended the hold.
 */

import type { Verdict } from '../../runtime/run/verdict.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { SettleAnswer } from '../../stores/contract/settle.js'

interface GroupHold {
  readonly until: number
  /** When the store answered the settle that brought the hold; undefined: not yet. */
  readonly answeredAt: number | undefined
}

/** Beyond this number, holds that are over are forgotten at the next one. */
const mostKept = 1_000

export class HeldGroups {
  readonly #mono: () => number
  readonly #canHold: boolean
  #holds = new Map<string, GroupHold>()

  /** `canHold`: whether the store can hold a group. */
  constructor(mono: () => number, canHold: boolean) {
    this.#mono = mono
    this.#canHold = canHold
  }

  /**
   * The end of this claim holds its group; if it has none, its queue. `answer`: of the store; undefined: the end is about
   * to be sent, or will never be taken.
   */
  heed({ queue, group }: Claim, { holdMs }: Pick<Verdict, 'holdMs'>, answer?: SettleAnswer): void {
    if (holdMs === undefined || !this.#canHold) return
    const now = this.#mono()
    const key = keyOf(queue, group)
    if (answer !== undefined && answer !== 'ok') {
      this.#holds.delete(key)
      return
    }
    if (this.#holds.size >= mostKept) this.#holds = new Map([...this.#holds].filter(([, { until }]) => until > now))
    const until = Math.max(now + holdMs, this.#holds.get(key)?.until ?? now)
    this.#holds.set(key, { until, answeredAt: answer === undefined ? undefined : now })
  }

  /** Whether a claim must not begin now. `claimedAt`: when it was sent, like `now` on the monotonic clock. */
  areHolding({ queue, group }: Claim, claimedAt: number, now: number): boolean {
    if (this.#holds.size === 0) return false
    const keys = group === undefined ? [keyOf(queue, undefined)] : [keyOf(queue, undefined), keyOf(queue, group)]
    return keys.some((key) => {
      const hold = this.#holds.get(key)
      return hold !== undefined && hold.until > now && claimedAt <= (hold.answeredAt ?? now)
    })
  }
}

/** No queue name contains a space. */
function keyOf(queue: string, group: string | undefined): string {
  return group === undefined ? queue : `${queue} ${group}`
}
