/** The limits of a batch of calls: how much of a transaction's bounds each call takes. */

import type { ClaimFrom } from '../../contract/claim.js'
import type { ExtendItem, SettleItem } from '../../contract/settle.js'
import { mostClaimBytes } from '../../rules/claim-weight.js'
import type { BareCall, SqliteEnqueueCall } from '../work/sqlite-bare-call.js'
import type { Completions } from '../work/sqlite-completion.js'
import type { ThreadCall } from './sqlite-thread-messages.js'

export interface Weight {
  readonly jobs: number
  readonly bytes: number
}

/** Bytes are estimated: a text counts its UTF-16 units. An invalid call is refused by its operation, not here. */
export function weightOf(call: ThreadCall): Weight {
  try {
    return weighed(call)
  } catch {
    return { jobs: 1, bytes: 0 }
  }
}

function weighed([, name, [first]]: ThreadCall): Weight {
  if (name === 'enqueue') {
    let jobs = 0
    let bytes = 0
    for (const call of first as readonly (SqliteEnqueueCall | BareCall)[]) {
      if ('rows' in call) {
        jobs += call.count
        bytes += call.units
        continue
      }
      jobs += call.jobs.length
      for (const { payload, meta } of call.jobs) bytes += (payload?.length ?? 0) + (meta?.length ?? 0)
    }
    return { jobs, bytes }
  }
  if (name === 'settle') {
    const items = first as readonly SettleItem[]
    let bytes = 0
    for (const item of items) if (item.kind === 'complete') bytes += item.result?.payload?.length ?? 0
    return { jobs: items.length, bytes }
  }
  if (name === 'complete') return { jobs: (first as Completions).count, bytes: 0 }
  if (name === 'claim') {
    const from = first as readonly ClaimFrom[]
    return { jobs: from[0]?.limit ?? 0, bytes: Math.max(0, ...from.map(mostHandedOver)) }
  }
  if (name === 'extend') {
    const items = first as readonly ExtendItem[]
    let bytes = 0
    for (const { beat } of items) bytes += (beat?.checkpoint?.payload.length ?? 0) + (beat?.log?.length ?? 0)
    return { jobs: items.length, bytes }
  }
  if (name === 'gone') return { jobs: (first as readonly unknown[]).length, bytes: 0 }
  return { jobs: 1, bytes: 0 }
}

/**
 * The most bytes of payloads that a claim hands over, as far as the call shows. Payloads of an ordered queue are all in
 * the answer.
 */
function mostHandedOver({ limit, maxPayloads }: ClaimFrom): number {
  if (maxPayloads === undefined || limit === 0) return 0
  return maxPayloads === Number.POSITIVE_INFINITY ? maxPayloads : mostClaimBytes
}
