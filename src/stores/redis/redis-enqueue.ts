/** Enqueueing into a Redis store: calls packed into trips, one trip to a shard at a time as large as it may be. */

import { payloadBytes } from '../../core/codec.js'
import type { EnqueueCall, Enqueued, NewJob } from '../store.js'
import type { RedisArgument } from './redis-port.js'
import type { RedisQueues, RedisShard } from './redis-queues.js'
import { recordBody, recordOrder } from './redis-record.js'
import { textIn } from './redis-reply.js'
import type { RedisScripts } from './redis-scripts.js'

/** The most that one script call is given: a larger one would keep all others waiting. */
const mostJobs = 250
const mostBytes = 1_048_576

const answersBy: Record<string, Enqueued> = { a: 'added', d: 'duplicate', f: 'full', g: 'draining' }

/** The jobs of one call that lie in one shard. */
interface Part {
  readonly callId: string
  readonly jobs: readonly NewJob[]
  /** The answers of the call. */
  readonly answers: Enqueued[]
  /** Where in them that of each job stands; absent: they are all of the call's. */
  readonly places?: readonly number[]
}

export async function enqueueCalls(
  queues: RedisQueues,
  scripts: RedisScripts,
  calls: readonly EnqueueCall[],
  replicas: number,
): Promise<Enqueued[][]> {
  const found = await queues.find(calls.map(({ queue }) => queue))
  const answers = calls.map(({ jobs }) => new Array<Enqueued>(jobs.length))
  const parts = new Map<RedisShard, Part[]>()
  const add = (shard: RedisShard, part: Part) => {
    const others = parts.get(shard)
    if (others === undefined) parts.set(shard, [part])
    else others.push(part)
  }
  for (const [i, call] of calls.entries()) {
    const shards = found[i]!
    if (shards.length === 1) add(shards[0]!, { callId: call.callId, jobs: call.jobs, answers: answers[i]! })
    else for (const [shard, part] of partsOf(queues, shards, call, answers[i]!)) add(shard, part)
  }
  const sent = [...parts].flatMap(([shard, of]) =>
    tripsOf(of).map(async (trip) => {
      const reply = textIn(await queues.run(shard, scripts.enqueue, trip.args, replicas))
      for (const [i, letters] of reply.split(',').entries()) take(trip.parts[i]!, letters)
    }),
  )
  // None may be left under way behind the back of the one that failed: what is sent again must find it done or not.
  const ended = await Promise.allSettled(sent)
  const failed = ended.find((one) => one.status === 'rejected')
  if (failed !== undefined) throw failed.reason
  return answers
}

function take({ answers, places }: Part, letters: string): void {
  // A call that is answered from memory may have had other jobs.
  if (places === undefined) answers.length = letters.length
  for (let i = 0; i < letters.length; i += 1) {
    const place = places === undefined ? i : places[i]
    if (place !== undefined) answers[place] = answersBy[letters[i]!]!
  }
}

function partsOf(
  queues: RedisQueues,
  shards: readonly RedisShard[],
  { callId, jobs }: EnqueueCall,
  answers: Enqueued[],
): Map<RedisShard, Part> {
  const parts = new Map<RedisShard, { callId: string; jobs: NewJob[]; answers: Enqueued[]; places: number[] }>()
  for (const [place, job] of jobs.entries()) {
    const shard = queues.shardOf(shards, job.id)
    const part = parts.get(shard)
    if (part === undefined) parts.set(shard, { callId, jobs: [job], answers, places: [place] })
    else {
      part.jobs.push(job)
      part.places.push(place)
    }
  }
  return parts
}

interface Trip {
  readonly parts: Part[]
  readonly args: RedisArgument[]
  jobs: number
  bytes: number
}

/** A call travels whole: all its jobs are accepted, or none. */
function tripsOf(parts: readonly Part[]): Trip[] {
  const trips: Trip[] = []
  let trip: Trip = { parts: [], args: [], jobs: 0, bytes: 0 }
  for (const part of parts) {
    const { args } = trip
    const from = args.length
    const bytes = pack(part, args)
    if (trip.parts.length > 0 && (trip.jobs + part.jobs.length > mostJobs || trip.bytes + bytes > mostBytes)) {
      trips.push(trip)
      trip = { parts: [], args: args.splice(from), jobs: 0, bytes: 0 }
    }
    trip.parts.push(part)
    trip.jobs += part.jobs.length
    trip.bytes += bytes
  }
  trips.push(trip)
  for (const { parts, args } of trips) args.unshift(String(parts.length))
  return trips
}

/** Adds what the script is given of these jobs; answers with their bytes. */
function pack({ callId, jobs }: Part, args: RedisArgument[]): number {
  let bytes = 0
  args.push(callId, String(jobs.length))
  for (const job of jobs) {
    const body = recordBody(job)
    bytes += typeof body === 'string' ? body.length : payloadBytes(body)
    args.push(job.id, recordOrder(job), body)
  }
  return bytes
}
