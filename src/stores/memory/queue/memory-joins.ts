/** The joins of a memory store: who is outstanding in each, and what becomes of a join when a member ends. */

import { type Payload, payloadBytes } from '../../../core/values/codec.js'
import type { JobKey } from '../../contract/job-records.js'
import type { FailedJoin, MemberEnd, Sealed, StoredJoin, StoredSet } from '../../contract/joins.js'
import type { Fate, MemberOf, NewSet } from '../../contract/new-join.js'
import { stepLimit, upkeepLimit } from '../../rules/bounds.js'
import {
  byLateness,
  canWaitAgain,
  effectOf,
  isAt,
  isComplete,
  lateError,
  lateReason,
  memberDeadError,
  memberDeadReason,
  memberId,
  mostJoinBytes,
  neverSealedError,
  neverSealedReason,
  outstandingIn,
  refuseSizes,
  tooLargeError,
  tooLargeReason,
} from '../../rules/join-rules.js'
import { defined, type MemoryJob } from './memory-job.js'

/** The queue of a join, as far as its members decide about it. */
interface JoinQueue {
  /** A waiting join is ready in its place, or scheduled. */
  release(job: MemoryJob, now: number): void
  bury(job: MemoryJob, reason: string | undefined, error: string | undefined, now: number): void
}

interface MemorySet extends Omit<NewSet, 'size'> {
  size: number | undefined
  added: number
  readonly counts: Record<Fate, number>
  readonly ends: Map<number, MemberEnd>
}

interface MemoryJoin {
  readonly job: MemoryJob
  readonly queue: JoinQueue
  readonly sets: readonly MemorySet[]
  lateAt: number
  sealBy: number
  bytes: number
  /** Whether its outstanding members are to be cancelled. */
  cancels: boolean
}

/** The result or the error that a member leaves to its joins. */
interface Left {
  readonly payload?: Payload | undefined
  readonly codec?: string | undefined
  readonly error?: string | undefined
}

export class MemoryJoins {
  readonly #joins = new Map<string, MemoryJoin>()
  #failed: FailedJoin[] = []
  #gathered: (() => void)[] | undefined
  readonly #became: (queue: string, id: string, now: number) => void

  /** `became`: called when a join has become ready, was scheduled, or is dead. */
  constructor(became: (queue: string, id: string, now: number) => void) {
    this.#became = became
  }

  /** A new job waits for its members, unless it has none. */
  begin(queue: JoinQueue, job: MemoryJob, now: number): void {
    const { sets } = job.spec.join!
    const join: MemoryJoin = {
      ...{ job, queue, lateAt: Number.POSITIVE_INFINITY, sealBy: Number.POSITIVE_INFINITY, bytes: 0, cancels: false },
      sets: sets.map((set) => ({ ...set, size: set.size, added: 0, counts: noFates(), ends: new Map() })),
    }
    this.#joins.set(keyOf(job.queue, job.spec.id), join)
    this.#wait(join, now)
  }

