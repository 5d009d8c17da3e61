/**
 * The migration of jobs between shards of ordered queues of a Redis store. Jobs leave their shard, which keeps them in
 * transit; they are put into the other shard; then they are removed from transit.
 */

import type { RedisArgument, RedisReply } from '../client/redis-client.js'
import { bytesIn, listIn, numberIn, textIn } from '../client/redis-reply.js'
import type { RedisShard } from '../layout/redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { leaveScript, putScript, turnScript } from './migration-scripts.js'

/** The limits of a batch, small enough that other calls notice nothing. */
const mostJobs = 100
const mostPayloads = 1_000
const mostBytes = 1_048_576

interface MovedBatch {
  /** Jobs that this call has removed completely from their shard. */
  readonly changed: number
  readonly payloads: number
  /** No job was found that could be moved. */
  readonly isDone: boolean
  /** The shard was given up and is empty. It refuses everything from now on. */
  readonly isClosed: boolean
}

export interface ShardState {
  readonly runs: boolean
  readonly meta: ReadonlyMap<string, string>
  /** Groups that are held back, and until when, in turn. */
  readonly holds: readonly string[]
}

/** A job in transit. */
interface Moving {
  readonly kind: string
  readonly id: string
  /** Its parts other than payloads. */
  readonly head: readonly RedisReply[]
  readonly members: readonly Buffer[]
  readonly values: readonly Buffer[]
}

const digestLength = 22

export class RedisShardMigration {
  readonly #queues: RedisQueues

  constructor(queues: RedisQueues) {
    this.#queues = queues
  }

  /**
   * Moves some jobs of a shard to the shards that `target` names. Nobody can claim or change jobs in transit. If the
   * work is interrupted, they stay in transit until the next batch moves them on, or a claim finds that nobody has for
   * 30 s.
   * `givesUp`: the shard closes once it is empty.
   */
  async batch(from: RedisShard, target: (id: string) => RedisShard, givesUp: boolean): Promise<MovedBatch> {
    const flag = givesUp ? '1' : '0'
    const limits = [String(mostJobs), String(mostPayloads), String(mostBytes)]
    const left = listIn(await this.#queues.run(from, leaveScript, [flag, ...limits]))
    const [number, gone, jobs, isClosed, score] = left
    const found = listIn(jobs).map(movingIn)
    const byTarget = new Map<RedisShard, Moving[]>()
    for (const job of found) {
      if (job.kind === 'h') continue
      const shard = target(job.id)
      byTarget.set(shard, [...(byTarget.get(shard) ?? []), job])
    }
    const put = (shard: RedisShard, jobs: readonly Moving[]) =>
      this.#queues.run(shard, putScript, [textIn(score), ...putArgs(jobs)])
    await Promise.all([...byTarget].map(([shard, jobs]) => put(shard, jobs)))
    if (found.length > 0) await this.turn(from, 'arrive', String(numberIn(number)))
    const payloads = found.reduce((sum, { members }) => sum + members.length, 0)
    return { changed: numberIn(gone), payloads, isDone: found.length === 0, isClosed: isClosed === 1 }
  }

  /**
   * The state of the shard, and whether jobs run in it. Undefined if it is gone. `'hold'`: the shard grants nothing
   * from now on.
   */
  async state(shard: RedisShard, verb: 'look' | 'hold'): Promise<ShardState | undefined> {
    const reply = await this.#queues.ask(shard, turnScript, [verb])
    if (reply === null) return undefined
    const [runs, meta, holds] = listIn(reply)
    const flat = listIn(meta).map(textIn)
    return {
      runs: runs === 1,
      holds: listIn(holds).map(textIn),
      meta: new Map(flat.flatMap((field, i) => (i % 2 === 0 ? [[field, flat[i + 1]!]] : []))),
    }
  }

  async turn(
    shard: RedisShard,
    verb: 'arrive' | 'inherit' | 'absorb' | 'release' | 'remove',
    ...args: string[]
  ): Promise<void> {
    await this.#queues.ask(shard, turnScript, [verb, ...args])
  }
}

function movingIn(reply: RedisReply): Moving {
  const [kind, id, ...parts] = listIn(reply)
  const payloads = listIn(parts.at(-1)).map(bytesIn)
  return {
    kind: textIn(kind),
    id: textIn(id),
    head: parts.slice(0, -1),
    members: payloads.filter((_, i) => i % 2 === 0),
    values: payloads.filter((_, i) => i % 2 === 1),
  }
}

function putArgs(jobs: readonly Moving[]): RedisArgument[] {
  return jobs.flatMap(({ kind, id, head, members, values }) => [
    kind,
    id,
    ...head.map((part) => (typeof part === 'number' ? String(part) : bytesIn(part))),
    String(members.length),
    ...members.flatMap((member, i) => [member.subarray(-digestLength), values[i]!]),
  ])
}
