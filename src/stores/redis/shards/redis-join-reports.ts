/**
 * The reports of members to joins in other shards: reads what fragments have to tell, tells it to their joins, and goes on
 * with what follows from that. Each step may be repeated, and comes in any order: a join knows which version of a
 * fragment it has heard.
 */

import type { Fate, OnDead } from '../../contract/new-join.js'
import { doneIn } from '../../rules/join-rules.js'
import type { RedisArgument, RedisReply } from '../client/redis-client.js'
import { listIn, numberIn, textIn } from '../client/redis-reply.js'
import type { ShardScript } from '../client/redis-script.js'
import { type RedisQueue, type RedisShard, shardHolding } from '../redis-layout.js'
import {
  doneScript,
  dropScript,
  freezeScript,
  hearScript,
  outrunScript,
  reportsScript,
  toldScript,
} from './join-report-scripts.js'

/** The kind of a task by which the fragments of a join change: they are frozen, thawed or dropped. */
type ChangeKind = 'z' | 't' | 'x'
/** What one look at a shard takes. */
const mostReports = 100
/** How far one call follows joins of joins; the rest is for the sweep. */
const mostRounds = 1_000
/** The most members whose ends one call drops of a fragment, in thousands; the rest is for the sweep. */
const mostDropSteps = 10

/** A set of a join as its shard has it. */
export interface RedisSet {
  readonly name: string
  readonly queue: string
  readonly ids: string
  /** The beginning of the ids, which is the same for all members, and behind it the life of the join, if it has one. */
  readonly base: string
  readonly many: 0 | 1
  /** The letter as a byte. */
  readonly on_dead: number
  readonly keeps: 0 | 1
  /** -1: open. */
  readonly size: number
}

/** A join as its shard has it. */
export interface RedisJoin {
  readonly sets: readonly RedisSet[]
  readonly within: number
  readonly seal: number
  readonly rest: 0 | 1
  /** Its graph has not been sealed, whatever sizes its sets have. */
  readonly open: 0 | 1
  /** The call by which its graph was begun: a later join of the same id has another. Absent: it came without one. */
  readonly life?: string
  /** When it dies if it still waits; -1: never. */
  readonly until_at: number
  /** Whether it was to run, and has not died since. */
  readonly ran?: 0 | 1
  /** How often that has changed; odd: it was to run. Behind 255 comes 0. */
  readonly turn?: number
}

/** A fragment as its shard told it. */
export interface JoinFragment {
  readonly version: number
  readonly count: number
  /** The number behind that of the last member. */
  readonly high: number
  readonly counts: Readonly<Record<Fate, number>>
  readonly bytes: number
  readonly fails: number
  readonly onDead: OnDead
  /** As they were told. */
  readonly texts: readonly string[]
}

export const onDeadBytes: Readonly<Record<OnDead, number>> = { fail: 102, 'go-on': 103, hold: 104 }

export function onDeadOf(byte: number): OnDead {
  return byte === onDeadBytes.fail ? 'fail' : byte === onDeadBytes.hold ? 'hold' : 'go-on'
}

function turnOf({ ran = 0, turn = 0 }: RedisJoin): number {
  return turn % 2 === ran ? turn : turn + 1
}

export function partsIn(reply: readonly RedisReply[]): JoinFragment {
  const texts = reply.map(textIn)
  const [version, count, high, completed, dead, cancelled, expired, bytes, fails, , , onDead] = texts.map(Number)
  return {
    ...{
      version: version!,
      count: count!,
      high: high!,
      bytes: bytes!,
      fails: fails!,
      onDead: onDeadOf(onDead!),
      texts,
    },
    counts: { completed: completed!, dead: dead!, cancelled: cancelled!, expired: expired! },
  }
}

/** The name of a fragment: queue and id of the join, name of the set, its `base`. */
export function fragmentKey(join: { readonly queue: string; readonly id: string }, set: string, base: string): string {
  return [join.queue, join.id, set, base].join('\0')
}

/** The queues, as far as reports need them. */
interface ReportQueues {
  find(names: readonly string[]): Promise<RedisQueue[]>
  run(shard: RedisShard, script: ShardScript, args: readonly RedisArgument[]): Promise<RedisReply>
}

export class RedisJoinReports {
  readonly #queues: ReportQueues

  constructor(queues: ReportQueues) {
    this.#queues = queues
  }

  /**
   * Delivers what this shard has to tell, and what follows. Never rejects: what cannot be delivered is left to a sweep.
   */
  async deliver(shard: RedisShard): Promise<void> {
    await this.deliverOlder(shard, 0).catch(() => {})
  }