  #wait(join: MemoryJoin, now: number): void {
    const { withinMs = Number.POSITIVE_INFINITY, sealWithinMs } = join.job.spec.join!
    join.lateAt = now + withinMs
    join.sealBy = now + sealWithinMs
    this.#check(join, now)
  }

  /** The join is ready once nobody is outstanding. */
  #check(join: MemoryJoin, now: number): void {
    const { job, queue, sets } = join
    if (!waitsForMembers(join) || !sets.every(isComplete)) return
    queue.release(job, now)
    this.#became(job.queue, job.spec.id, now)
  }

  #fail(join: MemoryJoin, reason: string, error: string, now: number): void {
    const { job, queue } = join
    if (!waitsForMembers(join)) return
    const { queue: name, spec } = job
    // Before those that die of its death.
    this.#failed.push({ queue: name, id: spec.id, task: spec.task, reason })
    queue.bury(job, reason, error, now)
    join.cancels = reason === memberDeadReason && spec.join!.cancelsRest === true
    this.#became(name, spec.id, now)
  }

  /** Whether one of the places of this member was taken before. */
  hasMember(queue: string, { id, memberOf = [] }: MemoryJob['spec']): boolean {
    return memberOf.some((place) => place.number < (this.#setOf(place, { queue, id })?.set.added ?? 0))
  }

  /** A job was added that is a member. */
  add(queue: string, { id, memberOf = [] }: MemoryJob['spec']): void {
    for (const place of memberOf) {
      const found = this.#setOf(place, { queue, id })
      if (found !== undefined) found.set.added = Math.max(found.set.added, place.number + 1)
    }
  }

  /**
   * A step first changes all of its jobs: their ends, and that members were revived, are reported when it is over. Otherwise
   * it could meet a join that a member has made dead meanwhile.
   */
  gatherEnds<T>(step: () => T): T {
    const gathered: (() => void)[] = []
    this.#gathered = gathered
    try {
      return step()
    } finally {
      this.#gathered = undefined
      for (const report of gathered) report()
    }
  }

  /** A member has ended so. Of ends that were reported before, only one changes: a dead member may go for good. */
  report(job: MemoryJob, fate: Fate, left: Left, now: number): void {
    if (this.#gathered !== undefined) {
      this.#gathered.push(() => this.report(job, fate, left, now))
      return
    }
    const { id, memberOf = [] } = job.spec
    for (const place of memberOf) {
      const found = this.#setOf(place, { queue: job.queue, id })
      if (found === undefined || !isOpenToReports(found.join)) continue
      const { join, set } = found
      // One of an earlier join of this id, by the same id, which was not added to this one.
      if (place.number >= set.added) continue
      const before = set.ends.get(place.number)?.fate
      if (before !== undefined && (before !== 'dead' || fate !== 'cancelled' || set.onDead === 'go-on')) continue
      if (before !== undefined) set.counts[before] -= 1
      set.counts[fate] += 1
      const { payload, codec, error } = set.keepsResults ? left : {}
      set.ends.set(place.number, defined({ number: place.number, fate, payload, codec, error }))
      if (payload !== undefined) join.bytes += payloadBytes(payload)
      if (join.bytes > mostJoinBytes) this.#fail(join, tooLargeReason, tooLargeError, now)
      else if (effectOf(fate, set.onDead) === 'fails')
        this.#fail(join, memberDeadReason, memberDeadError(set, place.number, fate), now)
      else this.#check(join, now)
    }
  }

  /** A dead member was revived: it is outstanding again. */
  revived(job: MemoryJob): void {
    if (this.#gathered !== undefined) {
      this.#gathered.push(() => this.revived(job))
      return
    }
    const { queue, spec } = job
    const { id, memberOf = [] } = spec
    for (const place of memberOf) {
      const found = this.#setOf(place, { queue, id })
      if (found === undefined || !isOpenToReports(found.join)) continue
      if (found.set.ends.get(place.number)?.fate !== 'dead') continue
      found.set.ends.delete(place.number)
      found.set.counts.dead -= 1
    }
  }

  /** The state of a dead job once it is revived: most are ready. */
  afterRevive(job: MemoryJob): 'ready' | 'waiting' | 'dead' {
    const join = this.#joins.get(keyOf(job.queue, job.spec.id))
    if (join === undefined || join.sets.every(isComplete)) return 'ready'
    return canWaitAgain(join.sets) ? 'waiting' : 'dead'
  }

  /** A revived join waits again, for as long as it did at first. */
  waitAgain(job: MemoryJob, now: number): void {
    const join = this.#joins.get(keyOf(job.queue, job.spec.id))!
    join.cancels = false
    this.#wait(join, now)
  }

  /** The job has ended or is gone. */
  forget(job: MemoryJob): void {
    this.#joins.delete(keyOf(job.queue, job.spec.id))
  }

  seal(key: JobKey, sizes: Readonly<Record<string, number>>, now: number): Sealed {
    const join = this.#find(key)
    if (join === undefined || !isOpenToReports(join)) return 'gone'
    refuseSizes(key.id, join.sets, sizes)
    for (const set of join.sets) set.size ??= sizes[set.name]
    this.#check(join, now)
    return join.job.state === 'dead' ? 'dead' : 'sealed'
  }

  look(key: JobKey): StoredJoin | undefined {
    const join = this.#find(key)
    if (join === undefined) return undefined
    const until = waitsUntil(join)
    return {
      sets: join.sets.map(storedSet),
      ...(waitsForMembers(join) && until < Number.POSITIVE_INFINITY ? { waitsUntil: until } : {}),
    }
  }

  ends(key: JobKey, name: string, from: number, limit: number): MemberEnd[] {
    const set = this.#find(key)?.sets.find((one) => one.name === name)
    const numbers = [...(set?.ends.keys() ?? [])].filter((number) => number >= from && number < from + limit)
    return numbers.sort((a, b) => a - b).map((number) => set!.ends.get(number)!)
  }

  /** `cancel`: cancels a member that waits or runs; false if it does neither. */
  sweep(cancel: (queue: string, id: string) => boolean, now: number): { failed: FailedJoin[]; more: boolean } {
    const due = [...this.#joins.values()]
      .filter((join) => waitsForMembers(join) && waitsUntil(join) <= now)
      .map((join) => ({ join, until: waitsUntil(join), queue: join.job.queue, id: join.job.spec.id }))
      .sort(byLateness)
    for (const { join } of due.slice(0, upkeepLimit)) {
      if (isNeverSealed(join) && join.sealBy <= now) this.#fail(join, neverSealedReason, neverSealedError, now)
      else this.#fail(join, lateReason, lateError(outstandingIn(join.sets)), now)
    }
    let left = stepLimit
    for (const join of this.#joins.values()) {
      if (!join.cancels) continue
      const rest = join.sets.flatMap((set) => numbersLeft(set).map((number) => ({ set, number })))
      for (const { set, number } of rest) if (left > 0 && cancel(set.queue, memberId(set, number))) left -= 1
      join.cancels = left === 0
    }
    const failed = this.#failed
    this.#failed = []
    return { failed, more: due.length > upkeepLimit || left === 0 }
  }

  #find({ queue, id }: JobKey): MemoryJoin | undefined {
    return this.#joins.get(keyOf(queue, id))
  }

  /** The members of an earlier join of this id have other ids or queues, and no place in it. */
  #setOf(
    { join: key, set: name, number }: MemberOf,
    member: JobKey,
  ): { readonly join: MemoryJoin; readonly set: MemorySet } | undefined {
    const join = this.#find(key)
    const set = join?.sets.find((one) => one.name === name)
    return join === undefined || set === undefined || !isAt(set, number, member) ? undefined : { join, set }
  }
}

