/** A join scene: a store with a queue of joins and one of members, and the vocabulary for the members of joins. */

import assert from 'node:assert/strict'
import type { Claim } from '../../../stores/contract/claim.js'
import type { FailedJoin, GraphAnswer, Joins, MemberEnd, Sealed, StoredSet } from '../../../stores/contract/joins.js'
import type { EnqueueCall, Enqueued, NewJob } from '../../../stores/contract/new-job.js'
import type { MemberOf, NewJoin, NewSet } from '../../../stores/contract/new-join.js'
import { memberId } from '../../../stores/rules/join-rules.js'
import type { StoreHarness } from '../../harness/store-harness.js'
import { newJob, Scene } from './scene.js'

/** The queue of the members. */
export const members = 'rows'

/** A set of members: their number, or more about them. An open one has no size. */
type SetWords = number | Partial<NewSet>

/** A new join: its sets by name, and more. */
interface JoinWords extends Partial<Omit<NewJoin, 'sets'>> {
  readonly id?: string
  readonly sets: Readonly<Record<string, SetWords>>
  /** More about the job of the join, and about its members. */
  readonly job?: Partial<NewJob>
  readonly member?: Partial<NewJob>
}

export class JoinScene extends Scene {
  #graphs = 0

  static override async on(harness: StoreHarness): Promise<JoinScene> {
    const scene = new JoinScene(harness, await harness.open())
    await scene.openQueue()
    await scene.openQueue({ name: members })
    return scene
  }

  get joins(): Joins {
    assert.ok(this.store.joins, 'the store has joins')
    return this.store.joins
  }

  /** Adds a graph of a join and its members, which must be accepted. */
  async join(words: JoinWords): Promise<void> {
    assert.deepEqual(await this.graph(words), { outcome: 'added' })
  }

  /** Adds a graph of a join and the members of its closed sets. */
  graph(words: JoinWords, callId = `graph-${++this.#graphs}`): Promise<GraphAnswer> {
    const join = newJoin(words)
    const size = (set: NewSet) => set.size ?? 0
    const jobs = join.join!.sets.flatMap((set) =>
      numbers(size(set)).map((n) => memberOf(join.id, set, n, words.member)),
    )
    return this.joins.enqueue(
      callsOf(callId, [
        [this.queue, [join]],
        [members, jobs],
      ]),
    )
  }

  /** Adds members with these numbers to an open set. */
  addMembers(set: NewSet, from: number, to: number, joinId = 'join'): Promise<Enqueued[]> {
    const jobs = numbers(to - from).map((n) => memberOf(joinId, set, from + n))
    return this.enqueue(jobs, { queue: members })
  }

  async seal(sizes: Readonly<Record<string, number>>, id = 'join'): Promise<Sealed> {
    return this.joins.seal({ queue: this.queue, id }, sizes)
  }

  /** The claims of the members with these numbers, or of all that are ready. */
  async members(count = 100, options: Parameters<Scene['claim']>[0] = {}): Promise<Claim[]> {
    return (await this.claim({ queue: members, limit: count, ...options })).claims
  }

  async member(options: Parameters<Scene['claim']>[0] = {}): Promise<Claim> {
    return this.claimOne({ queue: members, ...options })
  }

  /** Completes the next member, with this text as its result. */
  async completes(payload?: string): Promise<void> {
    const result = payload === undefined ? {} : { result: { payload, onlyForJoins: true as const } }
    await this.end(await this.member(), { kind: 'complete', ...result })
  }

  /** Buries the next member. */
  async dies(error = 'broken'): Promise<void> {
    await this.end(await this.member(), { kind: 'bury', error, reason: 'unrecoverable' })
  }

  /** The state of the join, with its reason if it has one; `gone` if nothing is kept of it. */
  async state(id = 'join', queue = this.queue): Promise<string> {
    const job = this.store.records === undefined ? await this.#stored(queue, id) : await this.records.get(queue, id)
    return job === undefined ? 'gone' : `${job.state}${job.reason == null ? '' : `: ${job.reason}`}`
  }

  /** As the harness sees it, in a store that cannot look jobs up. */
  async #stored(queue: string, id: string) {
    const { jobs, remembered } = await this.stored(queue)
    return jobs.find((job) => job.id === id) ?? remembered.find((job) => job.id === id)
  }

  /** A set of the join; it must exist. */
  async set(name = 'all', id = 'join'): Promise<StoredSet> {
    const set = (await this.joins.look({ queue: this.queue, id }))?.sets.find((one) => one.name === name)
    assert.ok(set, `join '${id}' has a set '${name}'`)
    return set
  }

  /** `number fate payload-or-error` of each end in a set. */
  async ends(name = 'all', from = 0, limit = 1_000, id = 'join'): Promise<string[]> {
    const ends = await this.joins.ends({ queue: this.queue, id }, name, from, limit)
    return ends.map(({ number, fate, payload, error }: MemberEnd) =>
      [number, fate, payload ?? error ?? ''].join(' ').trim(),
    )
  }

  /** The joins that sweeps report, until nothing is left to do. */
  async sweep(worker = 'worker-1'): Promise<FailedJoin[]> {
    const failed: FailedJoin[] = []
    for (let more = true; more; ) {
      const swept = await this.joins.sweep(worker)
      failed.push(...swept.failed)
      more = swept.more
    }
    return failed
  }
}

/** The job of a join. */
export function newJoin({ id = 'join', sets, job, member: _, ...how }: JoinWords): NewJob {
  const made = Object.entries(sets).map(([name, set]) => newSet(id, name, set))
  return newJob({ id, ...job, join: { sealWithinMs: 3_600_000, ...how, sets: made } })
}

export function newSet(joinId: string, name: string, set: SetWords): NewSet {
  const about = typeof set === 'number' ? { size: set } : set
  return { name, queue: members, ids: `${joinId}.${name}`, isMany: true, onDead: 'fail', keepsResults: true, ...about }
}

/** A member of a set of a join in the queue of joins. */
export function memberOf(joinId: string, set: NewSet, number: number, job: Partial<NewJob> = {}): NewJob {
  return newJob({ id: memberId(set, number), ...job, memberOf: [place(joinId, set, number)] })
}

export function place(joinId: string, { name, onDead, keepsResults }: NewSet, number: number): MemberOf {
  return { join: { queue: 'mail', id: joinId }, set: name, number, onDead, keepsResults }
}

/** One call per queue; jobs of the same queue go together. */
export function callsOf(callId: string, jobs: readonly (readonly [string, readonly NewJob[]])[]): EnqueueCall[] {
  const byQueue = new Map<string, NewJob[]>()
  for (const [queue, some] of jobs) if (some.length > 0) byQueue.set(queue, [...(byQueue.get(queue) ?? []), ...some])
  return [...byQueue].map(([queue, all]) => ({ callId: `${callId} ${queue}`, queue, jobs: all }))
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, n) => n)
}
