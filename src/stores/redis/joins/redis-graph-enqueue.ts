/** Enqueueing joins and their members into a Redis store: one step for each shard, and graphs of several steps. */

import { StoreUnavailableError } from '../../../core/errors.js'
import type { JobKey } from '../../contract/job-records.js'
import type { GraphAnswer } from '../../contract/joins.js'
import type { EnqueueCall, Enqueued, NewJob } from '../../contract/new-job.js'
import type { NewJoin } from '../../contract/new-join.js'
import { memberId } from '../../rules/join-rules.js'
import type { RedisArgument, RedisClient } from '../client/redis-client.js'
import { textIn } from '../client/redis-reply.js'
import { enqueuedBy } from '../enqueue/redis-enqueue.js'
import { placedBody, recordBody, recordOrder } from '../format/redis-record.js'
import { changeScripts } from '../records/change-script.js'
import { joinIndexKeys } from '../redis-keys.js'
import { type RedisShard, shardHolding } from '../redis-layout.js'
import { fragmentKey, onDeadBytes, type RedisSet } from '../shards/redis-join-reports.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { enqueueGraphScript } from './enqueue-graph-script.js'
import { sealScript } from './join-scripts.js'

/** How often an enqueue drops what an earlier join of the same id has left. */
const mostDrops = 100

/** The jobs of a call that lie in one shard. */
interface GraphPart {
  readonly callId: string
  readonly isResent: boolean
  readonly shard: RedisShard
  readonly jobs: readonly NewJob[]
  /** For each job its place in the call. */
  readonly places: readonly number[]
}

export class RedisGraphEnqueue {
  readonly #client: RedisClient
  readonly #queues: RedisQueues
  readonly #namespace: string
  readonly #replicas: number

  /** `replicas`: the number of replicas that must have a step before it is answered. */
  constructor(client: RedisClient, queues: RedisQueues, namespace: string, replicas: number) {
    this.#client = client
    this.#queues = queues
    this.#namespace = namespace
    this.#replicas = replicas
  }

  /** Adds the jobs of a call, of which some are joins or members. */
  async call(call: EnqueueCall): Promise<Enqueued[]> {
    await this.#register([call])
    const answers = new Array<Enqueued>(call.jobs.length)
    await Promise.all(
      (await this.#partsOf(call, call.jobs)).map(async (part) => {
        const letters = await this.#send(part, false, part.isResent)
        for (const [i, place] of part.places.entries()) answers[place] = enqueuedBy[letters[i]!]!
      }),
    )
    return answers
  }

  /** See `Joins.enqueue`. */
  async graph(calls: readonly EnqueueCall[]): Promise<GraphAnswer> {
    // An unknown queue must change nothing.
    await this.#queues.find(calls.map(({ queue }) => queue))
    await this.#register(calls)
    const first = calls[0]!
    const root = first.jobs[0]!
    const [home] = await this.#partsOf({ ...first, callId: `${first.callId} first` }, [root])
    // Jobs that are there already may be of this graph: then it goes on where it was.
    const begun = await this.#sendWhole(home!)
    if (begun === 'd' || begun === 'x') return { outcome: 'duplicate' }
    const added: GraphPart[] = [home!]
    const refused = isRefused(begun) ? [refusalOf(home!, begun)] : []
    const joins = (job: NewJob) => job.join !== undefined
    for (const isOfStep of [joins, (job: NewJob) => !joins(job)]) {
      if (refused.length > 0) break
      const name = isOfStep === joins ? 'joins' : 'members'
      const parts = await Promise.all(
        calls.map((call) =>
          this.#partsOf(
            { ...call, callId: `${call.callId} ${name}` },
            call.jobs.filter((job) => job !== root && isOfStep(job)),
          ),
        ),
      )
      const sent = await Promise.allSettled(
        parts.flat().map(async (part) => {
          const letters = await this.#sendWhole(part)
          if (isRefused(letters)) refused.push(refusalOf(part, letters))
          else added.push(part)
        }),
      )
      for (const one of sent) if (one.status === 'rejected') throw one.reason
    }
    if (refused.length > 0) {
      await this.#undo(added)
      return refused[0]!
    }
    await Promise.all(added.flatMap(({ shard, jobs }) => jobs.filter(joins).map(({ id }) => this.seal(shard, id, {}))))
    return { outcome: 'added' }
  }

  /** Ends the enqueue of a join, or the adding of members to its open sets. Returns the answer of the script. */
  async seal(shard: RedisShard, id: string, sizes: Readonly<Record<string, number>>): Promise<string> {
    const answer = textIn(await this.#queues.run(shard, sealScript, [id, JSON.stringify(sizes)], this.#replicas))
    if (answer !== 'told') return answer
    await this.#queues.reports.deliver(shard)
    return 'ok'
  }

  /** Sweeps look only into the queues that are registered so. */
  async #register(calls: readonly EnqueueCall[]): Promise<void> {
    const fields = [...new Set(calls.map(({ queue }) => queue))].flatMap((queue) => [queue, '1'])
    await this.#client.command('HSET', [joinIndexKeys(this.#namespace)[0], ...fields])
  }

  async #partsOf(
    { callId, isResent = false, queue: name }: EnqueueCall,
    jobs: readonly NewJob[],
  ): Promise<GraphPart[]> {
    const [queue] = await this.#queues.find([name])
    const parts = new Map<RedisShard, GraphPart & { readonly jobs: NewJob[]; readonly places: number[] }>()
    for (const [place, job] of jobs.entries()) {
      const shard = shardHolding(queue!, job.id)
      const part = parts.get(shard) ?? { callId, isResent, shard, jobs: [], places: [] }
      part.jobs.push(job)
      part.places.push(place)
      parts.set(shard, part)
    }
    return [...parts.values()]
  }

  async #sendWhole(part: GraphPart): Promise<string> {
    const letters = await this.#send(part, true, part.isResent)
    // The call may have been sent before, although its sender does not say so.
    return isRefused(letters) && !part.isResent ? this.#send(part, true, true) : letters
  }

  /** Returns the letter of each job. */
  async #send({ callId, shard, jobs }: GraphPart, isWhole: boolean, isResent: boolean): Promise<string> {
    const args: RedisArgument[] = [isResent ? '1r' : '1', callId, String(jobs.length)]
    for (const job of jobs) args.push(job.id, recordOrder(job), isInGraph(job) ? placedBody(job) : recordBody(job))
    args.push(graphText(jobs, isWhole))
    for (let drops = 0; drops < mostDrops; drops += 1) {
      const reply = textIn(await this.#queues.run(shard, enqueueGraphScript, args, this.#replicas))
      if (reply !== '?') {
        if (!reply.endsWith('!')) return reply
        await this.#queues.reports.deliver(shard)
        return reply.slice(0, -1)
      }
      await this.#queues.reports.deliverOlder(shard, 0)
    }
    throw new StoreUnavailableError(
      'an earlier join of the same id ended a moment ago, and what it has left cannot be removed. Nothing was added; try again, and run `millrace fsck` where it goes on.',
      { inDoubt: false },
    )
  }

  /** Removes what was added of a graph that was refused: first the joins, so that none hears of the others. */
  async #undo(added: readonly GraphPart[]): Promise<void> {
    for (const isOfStep of [(job: NewJob) => job.join !== undefined, (job: NewJob) => job.join === undefined])
      await Promise.all(
        added.map(async ({ shard, jobs }) => {
          const ids = jobs.filter(isOfStep).map(({ id }) => id)
          if (ids.length === 0) return
          await this.#queues.run(shard, changeScripts, ['delete', 'wsj', '1000', '0', '', '0', 'ids', ...ids])
          await this.#queues.reports.deliver(shard)
        }),
      )
  }
}

