/** Administration of the jobs of a Redis store. */

import {
  type ListQuery,
  type Page,
  payloadsInRecord,
  type Records,
  type Step,
  type StoredJob,
  type Where,
} from '../../contract/job-records.js'
import { stepLimit, stepPayloads } from '../../rules/bounds.js'
import { listIn, numberIn } from '../client/redis-reply.js'
import { viewOrdered } from '../format/redis-ordered-job.js'
import { viewJobs } from '../format/redis-views.js'
import { liveShards, type RedisQueue, type RedisShard, shardsHolding, siblingKeys } from '../layout/redis-layout.js'
import type { RedisReshard } from '../reshard/redis-reshard.js'
import { failOrderedScript, queueStateScript } from '../shards/queue-state-script.js'
import { type RedisQueues, unlessUnknown } from '../shards/redis-queues.js'
import type { RedisResultWatch } from '../wait/redis-result-watch.js'
import { changeOrderedScript } from './change-ordered-script.js'
import { changeScript } from './change-script.js'
import type { RedisListing } from './redis-listing.js'
import type { RedisOrderedListing } from './redis-ordered-listing.js'

/** Which states a verb looks at, in the order in which it takes them: w ready, s scheduled, u running, c completed, d dead. */
interface Verb {
  readonly name: 'cancel' | 'delete' | 'run' | 'bury' | 'revive'
  readonly states: string
  readonly rings?: true
  readonly reason?: string | undefined
}

/** Ids, or what they are meant by. */
type Selected = readonly string[] | 'all' | 'failed'

function selection(where: Selected): readonly string[] {
  return typeof where === 'string' ? [where] : ['ids', ...where]
}