  /** The same for what has been waiting for this long. Returns whether something is left. Throws if a shard is away. */
  async deliverOlder(first: RedisShard, forMs: number): Promise<boolean> {
    let left = new Map([[first.tag, first]])
    let isLeft = false
    let age = forMs
    for (let round = 0; left.size > 0; round += 1) {
      if (round === mostRounds) return true
      const next = new Map<string, RedisShard>()
      const looked = await Promise.allSettled(
        [...left.values()].map((shard) => this.#deliverFrom(shard, age, (other) => next.set(other.tag, other))),
      )
      for (const one of looked) {
        if (one.status === 'rejected') throw one.reason
        isLeft = one.value || isLeft
      }
      left = next
      // What follows was not told by anybody else.
      age = 0
    }
    return isLeft
  }

  async #deliverFrom(shard: RedisShard, forMs: number, tells: (shard: RedisShard) => void): Promise<boolean> {
    const rows = listIn(await this.#queues.run(shard, reportsScript, [String(forMs), String(mostReports)])).map(listIn)
    const told = await Promise.allSettled(
      rows.map(async (row) => {
        const kind = textIn(row[0])
        if (kind === 'f') return this.#tell(shard, row, tells)
        const join = JSON.parse(textIn(row[2])) as RedisJoin
        return this.#changeFragments(shard, kind as ChangeKind, textIn(row[1]), join)
      }),
    )
    for (const one of told) if (one.status === 'rejected') throw one.reason
    if (rows.length === mostReports) tells(shard)
    return told.some((one) => one.status === 'fulfilled' && one.value)
  }

  async #tell(shard: RedisShard, row: readonly RedisReply[], tells: (shard: RedisShard) => void): Promise<boolean> {
    const [serial, key] = [textIn(row[1]), textIn(row[2])]
    const parts = partsIn(row.slice(3))
    const { isThere, known } = await this.hear(shard, key, parts, tells)
    if (!isThere) return this.#drop(shard, key)
    const { version, bytes, fails } = parts
    if (known >= 0) {
      await this.#queues.run(shard, outrunScript, [serial, version, known].map(String))
      tells(shard)
      return false
    }
    await this.#queues.run(shard, toldScript, [serial, version, doneIn(parts), bytes, fails].map(String))
    return false
  }

  /**
   * Tells a join the parts of a fragment in this shard. Resolves to whether there is such a join, and to the version that it
   * knows if it did not take notice of them; -1 if it did.
   */
  async hear(
    shard: RedisShard,
    key: string,
    { texts }: JoinFragment,
    tells: (shard: RedisShard) => void,
  ): Promise<{ readonly isThere: boolean; readonly known: number }> {
    const [name, id, set, base] = key.split('\0') as [string, string, string, string]
    const [queue] = await this.#queues.find([name])
    const home = shardHolding(queue!, id)
    const [isThere, isTelling, known] = listIn(
      await this.#queues.run(home, hearScript, [id, set, base, shard.tag, ...texts.slice(0, -1)]),
    )
    if (isTelling === 1) tells(home)
    return { isThere: isThere === 1, known: numberIn(known) }
  }

  /** Freezes, thaws or drops the fragments of a join. Returns whether some are left. */
  async #changeFragments(home: RedisShard, kind: ChangeKind, id: string, join: RedisJoin): Promise<boolean> {
    const turn = turnOf(join)
    const ended = await Promise.all(
      join.sets.map(async (set) => {
        const key = fragmentKey({ queue: home.queue, id }, set.name, set.base)
        const [queue] = await this.#queues.find([set.queue])
        const left = await Promise.all(
          queue!.shards.map((shard) => (kind === 'x' ? this.#drop(shard, key) : this.#freeze(shard, key, turn))),
        )
        return left.includes(true)
      }),
    )
    if (ended.includes(true)) return true
    await this.#queues.run(home, doneScript, [`${kind}${id}`, ...(kind === 'x' ? [] : [String(turn)])])
    return false
  }

  /** Freezes a fragment on an odd turn of its join, or thaws it on an even one. */
  async #freeze(shard: RedisShard, key: string, turn: number): Promise<false> {
    for (let from = 0; from >= 0; )
      from = numberIn(await this.#queues.run(shard, freezeScript, [key, String(turn), String(from)]))
    return false
  }

  /** Drops a fragment. Returns whether some of it is left. */
  async #drop(shard: RedisShard, key: string): Promise<boolean> {
    for (let step = 0; step < mostDropSteps; step += 1)
      if ((await this.#queues.run(shard, dropScript, [key])) === 0) return false
    return true
  }
}
