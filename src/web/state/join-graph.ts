/**
 * The graph of joins around a job: what it waits for, who waits for it, and what these wait for. Its jobs are looked up,
 * at most 200. A set of members for which there is no room is given by its counts.
 */

import { recordsOf } from '../../client/store-facets.js'
import type { FateCounts, JobState } from '../../core/job/job.js'
import type { Registry } from '../../core/registry.js'
import { defined } from '../../core/values/defined.js'
import type { JobKey, StoredJob } from '../../stores/contract/job-records.js'
import type { StoredSet } from '../../stores/contract/joins.js'
import type { Store } from '../../stores/contract/store.js'
import { doneIn, memberId } from '../../stores/rules/join-rules.js'
import { unlessDamaged } from './queue-rows.js'

/** The most jobs of a graph that are looked up. */
const mostGraphJobs = 200
/** The most ends of members in one request: each may come with a result. */
const endsPerTrip = 20

/** A job of the graph. */
interface JoinGraphJob {
  readonly queue: string
  readonly id: string
  /** Absent if nothing of it is kept and no other member of its set is. */
  readonly task?: string
  /** Absent: it has ended, and nothing says how. */
  readonly state?: JobState
  /** It was cancelled because no worker took it in time. */
  readonly hasExpired?: true
}

/** What a job of the graph waits for, or waited for, under one name. */
interface JoinGraphSet {
  /** The place of the job among the graph's jobs. */
  readonly join: number
  readonly name: string
  /** The queue of its members, and the beginning of their ids: sets with the same are the same jobs. */
  readonly queue: string
  readonly ids: string
  readonly isMany: boolean
  readonly task?: string
  /** The places of its members among the graph's jobs. Of a set that is given by its counts only those seen otherwise. */
  readonly members: readonly number[]
  readonly isCounted?: true
  /** Absent while members are being added. */
  readonly size?: number
  readonly added: number
  readonly done: number
  readonly counts: FateCounts
}

export interface JoinGraph {
  /** The one that was asked for is the first. */
  readonly jobs: readonly JoinGraphJob[]
  readonly sets: readonly JoinGraphSet[]
  /** There are more jobs, which belong to no set that is given by its counts. */
  readonly more: boolean
}

/** The graph around a job of which something is kept. */
export async function joinGraph(store: Store, registry: Registry, asked: JobKey): Promise<JoinGraph> {
  const walk = new GraphWalk(store, registry)
  return walk.from(asked)
}

interface Seen extends JobKey {
  readonly place: number
  task?: string
  state?: JobState
  hasExpired?: true
}

interface SeenSet {
  readonly join: Seen
  readonly set: StoredSet
  readonly members: Seen[]
  isCounted: boolean
  task?: string | undefined
}

class GraphWalk {
  readonly #store: Store
  readonly #registry: Registry
  readonly #jobs = new Map<string, Seen>()
  readonly #sets: SeenSet[] = []
  #next: Seen[] = []
  #more = false

  constructor(store: Store, registry: Registry) {
    this.#store = store
    this.#registry = registry
  }

  async from(asked: JobKey): Promise<JoinGraph> {
    this.#add(asked)
    while (this.#next.length > 0) await this.#step(this.#next.splice(0))
    for (const one of this.#sets) {
      one.task = await this.#taskOf(one)
      for (const member of one.members) if (one.task !== undefined) member.task ??= one.task
    }
    await Promise.all(this.#sets.map((one) => this.#endsOf(one)))
    return {
      jobs: [...this.#jobs.values()].map(({ queue, id, task, state, hasExpired }) => ({
        ...{ queue, id },
        ...defined({ task, state, hasExpired }),
      })),
      sets: this.#sets.map(toldSet),
      more: this.#more,
    }
  }

