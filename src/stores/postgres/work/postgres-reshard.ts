/** Resharding an ordered queue of a Postgres store, and moving its jobs to another, in bounded steps. */

import type { Step } from '../../contract/job-records.js'
import { stepLimit } from '../../rules/bounds.js'
import { boundsOf, limitsFrom } from '../../rules/limit-rules.js'
import { shardOf } from '../../rules/payloads.js'
import { refusePlain, refuseSelf, refuseSpreading, reshardUnderWay } from '../../rules/queue-form.js'
import { adoptIds, arrive, movableIds, setOut } from '../ordered/reshard-functions.js'
import type { FunctionCaller } from '../schema/sql-function.js'
import { placesBy } from './places-by.js'
import { ringQueue } from './postgres-ring.js'
import type { NumberedQueue, PostgresQueues } from './postgres-settings.js'

export class PostgresReshard {
  readonly #connection: FunctionCaller
  readonly #queues: PostgresQueues

  constructor(connection: FunctionCaller, queues: PostgresQueues) {
    this.#connection = connection
    this.#queues = queues
  }

  /** See `Records.reshard`. */
  async reshard(name: string, shards: number): Promise<Step> {
    const before = await this.#ordered(name)
    const { resharding, limits } = before.shards[0]!
    if (resharding !== null && resharding !== shards) throw reshardUnderWay(name, resharding, shards)
    if (resharding === null && before.shards.length === shards) return { changed: 0, more: false }
    refuseSpreading(name, boundsOf(limitsFrom(limits)).maxRunning, shards)
    if (before.leaving.length === 0 && (await this.#connection.call(setOut, [name, shards])) !== true)
      return { changed: 0, more: true }
    const { leaving, shards: to } = await this.#ordered(name)
    const { changed, more } = await this.#bringOver(leaving, to)
    const old = more ? null : ((await this.#connection.call(arrive, [name])) as number[] | null)
    await this.#queues.refresh([name])
    // Who waits for an old shard learns of the new ones.
    for (const qid of old ?? []) await this.#connection.call(ringQueue, [qid, false, true])
    return { changed, more: old === null }
  }

  /** See `Records.move`. */
  async move(from: string, to: string): Promise<Step> {
    const [old, into] = [await this.#ordered(from), await this.#ordered(to)]
    refuseSelf(from, to)
    const step = await this.#bringOver(old.shards, into.shards)
    if (step.changed > 0) for (const { qid } of into.shards) await this.#connection.call(ringQueue, [qid, false, true])
    return step
  }

  /** The shard that has an id now. While a reshard is under way, what an old shard has of it is brought there first. */
  async homeOf(name: string, id: string): Promise<NumberedQueue> {
    const { shards, leaving } = await this.#queues.current(name)
    for (const old of leaving) await adopted(this.#connection, old.qid, [id], shards)
    return shards[shardOf(id, shards.length)]!
  }

  async #bringOver(from: readonly NumberedQueue[], to: readonly NumberedQueue[]): Promise<Step> {
    const found = await this.#connection.call(movableIds, [from.map(({ qid }) => qid), stepLimit])
    const ids = found as [qid: number, id: string][]
    let changed = 0
    for (const places of placesBy(ids, ([qid]) => String(qid))) {
      const own = places.map((i) => ids[i]![1])
      changed += await adopted(this.#connection, ids[places[0]!]![0], own, to)
    }
    return { changed, more: ids.length === stepLimit }
  }

  /** As it is now. Throws `InvalidArgumentError` for a plain queue. */
  async #ordered(name: string) {
    const of = await this.#queues.current(name)
    refusePlain(name, of.shards[0]!.kind)
    return of
  }
}

/** Moves these ids from a shard to where they belong. Resolves with the number of jobs that it moved. */
export async function adopted(
  connection: FunctionCaller,
  from: number,
  ids: readonly string[],
  to: readonly NumberedQueue[],
): Promise<number> {
  const targets = ids.map((id) => to[shardOf(id, to.length)]!.qid)
  return (await connection.call(adoptIds, [from, ids, targets])) as number
}
