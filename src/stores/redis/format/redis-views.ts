/** Views: jobs of a Redis store, read by id. */

import { payloadsInPage, payloadsInRecord } from '../../contract/job-records.js'
import { listIn, numberIn, textIn } from '../client/redis-reply.js'
import type { RedisShard } from '../layout/redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { type JobView, viewIn } from './redis-job.js'
import { orderedViewIn } from './redis-ordered-job.js'
import { viewScripts } from './view-scripts.js'

/** The most jobs of one call. Records are large, and more would hold up the server. */
const mostAtOnce = 50

interface LookAt {
  /** For an ordered queue, the live job or the entry in the morgue. A plain queue has its dead jobs among the live. */
  readonly kind: 'live' | 'dead'
  /** A job that is read alone also has its checkpoint and log, and more of its payloads. */
  readonly as: 'listed' | 'alone'
}

/** The views, in the order of the ids. */
export async function viewJobs(
  queues: RedisQueues,
  shard: RedisShard,
  ids: readonly string[],
  { kind, as }: LookAt,
): Promise<JobView[]> {
  const isAlone = as === 'alone'
  const how =
    shard.kind === 'plain' ? [isAlone ? '1' : '0'] : [kind, String(isAlone ? payloadsInRecord : payloadsInPage)]
  const views: JobView[] = []
  for (let i = 0; i < ids.length; i += mostAtOnce) {
    const some = ids.slice(i, i + mostAtOnce)
    const [now, deadAgeMs, found] = listIn(await queues.run(shard, viewScripts, [...how, ...some]))
    const hiddenUntil = textIn(deadAgeMs) === '' ? Number.NEGATIVE_INFINITY : numberIn(now) - numberIn(deadAgeMs)
    for (const [n, reply] of listIn(found).entries()) {
      const id = some[n]!
      views.push(
        shard.kind === 'plain'
          ? viewIn(shard.queue, id, reply, numberIn(now), hiddenUntil)
          : orderedViewIn(kind, shard.queue, id, reply, hiddenUntil),
      )
    }
  }
  return views
}
