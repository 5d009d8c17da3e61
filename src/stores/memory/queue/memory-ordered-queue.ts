/**
 * One shard of an ordered queue of the memory store: a queue whose jobs have sets of payloads. It has the same changes
 * of state, each with the effect on the payloads by `rules/payloads`. Entries of dead jobs are separate from the live
 * ones.
 */

import type { Merge } from '../../../core/queue/queue.js'
import type { NewJob } from '../../contract/new-job.js'
import {
  afterEnd,
  type CallPlace,
  doneOf,
  handedOver,
  type PayloadEntry,
  payloadIdentity,
} from '../../rules/payloads.js'
import { dueAt, nextScore, stampOf } from '../../rules/sequence.js'
import { type MemoryJob, newMemoryJob } from './memory-job.js'
import type { MemoryJoins } from './memory-joins.js'
import type { MemoryLimits, ShardSettings } from './memory-limits.js'
import { MemoryQueue } from './memory-queue.js'
import { PayloadSet } from './payload-set.js'

export class MemoryOrderedQueue extends MemoryQueue {
  readonly shard: number
  readonly morgue = new Map<string, MemoryJob>()
  /** The last default score given, in µs. */
  lastScore = 0

  constructor(settings: ShardSettings, shard: number, joins: MemoryJoins, limits?: MemoryLimits<MemoryQueue>) {
    super(settings, joins, limits)
    this.shard = shard
  }

  override get pending(): number {
    const sets = [...this.jobs.values()].map(({ payloads, successor }) => payloads ?? successor?.payloads)
    return sets.reduce((sum, set) => sum + (set?.size ?? 0), 0)
  }