export function redisRecords(
  queues: RedisQueues,
  listing: RedisListing,
  orderedListing: RedisOrderedListing,
  reshard: RedisReshard,
  ends: RedisResultWatch,
): Records {
  async function change(name: string, where: Where, verb: Verb): Promise<Step> {
    return queues.following(async () => {
      const [queue] = await queues.findNow([name])
      const step = { changed: 0, payloads: 0 }
      const shards = liveShards(queue!)
      for (const [i, shard] of shards.entries()) {
        const ids = typeof where === 'object' ? where.ids.filter((id) => shardsHolding(queue!, id).includes(shard)) : []
        if (typeof where === 'object' && ids.length === 0) continue
        const selected = typeof where === 'object' ? ids : where
        if (shard.kind === 'ordered') {
          const { changed, payloads, more } = await changeOrdered(queue!, shard, selected, verb, step)
          step.changed += changed
          step.payloads += payloads
          if (more) return { changed: step.changed, more: true }
        } else {
          const { changed, more } = await changeIn(shard, selected, verb, stepLimit - step.changed)
          step.changed += changed
          // A step that is full does not look into the shards behind it: asking again does.
          if (more || (step.changed === stepLimit && i < shards.length - 1))
            return { changed: step.changed, more: true }
        }
      }
      return { changed: step.changed, more: false }
    })
  }

  async function changeIn(shard: RedisShard, where: Selected, verb: Verb, most: number) {
    const { name, states, rings, reason } = verb
    const args = [name, states, String(most), rings ? '1' : '0', reason === undefined ? '' : `=${reason}`]
    const [changed, more] = listIn(await queues.run(shard, changeScript, [...args, ...selection(where)]))
    return { changed: numberIn(changed), more: more === 1 }
  }

  /** `before`: what the step has changed in other shards. One that is full is only told whether there is more. */
  async function changeOrdered(
    queue: RedisQueue,
    shard: RedisShard,
    where: Selected,
    verb: Verb,
    before: { readonly changed: number; readonly payloads: number },
  ) {
    const { name, states, rings, reason } = verb
    const args = [
      name,
      states,
      String(stepLimit - before.changed),
      rings ? '1' : '0',
      reason === undefined ? '' : `=${reason}`,
      String(Math.max(0, stepPayloads - before.payloads)),
    ]
    const all = [...args, ...selection(where)]
    const reply = await queues.runOver([shard], changeOrderedScript, all, undefined, siblingKeys(queue))
    const [changed, more, payloads] = listIn(reply)
    return { changed: numberIn(changed), payloads: numberIn(payloads), more: more === 1 }
  }

  /** What there is of the id in the shards where it may be; the first that is there. */
  async function firstOf<T>(
    name: string,
    id: string,
    look: (shard: RedisShard, of: RedisQueue) => Promise<T | undefined>,
  ) {
    return queues.following(async () => {
      const [queue] = await queues.findNow([name])
      for (const shard of shardsHolding(queue!, id)) {
        const found = await look(shard, queue!)
        if (found !== undefined) return found
      }
      return undefined
    })
  }

  async function ordered(shard: RedisShard, of: 'live' | 'dead', id: string): Promise<StoredJob | undefined> {
    const [view] = await viewOrdered(queues, shard, of, [id], payloadsInRecord)
    return view === undefined || view.isHidden ? undefined : view.job
  }

  async function list(name: string, query: ListQuery): Promise<Page> {
    return queues.following(async () => {
      const [queue] = await queues.findNow([name])
      if (queue!.layout.kind === 'plain') return listing.list(name, query)
      const { order } = await queues.stored(name)
      return orderedListing.list(queue!, order === 'lifo', query)
    })
  }

  async function everywhere(name: string, args: readonly string[]): Promise<void> {
    await queues.following(async () => {
      const [queue] = await queues.findNow([name])
      await Promise.all(liveShards(queue!).map((shard) => queues.run(shard, queueStateScript, args)))
    })
  }

  /** Of a plain queue the job itself, where it is dead. */
  async function morgueEntry(queue: string, id: string): Promise<StoredJob | undefined> {
    return firstOf(queue, id, async (shard) => {
      if (shard.kind === 'ordered') return ordered(shard, 'dead', id)
      const [view] = await viewJobs(queues, shard, [id], 'alone')
      return view!.job?.state === 'dead' ? view!.job : undefined
    })
  }

  const dead = (where: Where): Where => (where === 'failed' ? 'all' : where)

  return {
    async queues() {
      const names = await queues.names()
      const stored = await Promise.all(names.sort().map((name) => unlessUnknown(queues.stored(name))))
      return stored.filter((one) => one !== undefined)
    },

    get: async (queue, id) => {
      const live = await firstOf(queue, id, async (shard) => {
        if (shard.kind === 'ordered') return ordered(shard, 'live', id)
        const [view] = await viewJobs(queues, shard, [id], 'alone')
        return view!.job ?? view!.memory
      })
      if (live !== undefined) return live
      const [found] = await queues.find([queue])
      return found!.layout.kind === 'plain' ? undefined : morgueEntry(queue, id)
    },

    list,
    cancel: (queue, where, reason) => change(queue, where, { name: 'cancel', states: 'wsu', reason }),
    delete: (queue, where) =>
      change(queue, where, { name: 'delete', states: typeof where === 'object' ? 'wsc' : 'ws' }),
    runNow: (queue, where) => change(queue, where, { name: 'run', states: 's', rings: true }),
    bury: (queue, where) => change(queue, where, { name: 'bury', states: 'ws' }),

    async fail(queue, id, { delayMs, last, reason }) {
      const args = [id, String(Math.ceil(delayMs)), last ? '1' : '0', reason]
      const failed = await firstOf(queue, id, async (shard, of) => {
        const asked =
          shard.kind === 'plain'
            ? queues.run(shard, queueStateScript, ['fail', ...args])
            : queues.runOver([shard], failOrderedScript, args, undefined, siblingKeys(of))
        return (await asked) === 1 ? ('ok' as const) : undefined
      })
      return failed ?? 'gone'
    },

    pause: (queue) => everywhere(queue, ['pause']),
    resume: (queue) => everywhere(queue, ['resume']),
    drain: (queue) => everywhere(queue, ['drain']),
    clear: (queue) => change(queue, 'all', { name: 'delete', states: 'wsd' }),

    reshard: (queue, shards) => queues.following(() => reshard.reshard(queue, shards)),
    move: (from, to) => queues.following(() => reshard.move(from, to)),
    morgue: {
      get: morgueEntry,
      list: (queue, query) => list(queue, { ...query, state: 'dead' }),
      revive: (queue, where) => change(queue, dead(where), { name: 'revive', states: 'd', rings: true }),
      delete: (queue, where) => change(queue, dead(where), { name: 'delete', states: 'd' }),
    },

    watch: (jobs, forMs, signal) => ends.watch(jobs, forMs, signal),
  }
}