function keyOf(queue: string, id: string): string {
  return `${queue}\0${id}`
}

function noFates(): Record<Fate, number> {
  return { completed: 0, dead: 0, cancelled: 0, expired: 0 }
}

/** Once it will run, the ends of its members are what they are. */
function isOpenToReports(join: MemoryJoin): boolean {
  return waitsForMembers(join) || join.job.state === 'dead'
}

/** Not for a signal, as a join that has run may. */
function waitsForMembers({ job: { state, awaits } }: MemoryJoin): boolean {
  return state === 'waiting' && awaits === undefined
}

function isNeverSealed({ sets }: MemoryJoin): boolean {
  return sets.some(({ size }) => size === undefined)
}

function waitsUntil(join: MemoryJoin): number {
  return Math.min(join.lateAt, isNeverSealed(join) ? join.sealBy : Number.POSITIVE_INFINITY)
}

/** The members that were added and have not ended. */
function numbersLeft({ added, ends }: MemorySet): number[] {
  return Array.from({ length: added }, (_, number) => number).filter((number) => !ends.has(number))
}

function storedSet({ ends, size, counts, ...set }: MemorySet): StoredSet {
  const { added, onDead } = set
  const oldest = Array.from({ length: added }, (_, number) => number).find((number) => {
    const end = ends.get(number)
    return end === undefined || effectOf(end.fate, onDead) === 'held'
  })
  return { ...set, ...defined({ size, oldest }), counts: { ...counts } }
}
