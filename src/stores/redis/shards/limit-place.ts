/** The place of a limit: where the jobs of a queue must lie so that something can count them together. */

import { ConfigConflictError } from '../../../core/errors.js'
import type { QueueSettings } from '../../contract/queue-settings.js'
import { refuseGroupBound } from '../../rules/queue-form.js'
import type { RedisLayout } from '../layout/redis-layout.js'

/**
 * Throws if a stored queue is to have a limit that its layout does not allow: what is counted together must be together,
 * a plain queue in one shard, and on a cluster everything in one place.
 */
export function refuseElsewhere(
  { name, throttle, maxRunning }: QueueSettings,
  { kind, shards, towards, place, scope }: RedisLayout,
  isCluster: boolean,
): void {
  if (throttle === undefined && (maxRunning === undefined || maxRunning === 'none')) return
  if (kind === 'ordered') refuseGroupBound(name, maxRunning, towards ?? shards)
  const limit = throttle === undefined ? 'maxRunning' : 'throttle'
  const remedy = `Its jobs lie where nothing can count them together. Give a new queue the ${limit} from its first use, and drain this one.`
  if (kind === 'plain' && shards > 1) throw new ConfigConflictError(name, 'shards', shards, 1, remedy)
  if (!isCluster) return
  const at = place ?? (kind === 'plain' ? name : undefined)
  const wanted = throttle?.scope ?? scope ?? at ?? name
  if (at !== wanted) throw new ConfigConflictError(name, 'the place', at ?? 'of each shard', wanted, remedy)
}
