/** Enqueueing into a Redis store: packs calls into trips, each to one shard and as large as allowed. */

import { payloadBytes } from '../../../core/values/codec.js'
import type { EnqueueCall, Enqueued, NewJob } from '../../contract/new-job.js'
import type { QueueKind } from '../../contract/queue-settings.js'
import type { RedisArgument } from '../client/redis-client.js'
import { textIn } from '../client/redis-reply.js'
import { payloadBody, scoreText } from '../format/redis-payload.js'
import { recordBody, recordOrder } from '../format/redis-record.js'
import { scriptPair } from '../lua/script-kinds.js'
import { type RedisShard, siblingKeys } from '../redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { sendByShard } from '../shards/redis-shard-router.js'
import { enqueueOrderedText } from './enqueue-ordered-script.js'
import { enqueueText } from './enqueue-script.js'

/** The most that one script call gets: two full calls. A larger one would keep all others waiting. */
const mostJobs = 500
const mostBytes = 1_048_576

export const enqueuedBy: Record<string, Enqueued> = {
  a: 'added',
  m: 'merged',
  r: 'replaced',
  d: 'duplicate',
  x: 'dead',
  f: 'full',
  g: 'draining',
}

/** The jobs of one call that belong to one shard. */
interface Part {
  readonly callId: string
  /** The id of the whole call, if `callId` names only this part of it. */
  readonly wholeCallId?: string
  readonly isResent: boolean
  readonly hasNewIds: boolean
  readonly jobs: readonly NewJob[]
  /** The answers of the call. */
  readonly answers: Enqueued[]
  /** For each job, the position of its answer. Absent if the part has all jobs of the call. */
  readonly places?: readonly number[]
  /** The part has all jobs of the call although it has places: the queue has one shard. */
  readonly isWhole?: boolean
}

export async function enqueueCalls(
  queues: RedisQueues,
  calls: readonly EnqueueCall[],
  replicas: number,
): Promise<Enqueued[][]> {
  const answers = calls.map(({ jobs }) => new Array<Enqueued>(jobs.length))
  const found = await queues.find(calls.map(({ queue }) => queue))
  const whole = new Map<RedisShard, Part[]>()
  const spread: number[] = []
  for (const [i, { callId, isResent = false, hasNewIds = false, jobs }] of calls.entries()) {
    const { shards, layout } = found[i]!
    if (layout.kind === 'ordered' || shards.length > 1) spread.push(i)
    else addPart(whole, shards[0]!, { callId, isResent, hasNewIds, jobs, answers: answers[i]! })
  }
  const sendTo = (shard: RedisShard, parts: readonly Part[], behind: readonly string[] = []) => {
    return tripsOf(parts, shard.kind).map(async ({ args, parts }) => {
      const reply = textIn(await queues.runOver([shard], enqueueScripts, args, replicas, behind))
      const tells = reply.endsWith('!')
      for (const [i, letters] of (tells ? reply.slice(0, -1) : reply).split(',').entries()) take(parts[i]!, letters)
      if (tells) await queues.reports.deliver(shard)
    })
  }
  const sent = [...whole].flatMap(([shard, parts]) => sendTo(shard, parts))
  if (spread.length > 0) sent.push(sendSpread(queues, spread, calls, answers, sendTo))
  // Wait for all trips even if one fails: when the caller sends the call again, none of them may still be running.
  await allEnded(sent)
  return answers
}

