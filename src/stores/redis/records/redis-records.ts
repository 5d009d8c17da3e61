/** Administration of the jobs of a Redis store. */

import { mostFieldBytes, mostFields } from '../../../core/job/job-fields.js'
import type { JobSelection, ListQuery, Page, Records, Step, StoredJob } from '../../contract/job-records.js'
import { stepLimit, stepPayloads } from '../../rules/bounds.js'
import { refuseNewPlace } from '../../rules/queue-form.js'
import { listIn, numberIn, textIn } from '../client/redis-reply.js'
import { viewJobs } from '../format/redis-views.js'
import { guard, scriptPair } from '../lua/script-kinds.js'
import { liveShards, type RedisQueue, type RedisShard, shardsHolding, siblingKeys } from '../redis-layout.js'
import type { RedisResultWatch } from '../redis-result-watch.js'
import { queueStateScripts } from '../shards/queue-state-script.js'
import { type RedisQueues, unlessUnknown } from '../shards/redis-queues.js'
import type { RedisReshard } from '../shards/redis-reshard.js'
import { changeScripts } from './change-script.js'
import type { RedisListing } from './redis-listing.js'

/**
 * The states that a verb changes, in the order in which it takes them: w ready, s scheduled, j waiting for members or a
 * signal, u running, c completed, d dead.
 */
interface Verb {
  readonly name: 'cancel' | 'delete' | 'run' | 'place' | 'bury' | 'revive'
  readonly states: string
  readonly rings?: true
  readonly reason?: string | undefined
}

/** Ids, or a word for which jobs are meant. */
type Selected = readonly string[] | 'all' | 'failed'

const fieldAnswers: Readonly<Record<string, 'ok' | 'full'>> = { o: 'ok', f: 'full' }

function selection(where: Selected): readonly string[] {
  return typeof where === 'string' ? [where] : ['ids', ...where]
}

export function redisRecords(
  queues: RedisQueues,
  listing: RedisListing,
  reshard: RedisReshard,
  ends: RedisResultWatch,
): Records {
  async function change(name: string, where: JobSelection, verb: Verb): Promise<Step> {
    return queues.following(async () => {
      const [queue] = await queues.findNow([name])
      const step = { changed: 0, payloads: 0 }
      const shards = liveShards(queue!)
      for (const [i, shard] of shards.entries()) {
        const ids = typeof where === 'object' ? where.ids.filter((id) => shardsHolding(queue!, id).includes(shard)) : []
        if (typeof where === 'object' && ids.length === 0) continue
        const selected = typeof where === 'object' ? ids : where
        const { changed, payloads, more } = await changeIn(queue!, shard, selected, verb, step)
        step.changed += changed
        step.payloads += payloads
        // A full step does not look into later plain shards. The next step does.
        const isFull = shard.kind === 'plain' && step.changed === stepLimit && i < shards.length - 1
        if (more || isFull) return { changed: step.changed, more: true }
      }
      return { changed: step.changed, more: false }
    })
  }

  /**
   * `before`: the changes of this step in other shards. If the step is full, this only finds out whether there is more.
   */
  async function changeIn(
    queue: RedisQueue,
    shard: RedisShard,
    where: Selected,
    verb: Verb,
    before: { readonly changed: number; readonly payloads: number },
  ) {
    const { name, states, rings, reason } = verb
    let changed = 0
    for (let passed: string[] = []; ; ) {
      const args = [
        name,
        states,
        String(stepLimit - before.changed - changed),
        rings ? '1' : '0',
        reason === undefined ? '' : `=${reason}`,
        String(Math.max(0, stepPayloads - before.payloads)),
        ...selection(where),
        ...passed,
      ]
      const reply = await queues.runOver([shard], changeScripts, args, undefined, siblingKeys(queue))
      const [some, more, payloads, tells, next] = listIn(reply)
      if (tells === 1) await queues.reports.deliver(shard)
      changed += numberIn(some)
      if (next === undefined) return { changed, payloads: numberIn(payloads), more: more === 1 }
      passed = [String(numberIn(next))]
    }
  }

  /** Looks for the id in the shards that may have it, and returns the first result. */
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

  async function list(name: string, query: ListQuery): Promise<Page> {
    return queues.following(async () => {
      const [queue] = await queues.findNow([name])
      const { order } = await queues.stored(name)
      return listing.list(queue!, order === 'lifo', query)
    })
  }

  async function everywhere(name: string, args: readonly string[]): Promise<void> {
    await queues.runEverywhere(name, queueStateScripts, args)
  }

  /** For a plain queue, the job itself if it is dead. */
  async function morgueEntry(queue: string, id: string): Promise<StoredJob | undefined> {
    return firstOf(queue, id, async (shard) => {
      const [view] = await viewJobs(queues, shard, [id], { kind: 'dead', as: 'alone' })
      return view!.job?.state === 'dead' ? view!.job : undefined
    })
  }

  const dead = (where: JobSelection): JobSelection => (where === 'failed' ? 'all' : where)

  return {
    async queues() {
      const names = await queues.names()
      const stored = await Promise.all(names.sort().map((name) => unlessUnknown(queues.stored(name))))
      return stored.filter((one) => one !== undefined)
    },

    get: async (queue, id) => {
      const live = await firstOf(queue, id, async (shard) => {
        const [view] = await viewJobs(queues, shard, [id], { kind: 'live', as: 'alone' })
        return view!.job ?? view!.memory
      })
      if (live !== undefined) return live
      const [found] = await queues.find([queue])
      return found!.layout.kind === 'plain' ? undefined : morgueEntry(queue, id)
    },

    list,
    cancel: (queue, where, reason) => change(queue, where, { name: 'cancel', states: 'wsju', reason }),
    delete: (queue, where) =>
      change(queue, where, { name: 'delete', states: typeof where === 'object' ? 'wsjc' : 'wsj' }),
    runNow: (queue, where) => change(queue, where, { name: 'run', states: 's', rings: true }),
    async reschedule(queue, ids, { priority, delayMs, runAt }) {
      const [found] = await queues.find([queue])
      refuseNewPlace(queue, found!.layout.kind)
      const at = runAt === undefined ? '' : `r${Math.max(0, Math.trunc(runAt))}`
      const due = delayMs === undefined ? at : `d${Math.ceil(delayMs)}`
      const place = { name: 'place', states: 'ws', rings: true, reason: `${priority ?? ''},${due}` } as const
      return (await change(queue, { ids }, place)).changed
    },
    bury: (queue, where) => change(queue, where, { name: 'bury', states: 'wsj' }),

    async fail(queue, id, { delayMs, last, reason }) {
      const args = ['fail', id, String(Math.ceil(delayMs)), last ? '1' : '0', reason]
      const failed = await firstOf(queue, id, async (shard, of) => {
        const asked = await queues.runOver([shard], queueStateScripts, args, undefined, siblingKeys(of))
        if (asked === 2) await queues.reports.deliver(shard)
        return asked === 0 ? undefined : ('ok' as const)
      })
      return failed ?? 'gone'
    },

    async setFields(queue, id, changes) {
      const args = Object.entries(changes).flatMap(([name, value]) => [
        name,
        value === null ? '' : JSON.stringify(value),
      ])
      const set = await firstOf(queue, id, async (shard, of) => {
        const asked = await queues.runOver([shard], fieldsScripts, [id, ...args], undefined, siblingKeys(of))
        return fieldAnswers[textIn(asked)]
      })
      return set ?? 'gone'
    },

    pause: (queue) => everywhere(queue, ['pause']),
    resume: (queue) => everywhere(queue, ['resume']),
    drain: (queue) => everywhere(queue, ['drain']),
    async setLimits(queue, change) {
      const limits = await queues.setLimits(queue, change)
      await everywhere(queue, ['relimit'])
      return limits
    },
    clear: (queue) => change(queue, 'all', { name: 'delete', states: 'wsjd' }),

    reshard: (queue, shards) => queues.following(() => reshard.reshard(queue, shards)),
    move: (from, to) => queues.following(() => reshard.move(from, to)),
    morgue: {
      get: morgueEntry,
      list: (queue, query) => list(queue, { ...query, state: 'dead' }),
      revive: (queue, where) => change(queue, dead(where), { name: 'revive', states: 'd', rings: true }),
      delete: (queue, where) => change(queue, dead(where), { name: 'delete', states: 'd' }),
    },

    watch: (jobs, forMs, signal) => ends.watch(jobs, forMs, signal),
    expect: (jobs, by, forMs) => ends.expect(jobs, by, forMs),
  }
}

