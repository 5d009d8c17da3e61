/** Views: jobs of a Redis store, looked at by id. */

import { listIn, numberIn, textIn } from '../client/redis-reply.js'
import type { RedisShard } from '../layout/redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { type JobView, viewIn } from './redis-job.js'
import { viewScript } from './view-scripts.js'

/** Records are large; more at once would hold the server up. */
const mostAtOnce = 50

/** In the order of the ids; with checkpoints and logs where they are looked at `alone`. */
export async function viewJobs(
  queues: RedisQueues,
  shard: RedisShard,
  ids: readonly string[],
  as: 'listed' | 'alone',
): Promise<JobView[]> {
  const views: JobView[] = []
  for (let i = 0; i < ids.length; i += mostAtOnce) {
    const some = ids.slice(i, i + mostAtOnce)
    const [now, deadAgeMs, found] = listIn(await queues.run(shard, viewScript, [as === 'alone' ? '1' : '0', ...some]))
    const age = textIn(deadAgeMs)
    listIn(found).forEach((view, n) => {
      views.push(viewIn(shard.queue, some[n]!, view, numberIn(now), age === '' ? undefined : Number(age)))
    })
  }
  return views
}