/** Whether a job waits for others, or others for it. */
export function isInGraph({ join, memberOf }: NewJob): boolean {
  return join !== undefined || memberOf !== undefined
}

function isRefused(letters: string): boolean {
  return /[^ar]/.test(letters)
}

function refusalOf({ shard, jobs }: GraphPart, letters: string): GraphAnswer & { readonly refused: JobKey } {
  const at = letters.search(/[^ar]/)
  const as = enqueuedBy[letters[at]!] as Extract<GraphAnswer, { outcome: 'refused' }>['as']
  return { outcome: 'refused', refused: { queue: shard.queue, id: jobs[at]!.id }, as }
}

/** The last argument of the graph script for these jobs. */
function graphText(jobs: readonly NewJob[], isWhole: boolean): string {
  const numbers = new Map<string, number>()
  const fragments: (readonly [string, number, 0 | 1])[] = []
  const places = jobs.map(({ id, memberOf = [] }) => {
    if (memberOf.length === 0) return 0
    return memberOf.map(({ join, set, number, onDead, keepsResults }) => {
      const key = fragmentKey(join, set, baseOf(id, number))
      if (!numbers.has(key)) {
        fragments.push([key, onDeadBytes[onDead], keepsResults ? 1 : 0])
        numbers.set(key, fragments.length)
      }
      return [numbers.get(key)!, number]
    })
  })
  const joins = jobs.map(({ join }) => (join === undefined ? 0 : joinText(join)))
  return JSON.stringify({ fragments, joins, places, whole: isWhole })
}

function joinText({ sets, withinMs, sealWithinMs, cancelsRest }: NewJoin): string {
  const stored = sets.map(
    (set): RedisSet => ({
      ...{ name: set.name, queue: set.queue, ids: set.ids, base: baseOf(memberId(set, 0), 0) },
      many: set.isMany ? 1 : 0,
      on_dead: onDeadBytes[set.onDead],
      keeps: set.keepsResults ? 1 : 0,
      size: set.size ?? -1,
    }),
  )
  const within = withinMs === undefined ? -1 : Math.ceil(withinMs)
  return JSON.stringify({ sets: stored, within, seal: Math.ceil(sealWithinMs), rest: cancelsRest ? 1 : 0 })
}

/** What the ids of a set's members begin with, whether or not their numbers follow. */
function baseOf(id: string, number: number): string {
  const end = `.${number}`
  return id.endsWith(end) ? id.slice(0, -end.length) : id
}