/**
 * KEYS: those of one shard. ARGV: id; for each field its name, and its value as JSON, or '' to remove it.
 * Returns o ok, g gone, f full. Refuses `unknown`.
 *
 * The note `f` has for each field its name, `=`, its value as JSON, and NUL. The translation of `rules/field-changes`.
 */
const fieldsLua = String.raw`
local id = ARGV[1]
local j = job(id)
if not j or is_hidden(j) then return 'g' end
local names, values = {}, {}
local function put(name, value)
  if not values[name] then names[#names + 1] = name end
  values[name] = value
end
for name, value in string.gmatch(call('HGET', NOTES, 'f' .. id) or '', '([^=]+)=(%Z*)%z') do put(name, value) end
for i = 2, #ARGV, 2 do put(ARGV[i], ARGV[i + 1]) end
local fields, bytes = {}, 0
for _, name in ipairs(names) do
  if values[name] ~= '' then
    fields[#fields + 1] = name .. '=' .. values[name] .. '\0'
    bytes = bytes + #name + #values[name]
  end
end
if #fields > ${mostFields} or bytes > ${mostFieldBytes} then return 'f' end
if #fields == 0 then
  call('HDEL', NOTES, 'f' .. id)
  return 'o'
end
-- The end of a job looks for notes only if a flag or a past says that there may be some.
if j.claim then
  if not has(j.claim.flags, BEATEN) then call('HSET', CLAIMS, id, with_flags(j.claim.text, j.claim.flags + BEATEN)) end
elseif j.fresh then
  local updated = j.updated
  -- Jobs in the ready list have no notes.
  if j.state == 'l' then
    leave(j)
    enter(j, 'r')
    j.updated = updated
  end
  call('HSET', HISTORY, id, write_past(j))
end
call('HSET', NOTES, 'f' .. id, table.concat(fields))
return 'o'
`

/** The fields script: sets small named values of a job, in any state. */
const fieldsScripts = scriptPair('fields', guard + fieldsLua)