  /** Looks at jobs that have just been found, and finds those next to them. */
  async #step(found: readonly Seen[]): Promise<void> {
    const records = await Promise.all(found.map(({ queue, id }) => this.#kept(queue, id)))
    const joins = await Promise.all(
      records.map((job) => (job?.isJoin ? this.#store.joins?.look({ queue: job.queue, id: job.id }) : undefined)),
    )
    for (const [i, one] of found.entries()) {
      const job = records[i]
      if (job === undefined) continue
      one.task = job.task
      one.state = job.state
      if (job.state === 'cancelled' && job.reason === 'expired') one.hasExpired = true
      for (const set of joins[i]?.sets ?? []) this.#addSet(one, set)
    }
    // What jobs wait for comes first: it is why somebody looks.
    for (const job of records) for (const { join } of job?.memberOf ?? []) this.#more = !this.#add(join) || this.#more
  }

  /** False if there is no room for it. */
  #add({ queue, id }: JobKey): boolean {
    const key = `${queue}/${id}`
    if (this.#jobs.has(key)) return true
    if (this.#jobs.size === mostGraphJobs) return false
    const seen = { queue, id, place: this.#jobs.size }
    this.#jobs.set(key, seen)
    this.#next.push(seen)
    return true
  }

  #addSet(join: Seen, set: StoredSet): void {
    const { queue, added, isMany } = set
    const isNew = (id: string) => !this.#jobs.has(`${queue}/${id}`)
    const room = mostGraphJobs - this.#jobs.size
    const fits = added <= mostGraphJobs && idsOf(set).filter(isNew).length <= room
    if (fits) for (const id of idsOf(set)) this.#add({ queue, id })
    else if (!isMany) this.#more = true
    const members = fits
      ? idsOf(set).map((id) => this.#jobs.get(`${queue}/${id}`)!)
      : [...this.#jobs.values()].filter((one) => one.queue === queue && isIn(set, one.id))
    this.#sets.push({ join, set, members, isCounted: !fits })
  }

  /** The task of its members, which is the same for all of them. */
  async #taskOf({ join, set, members }: SeenSet): Promise<string | undefined> {
    const known = members.find(({ task }) => task !== undefined)?.task
    if (known !== undefined || set.added === 0) return known ?? this.#declaredTask(join, set)
    const first = members.length > 0 ? undefined : await this.#kept(set.queue, memberId(set, set.oldest ?? 0))
    return first?.task ?? this.#declaredTask(join, set)
  }

  #declaredTask({ task }: Seen, { name }: StoredSet): string | undefined {
    const found = task === undefined ? undefined : this.#registry.find(task)
    return found?.joins?.get(name)?.task.name
  }

  /** Says how members have ended of which nothing is kept. */
  async #endsOf({ join, set, members, isCounted }: SeenSet): Promise<void> {
    const unknown = members.filter(({ state }) => state === undefined)
    if (unknown.length === 0 || isCounted) return
    // Most sets end well: the ends, which may come with large results, need not be read then.
    if (set.counts.cancelled + set.counts.expired + set.counts.dead === 0) {
      for (const member of unknown) member.state = 'completed'
      return
    }
    for (let from = 0; from < set.added; from += endsPerTrip) {
      const ends = (await this.#store.joins?.ends(join, set.name, from, endsPerTrip)) ?? []
      for (const { number, fate } of ends) {
        const member = members[number]
        if (member === undefined || member.state !== undefined) continue
        member.state = fate === 'expired' ? 'cancelled' : fate
        if (fate === 'expired') member.hasExpired = true
      }
    }
  }

  #kept(queue: string, id: string): Promise<StoredJob | undefined> {
    return unlessDamaged(recordsOf(this.#store).get(queue, id))
  }
}

function idsOf(set: StoredSet): string[] {
  return Array.from({ length: set.isMany ? set.added : Math.min(1, set.added) }, (_, number) => memberId(set, number))
}

/** Whether a job of the set's queue is one of its members. */
function isIn(set: StoredSet, id: string): boolean {
  if (!set.isMany) return id === set.ids
  const number = id.startsWith(`${set.ids}.`) ? id.slice(set.ids.length + 1) : ''
  return /^\d{1,7}$/.test(number) && Number(number) < set.added
}

function toldSet({ join, set, members, isCounted, task }: SeenSet): JoinGraphSet {
  const { name, queue, ids, isMany, size, added, counts } = set
  return {
    ...{ join: join.place, name, queue, ids, isMany, members: members.map(({ place }) => place) },
    ...{ added, done: doneIn(set), counts },
    ...defined({ size, task, isCounted: isCounted ? (true as const) : undefined }),
  }
}
