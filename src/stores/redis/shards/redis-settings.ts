/** The settings of a queue on a Redis store, as the open script gets and returns them. Pure. */

import type { QueueSettings, StoredQueue } from '../../contract/queue-settings.js'
import type { QueueForm } from '../../rules/queue-form.js'
import type { RedisReply } from '../client/redis-client.js'
import { listIn, numberIn, textIn } from '../client/redis-reply.js'
import type { RedisQueue } from '../layout/redis-layout.js'

/** The arguments of the open script for one of `shards` shards. */
export function settingArgs(settings: QueueSettings, shards: number): string[] {
  const {
    kind,
    order,
    exclusive = 'id',
    merge,
    maxPending,
    maxCrashes,
    resultsCount,
    dead,
    maxRunning,
    throttle,
  } = settings
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
    typeof maxRunning === 'number' ? String(maxRunning) : '',
    typeof maxRunning === 'object' ? String(maxRunning.perGroup) : '',
    throttle?.scope ?? '',
    throttle?.by ?? '',
  ]
}

/** Without its throttle, because the scope has the throttle's rules. */
export function storedIn({ name, layout }: RedisQueue, reply: RedisReply): StoredQueue {
  const [, , , paused, draining, most, perGroup] = listIn(reply)
  const shards = layout.kind === 'plain' ? 1 : layout.shards
  return {
    ...{ name, ...formIn(reply), shards, paused: paused === 1, draining: draining === 1 },
    ...(textIn(most) === '' ? {} : { maxRunning: numberIn(most) }),
    ...(textIn(perGroup) === '' ? {} : { maxRunning: { perGroup: numberIn(perGroup) } }),
    ...(layout.towards === undefined ? {} : { resharding: layout.towards }),
  }
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
