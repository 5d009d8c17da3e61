/** Administration of the jobs of a Redis store. */

import { stepLimit } from '../../core/upkeep.js'
import type { Records, Step, Where } from '../job-records.js'
import type { RedisEnds } from './redis-ends.js'
import type { RedisListing } from './redis-listing.js'
import { type RedisQueues, type RedisShard, unlessUnknown } from './redis-queues.js'
import { listIn, numberIn } from './redis-reply.js'
import type { RedisScripts } from './redis-scripts.js'
import { viewJobs } from './redis-views.js'

/** Which states a verb looks at, in the order in which it takes them: w ready, s scheduled, u running, c completed, d dead. */
interface Verb {
  readonly name: 'cancel' | 'delete' | 'run' | 'bury' | 'revive'
  readonly states: string
  readonly rings?: true
  readonly reason?: string | undefined
}

export function redisRecords(
  queues: RedisQueues,
  scripts: RedisScripts,
  listing: RedisListing,
  ends: RedisEnds,
): Records {
  async function change(queue: string, where: Where, verb: Verb): Promise<Step> {
    const [shards] = await queues.find([queue])
    let changed = 0
    for (const [i, shard] of shards!.entries()) {
      const ids = typeof where === 'object' ? where.ids.filter((id) => queues.shardOf(shards!, id) === shard) : []
      if (typeof where === 'object' && ids.length === 0) continue
      const step = await changeIn(shard, typeof where === 'object' ? ids : where, verb, stepLimit - changed)
      changed += step.changed
      // A step that is full does not look into the shards behind it: asking again does.
      if (step.more || (changed === stepLimit && i < shards!.length - 1)) return { changed, more: true }
    }
    return { changed, more: false }
  }

  async function changeIn(shard: RedisShard, where: readonly string[] | 'all' | 'failed', verb: Verb, most: number) {
    const { name, states, rings, reason } = verb
    const args = [name, states, String(most), rings ? '1' : '0', reason === undefined ? '' : `=${reason}`]
    const selection = typeof where === 'string' ? [where] : ['ids', ...where]
    const [changed, more] = listIn(await queues.run(shard, scripts.change, [...args, ...selection]))
    return { changed: numberIn(changed), more: more === 1 }
  }

  async function everywhere(queue: string, args: readonly string[]): Promise<void> {
    const [shards] = await queues.find([queue])
    await Promise.all(shards!.map((shard) => queues.run(shard, scripts.switch, args)))
  }

  const dead = (where: Where): Where => (where === 'failed' ? 'all' : where)

  return {
    async queues() {
      const names = await queues.names()
      const stored = await Promise.all(names.sort().map((name) => unlessUnknown(queues.stored(name))))
      return stored.filter((one) => one !== undefined)
    },

    async get(queue, id) {
      const [shards] = await queues.find([queue])
      const [view] = await viewJobs(queues, scripts, queues.shardOf(shards!, id), [id])
      return view!.job ?? view!.memory
    },

    list: (queue, query) => listing.list(queue, query),
    cancel: (queue, where, reason) => change(queue, where, { name: 'cancel', states: 'wsu', reason }),
    delete: (queue, where) =>
      change(queue, where, { name: 'delete', states: typeof where === 'object' ? 'wsc' : 'ws' }),
    runNow: (queue, where) => change(queue, where, { name: 'run', states: 's', rings: true }),
    bury: (queue, where) => change(queue, where, { name: 'bury', states: 'ws' }),

    async fail(queue, id, { delayMs, last, reason }) {
      const [shards] = await queues.find([queue])
      const args = ['fail', id, String(Math.ceil(delayMs)), last ? '1' : '0', reason]
      return (await queues.run(queues.shardOf(shards!, id), scripts.switch, args)) === 1 ? 'ok' : 'gone'
    },

    pause: (queue) => everywhere(queue, ['pause']),
    resume: (queue) => everywhere(queue, ['resume']),
    drain: (queue) => everywhere(queue, ['drain']),
    clear: (queue) => change(queue, 'all', { name: 'delete', states: 'wsd' }),

    morgue: {
      list: (queue, query) => listing.list(queue, { ...query, state: 'dead' }),
      revive: (queue, where) => change(queue, dead(where), { name: 'revive', states: 'd', rings: true }),
      delete: (queue, where) => change(queue, dead(where), { name: 'delete', states: 'd' }),
    },

    watch: (jobs, forMs, signal) => ends.watch(jobs, forMs, signal),
  }
}
