/** The settings of a queue on a Redis store, as the open script gets and returns them. Pure. */

import type { QueueLimits } from '../../../core/queue/queue-limits.js'
import type { QueueBasis, StoredQueue } from '../../contract/queue-settings.js'
import { boundsOf, limitsFrom, limitsText, runningBounds } from '../../rules/limit-rules.js'
import type { QueueForm } from '../../rules/queue-form.js'
import type { RedisReply } from '../client/redis-client.js'
import { listIn, numberIn, textIn } from '../client/redis-reply.js'
import type { RedisQueue } from '../layout/redis-layout.js'

/** The limits that have been said of a queue, and how often they have changed. */
export interface SaidLimits {
  readonly limits: QueueLimits
  readonly turn: number
}

/** The arguments of the open script for one of `shards` shards. */
export function settingArgs(settings: QueueBasis, { limits, turn }: SaidLimits, shards: number): string[] {
  const { kind, order, exclusive = 'id', merge, throttle } = settings
  const { maxPending, maxCrashes, resultsCount, dead, maxRunning } = boundsOf(limits)
  const { total, perGroup } = runningBounds(maxRunning)
  const share = (bound: number | undefined) => (bound === undefined ? '' : String(Math.ceil(bound / shards)))
  const isOrdered = kind === 'ordered'
  return [
    kind,
    order,
    exclusive,
    merge ?? '',
    share(maxPending),
    String(maxCrashes),
    share(resultsCount),
    dead.ageMs === undefined ? '' : String(Math.ceil(dead.ageMs)),
    share(dead.count),
    isOrdered ? [maxPending, resultsCount, dead.count].map((bound) => bound ?? '').join(',') : '',
    String(total ?? ''),
    String(perGroup ?? ''),
    throttle?.scope ?? '',
    throttle?.eachGroup === undefined ? (throttle?.by ?? '') : 'both',
    limitsText(limits),
    String(turn),
  ]
}

/** Without its throttle, because the scope has the throttle's rules. */
export function storedIn({ name, layout }: RedisQueue, reply: RedisReply): StoredQueue {
  const [, , , paused, draining] = listIn(reply)
  const shards = layout.kind === 'plain' ? 1 : layout.shards
  const { limits } = saidIn(reply)
  const { maxRunning } = boundsOf(limits)
  return {
    ...{ name, ...formIn(reply), shards, paused: paused === 1, draining: draining === 1, limits },
    ...(maxRunning === undefined ? {} : { maxRunning }),
    ...(layout.towards === undefined ? {} : { resharding: layout.towards }),
  }
}

/** The limits that have been said. */
export function saidIn(reply: RedisReply): SaidLimits {
  const [, , , , , limits, turn] = listIn(reply)
  return { limits: limitsFrom(textIn(limits)), turn: numberIn(turn) }
}

/** The limits after a change of those in the shard's `state`, which is null if there is no shard. */
export function nextSaid(state: RedisReply, decide: (said?: QueueLimits) => QueueLimits): SaidLimits {
  if (state === null) return { limits: decide(), turn: 0 }
  const { limits: before, turn } = saidIn(state)
  const limits = decide(before)
  return { limits, turn: limitsText(limits) === limitsText(before) ? turn : turn + 1 }
}

/** Whether a shard has these limits, and no later ones. */
export function isSaid(reply: RedisReply, { limits, turn }: SaidLimits): boolean {
  const stored = saidIn(reply)
  return stored.turn === turn && limitsText(stored.limits) === limitsText(limits)
}

/** The settings that are fixed at first use. */
export function formIn(reply: RedisReply): Required<QueueForm> {
  const [kind, order, exclusive] = listIn(reply)
  return {
    kind: textIn(kind) as QueueForm['kind'],
    order: textIn(order) as QueueForm['order'],
    exclusive: textIn(exclusive) as Required<QueueForm>['exclusive'],
  }
}
