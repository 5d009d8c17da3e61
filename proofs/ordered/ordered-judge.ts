/** The judge of an ordered drill: compares the audit, the morgue and the ledger of the handlers. Pure. */

import { type AuditEntry, auditBreaches } from 'millrace/store-testing'
import type { HandOver } from '../ledger.js'

export interface OrderedJudgement {
  readonly handOvers: number
  /** Payloads in a claim that completed. */
  readonly completed: number
  /** Payloads in the morgue. */
  readonly buried: number
  /** Payloads that neither completed nor were buried, and those that did so more than once. */
  readonly lost: number
  readonly twice: number
  /** Claims that ended neither by a completion nor by a burial, and were made again. */
  readonly returned: number
  /** Claims of an id made while another claim of it was current, and everything else that no audit may show. */
  readonly breaches: readonly string[]
  /** Claims made while another batch of their shard ran. Counted only if the shard is exclusive. */
  readonly shardOverlaps: number
  /** Hand-overs whose payloads were not in the order of their scores. */
  readonly disorders: number
  /** Accepted writes with a smaller fence than an earlier accepted write. */
  readonly staleWrites: number
}

export interface OrderedEvidence {
  readonly audit: readonly AuditEntry[]
  readonly handOvers: readonly HandOver[]
  readonly writings: readonly { readonly id: string; readonly fence: number }[]
  /** Numbers of the payloads in the morgue, by id. */
  readonly morgue: ReadonlyMap<string, readonly number[]>
  readonly ids: readonly string[]
  /** Each id was given the payloads 0 … one less than this. */
  readonly payloadsPerId: number
  readonly isShardExclusive: boolean
}

export function orderedJudgement(evidence: OrderedEvidence): OrderedJudgement {
  const { audit, handOvers, writings, morgue, ids, payloadsPerId, isShardExclusive } = evidence
  const byClaim = new Map(handOvers.map((one) => [claimName(one.id, one.fence), one.payloads]))
  const ends = new Map(ids.map((id) => [id, new Array<number>(payloadsPerId).fill(0)]))
  const buried = [...morgue].flatMap(([id, numbers]) => numbers.map((n) => ({ id, n })))
  for (const { id, n } of buried) ends.get(id)![n]! += 1
  let completed = 0
  let returned = 0
  for (const { id, kind, from, fence } of audit) {
    if (from !== 'running') continue
    const payloads = byClaim.get(claimName(id, fence)) ?? []
    // A claim also leaves when its only payload was buried.
    const isBurial = payloads.length === 1 && morgue.get(id)?.includes(payloads[0]!) === true
    if (kind !== 'leave') returned += 1
    else if (!isBurial) {
      completed += payloads.length
      for (const n of payloads) ends.get(id)![n]! += 1
    }
  }
  const counts = [...ends.values()].flat()
  return {
    handOvers: handOvers.length,
    completed,
    buried: buried.length,
    lost: counts.filter((count) => count === 0).length,
    twice: counts.filter((count) => count > 1).length,
    returned,
    breaches: auditBreaches(audit),
    shardOverlaps: isShardExclusive ? shardOverlaps(audit) : 0,
    disorders: handOvers.filter(({ payloads }) => payloads.some((n, i) => i > 0 && n <= payloads[i - 1]!)).length,
    staleWrites: staleWrites(writings),
  }
}

const claimName = (id: string, fence: number) => `${id} ${fence}`

/** A batch is the claims of one call, which share one fence. */
function shardOverlaps(audit: readonly AuditEntry[]): number {
  const running = new Map<number | undefined, Map<string, number>>()
  let overlaps = 0
  for (const { shard, id, kind, from, fence } of audit) {
    const held = running.get(shard) ?? new Map<string, number>()
    running.set(shard, held)
    if (kind === 'claim') {
      if ([...held.values()].some((other) => other !== fence)) overlaps += 1
      held.set(id, fence)
    } else if (from === 'running') held.delete(id)
  }
  return overlaps
}

function staleWrites(writings: OrderedEvidence['writings']): number {
  const fences = new Map<string, number>()
  let stale = 0
  for (const { id, fence } of writings) {
    if (fence < (fences.get(id) ?? 0)) stale += 1
    fences.set(id, Math.max(fence, fences.get(id) ?? 0))
  }
  return stale
}