async function allEnded(sent: readonly Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(sent)).find((one) => one.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

/** Sends the jobs of these calls, with each call divided among the shards of its jobs. */
function sendSpread(
  queues: RedisQueues,
  numbers: readonly number[],
  calls: readonly EnqueueCall[],
  answers: readonly Enqueued[][],
  sendTo: (shard: RedisShard, parts: readonly Part[], behind: readonly string[]) => Promise<void>[],
): Promise<void> {
  const items = numbers.flatMap((call) => {
    const { queue, jobs } = calls[call]!
    return jobs.map((job, place) => ({ queue, id: job.id, job, call, place }))
  })
  return sendByShard(queues, items, async (shard, of, queue) => {
    const { shards } = queue
    const parts = new Map<number, Part & { readonly jobs: NewJob[]; readonly places: number[] }>()
    for (const i of of) {
      const { call, job, place } = items[i]!
      // An earlier trip added the job before its shard moved. Sent again, it would be its own duplicate.
      if (answers[call]![place] !== undefined) continue
      const isWhole = shards.length === 1 && shards[0] === shard
      const { callId, isResent = false, hasNewIds = false } = calls[call]!
      const ofCall = { callId, isResent, hasNewIds, answers: answers[call]!, isWhole }
      const part = parts.get(call) ?? { ...ofCall, jobs: [], places: [] }
      part.jobs.push(job)
      part.places.push(place)
      parts.set(call, part)
    }
    // While a queue moves, jobs of one call may come to one shard in several parts. Each part is remembered by itself.
    const named = (part: Part) => ({
      ...part,
      callId: `${part.callId} ${part.places!.join()}`,
      wholeCallId: part.callId,
    })
    const all = [...parts.values()]
    if (all.length === 0) return
    await allEnded(sendTo(shard, shards.includes(shard) ? all : all.map(named), siblingKeys(queue)))
  })
}

function addPart(parts: Map<RedisShard, Part[]>, shard: RedisShard, part: Part): void {
  const others = parts.get(shard)
  if (others === undefined) parts.set(shard, [part])
  else others.push(part)
}

function take({ answers, places, isWhole }: Part, letters: string): void {
  const isAll = places === undefined || isWhole === true
  // A call that is answered from memory may have had other jobs.
  if (isAll) answers.length = letters.length
  for (let i = 0; i < letters.length; i += 1) {
    const place = isAll ? i : places[i]
    if (place !== undefined) answers[place] = enqueuedBy[letters[i]!]!
  }
}

interface EnqueueTrip {
  readonly parts: Part[]
  /** In the long form, without the first. */
  readonly args: RedisArgument[]
  jobs: number
  bytes: number
}

/** A call stays whole: all its jobs are accepted, or none. */
function tripsOf(parts: readonly Part[], kind: QueueKind): EnqueueTrip[] {
  const trips: EnqueueTrip[] = []
  let trip: EnqueueTrip = { parts: [], args: [], jobs: 0, bytes: 0 }
  for (const part of parts) {
    const { args } = trip
    const from = args.length
    const bytes = packCall(kind, part, args)
    if (trip.parts.length > 0 && (trip.jobs + part.jobs.length > mostJobs || trip.bytes + bytes > mostBytes)) {
      trips.push(trip)
      trip = { parts: [], args: args.splice(from), jobs: 0, bytes: 0 }
    }
    trip.parts.push(part)
    trip.jobs += part.jobs.length
    trip.bytes += bytes
  }
  trips.push(trip)
  return trips.map((trip) => ({ ...trip, args: argumentsOf(trip, kind) }))
}

/** The arguments of the script. */
function argumentsOf({ parts, args }: EnqueueTrip, kind: QueueKind): RedisArgument[] {
  const calls = parts.length
  const isResent = parts.some((part) => part.isResent)
  const short = kind === 'plain' && !isResent ? shortened(parts, args) : undefined
  if (short === undefined) return [callsText(calls, parts, isResent), ...args]
  const areNew = parts.every((part) => part.hasNewIds || isNamed(part))
  return [`${calls}${areNew ? 'n' : 's'}`, ...short]
}

/**
 * The first argument of the long form. An `f` makes the script look for fields in the orders; an `r` makes it look for
 * remembered calls, because one may have been sent before.
 */
export function callsText(calls: number, parts: readonly Pick<Part, 'jobs'>[], isResent: boolean): string {
  const hasFields = parts.some(({ jobs }) => jobs.some(({ fields }) => fields !== undefined))
  return `${calls}${hasFields ? 'f' : ''}${isResent ? 'r' : ''}`
}

/** Whether the call has the id of its only job. */
function isNamed({ callId, jobs }: Part): boolean {
  return jobs.length === 1 && jobs[0]!.id === callId
}

/** The short form of these arguments; undefined if a job has an order or a group. */
function shortened(parts: readonly Part[], args: readonly RedisArgument[]): RedisArgument[] | undefined {
  const short: RedisArgument[] = [
    parts.every(isNamed) ? '' : parts.map(({ callId, jobs }) => `${jobs.length}\0${callId}\0`).join(''),
  ]
  let at = 0
  for (const { jobs } of parts) {
    at += 2
    for (const { group } of jobs) {
      if (group !== undefined || args[at + 1] !== '') return undefined
      short.push(args[at]!, args[at + 2]!)
      at += 3
    }
  }
  return short
}

/** Adds the arguments for these jobs to `args`, in the form for this kind of queue. Returns their bytes. */
export function packCall(
  kind: QueueKind,
  { callId, wholeCallId = callId, jobs, places }: Pick<Part, 'callId' | 'wholeCallId' | 'jobs' | 'places'>,
  args: RedisArgument[],
): number {
  let bytes = 0
  args.push(callId, String(jobs.length))
  for (const [i, job] of jobs.entries()) {
    const body = kind === 'plain' ? recordBody(job) : payloadBody(job, { callId: wholeCallId, place: places?.[i] ?? i })
    bytes += typeof body === 'string' ? body.length : payloadBytes(body)
    const order = recordOrder(job)
    bytes += order.length
    args.push(job.id, order)
    if (kind === 'ordered') args.push(scoreText(job.score), job.group ? `${job.task}\0${job.group}` : job.task)
    args.push(body)
  }
  return bytes
}

const answered = "return table.concat(answers, ',')"

const enqueueScripts = scriptPair('enqueue', {
  plain: `${enqueueText}${answered} .. (tells and '!' or '')`,
  ordered: enqueueOrderedText + answered,
})