  get #merge(): Merge {
    return this.settings.merge ?? 'all'
  }

  override get isBusy(): boolean {
    return this.settings.exclusive === 'shard' && this.running.size > 0
  }

  override deadJob(id: string): MemoryJob | undefined {
    return this.morgue.get(id)
  }

  override kept(): MemoryJob[] {
    return [...this.jobs.values(), ...this.morgue.values()]
  }

  /** The waiting payloads of an id, even behind a running job. */
  waitingPayloads(id: string): PayloadSet | undefined {
    const job = this.jobs.get(id)
    return job?.payloads ?? job?.successor?.payloads
  }

  identityOf(job: NewJob, place: CallPlace): string {
    return payloadIdentity(job, this.#merge, place)
  }

  /** Adds a payload. Returns whether its id was already there, waiting or running. */
  push(spec: NewJob, place: CallPlace, now: number): 'added' | 'merged' {
    const stamp = this.nextStamp(now)
    const due = spec.runAt ?? (spec.delayMs ? now + spec.delayMs : undefined)
    const identity = this.identityOf(spec, place)
    const entry = entryOf(spec, identity, this.nextSeq(), () => this.#nextScore(stamp))
    const job = this.jobs.get(spec.id)
    const isReady = due === undefined || due <= now
    const standing = { stamp: due === undefined ? stamp : stampOf(due), createdAt: now }
    if (job === undefined) this.#enter(spec, { ...standing, state: isReady ? 'ready' : 'scheduled', now }, [entry])
    else if (job.state === 'running') {
      job.successor ??= { ...standing, isReady, payloads: this.#set() }
      job.successor.payloads.add(entry)
    } else job.payloads!.add(entry)
    return job === undefined ? 'added' : 'merged'
  }

  #nextScore(stamp: number): number {
    this.lastScore = nextScore(this.lastScore, stamp)
    return this.lastScore
  }

  override take(...[job, claim, now, maxPayloads, mostBytes]: Parameters<MemoryQueue['take']>): void {
    super.take(job, claim, now, maxPayloads, mostBytes)
    const left = job.payloads!
    job.payloads = undefined
    job.inHand = left.take(handedOver([...left], maxPayloads, mostBytes).inHand.length)
    if (left.size > 0)
      job.successor = { stamp: this.nextStamp(now), createdAt: job.createdAt, isReady: true, payloads: left }
  }

  /** The oldest `done` payloads in hand are completed; the others begin with this run. */
  dropDone(job: MemoryJob, done: number | undefined): void {
    const count = doneOf(job.inHand.length, done)
    if (count === 0) return
    job.inHand = job.inHand.slice(count)
    Object.assign(job, { attempt: 1, crashes: 0, error: undefined })
  }

  override putBack(job: MemoryJob, now: number, suspect = job.suspect): void {
    this.#giveBack(job, job.inHand)
    super.putBack(job, now, suspect)
  }

  override schedule(job: MemoryJob, delayMs: number, now: number): void {
    this.#giveBack(job, job.inHand)
    super.schedule(job, delayMs, now)
  }

  /**
   * Only the oldest payload is buried; the rest begins anew. If there is no rest, the payloads that waited begin anew.
   */
  override exhaust(job: MemoryJob, reason: string | undefined, error: string | undefined, now: number): void {
    const { buried, back } = afterEnd('exhaust', job.inHand)
    this.#toMorgue(job, buried, reason, error, now)
    if (back.length === 0) {
      this.#leave(job, now)
      return
    }
    this.#giveBack(job, back)
    Object.assign(job, { attempt: 1, crashes: 0, error: undefined, reason: undefined })
    this.move(job, 'ready', now, { stamp: this.nextStamp(now), suspect: false })
  }

  override bury(job: MemoryJob, reason: string | undefined, error: string | undefined, now: number): void {
    this.#toMorgue(job, job.state === 'running' ? job.inHand : job.payloads!, reason, error, now)
    this.#leave(job, now)
  }

  /** Nothing is remembered: the id may come again at once. */
  override end(job: MemoryJob, _state: 'completed' | 'cancelled', now: number): void {
    this.#leave(job, now)
  }

  /** For a running job, the payloads that wait behind it are due once its claim has ended. */
  override runNow(job: MemoryJob, now: number): void {
    if (job.state === 'running') job.successor = { ...job.successor!, stamp: this.nextStamp(now), isReady: true }
    else super.runNow(job, now)
  }

  override requestCancel(job: MemoryJob): void {
    super.requestCancel(job)
    job.successor = undefined
  }

  override revive(dead: MemoryJob, now: number): boolean {
    this.discard(dead)
    const stamp = this.nextStamp(now)
    const entries = dead.payloads!
    const job = this.jobs.get(dead.spec.id)
    if (job === undefined) {
      const { createdAt, error } = dead
      this.#enter(dead.spec, { stamp, createdAt, state: 'ready', now }, entries).error = error
    } else if (job.state === 'running') {
      const { createdAt, payloads } = job.successor ?? { createdAt: dead.createdAt, payloads: this.#set() }
      payloads.addAll(entries)
      job.successor = { stamp, createdAt, isReady: true, payloads }
    } else {
      job.payloads!.addAll(entries)
      job.attempt = 1
      this.move(job, 'ready', now, { stamp })
    }
    return true
  }

  protected override discard(job: MemoryJob): void {
    if (job.state !== 'dead') {
      super.discard(job)
      return
    }
    this.dead.remove(job)
    this.morgue.delete(job.spec.id)
  }

  /**
   * Takes in a job from another shard or queue, with its times and counts. If its id is here, only its payloads join.
   */
  adopt(job: MemoryJob, now: number): void {
    if (job.state === 'dead') {
      this.#adoptDead(job, now)
      return
    }
    const here = this.jobs.get(job.spec.id)
    const payloads = this.#renumbered(job.payloads!)
    if (here === undefined) {
      const { attempt, crashes, error, fields, createdAt, stamp } = job
      const state = job.state === 'ready' ? 'ready' : stateOf(stamp, now)
      const entered = this.#enter(job.spec, { stamp, createdAt, state, now }, payloads)
      Object.assign(entered, { attempt, crashes, error, fields, updatedAt: job.updatedAt })
      if (job.suspect) this.move(entered, 'ready', job.updatedAt, { suspect: true })
    } else if (here.state === 'running') {
      const { stamp, createdAt } = job
      here.successor ??= { stamp, createdAt, isReady: job.state === 'ready', payloads: this.#set() }
      here.successor.payloads.addAll(payloads)
    } else here.payloads!.addAll(payloads)
  }

  /** The header is that of the one that died last. */
  #adoptDead(job: MemoryJob, now: number): void {
    const here = this.#shownDead(job.spec.id, now)
    const payloads = this.#renumbered(job.payloads!)
    if (here !== undefined && here.finishedAt! > job.finishedAt!) {
      here.payloads!.addAll(payloads)
      return
    }
    this.#toMorgue(job, payloads, job.reason, undefined, job.finishedAt!)
  }

  #renumbered(payloads: PayloadSet): PayloadEntry[] {
    return [...payloads].map((entry) => ({ ...entry, seq: this.nextSeq() }))
  }

  #set(entries?: Iterable<PayloadEntry>): PayloadSet {
    return new PayloadSet(() => this.#merge, entries)
  }

  #enter(
    spec: NewJob,
    { now, ...place }: Pick<MemoryJob, 'stamp' | 'createdAt' | 'state'> & { readonly now: number },
    payloads: Iterable<PayloadEntry>,
  ): MemoryJob {
    const { id, task, group } = spec
    const header = { id, task, payload: '', priority: 0, rememberMs: 0, ...(group === undefined ? {} : { group }) }
    const job = newMemoryJob(header, { seq: 0, queue: this.settings.name, ...place })
    job.updatedAt = now
    job.payloads = this.#set(payloads)
    this.insert(job)
    return job
  }

  /** The payloads in hand merge with the waiting ones. */
  #giveBack(job: MemoryJob, entries: Iterable<PayloadEntry>): void {
    job.payloads = job.successor?.payloads ?? this.#set()
    job.payloads.addAll(entries)
    job.inHand = []
    job.successor = undefined
  }

  /** The job goes; the payloads that wait behind it, if any, become a new job. */
  #leave(job: MemoryJob, now: number): void {
    super.discard(job)
    const { successor, spec } = job
    if (successor === undefined) return
    const { stamp, createdAt, isReady, payloads } = successor
    this.#enter(spec, { stamp, createdAt, state: isReady ? 'ready' : stateOf(stamp, now), now }, payloads)
  }

  #toMorgue(
    job: MemoryJob,
    entries: Iterable<PayloadEntry>,
    reason: string | undefined,
    error: string | undefined,
    at: number,
  ): void {
    const { spec, stamp, attempt, crashes } = job
    const before = this.#shownDead(spec.id, at)
    if (before !== undefined) this.discard(before)
    const createdAt = before?.createdAt ?? job.createdAt
    const dead = newMemoryJob(spec, { seq: 0, queue: this.settings.name, createdAt, state: 'dead', stamp })
    Object.assign(dead, { attempt, crashes, reason, error: error ?? job.error, updatedAt: at, finishedAt: at })
    dead.payloads = this.#set([...(before?.payloads ?? []), ...entries])
    this.morgue.set(spec.id, dead)
    this.dead.add(dead)
  }

  /** An entry beyond its age is gone, whether trimmed or not. */
  #shownDead(id: string, now: number): MemoryJob | undefined {
    const dead = this.morgue.get(id)
    if (dead === undefined || !this.isHidden(dead, now)) return dead
    this.discard(dead)
    return undefined
  }
}

function stateOf(stamp: number, now: number): 'scheduled' | 'ready' {
  return dueAt(stamp) > now ? 'scheduled' : 'ready'
}

function entryOf(
  { score, payload, codec, meta }: NewJob,
  identity: string,
  seq: number,
  nextScore: () => number,
): PayloadEntry {
  return {
    identity,
    // No store distinguishes -0 from 0.
    score: (score ?? nextScore() / 1_000) + 0,
    seq,
    payload,
    ...(codec === undefined ? {} : { codec }),
    ...(meta === undefined ? {} : { meta }),
  }
}
