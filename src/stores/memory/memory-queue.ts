/**
 * One queue of the memory store: its jobs and the rules by which they change state.
 * This is the executable specification that every other store is compared with, step by step.
 */

import { dueAt, nextFence, nextStamp, stampOf } from '../../core/stamp.js'
import { rememberedForMs, upkeepLimit } from '../../core/upkeep.js'
import type {
  Beat,
  Buried,
  Claim,
  ClaimKey,
  Depth,
  EnqueueCall,
  Enqueued,
  ExtendAnswer,
  NewJob,
  QueueSettings,
  SettleAnswer,
  SettleItem,
} from '../store.js'
import { CallMemory } from './call-memory.js'
import { claimOf, type MemoryJob, type RememberedJob, rememberedJob } from './memory-job.js'
import { RememberedIds } from './remembered-ids.js'
import { SortedList } from './sorted-list.js'

const bySeq = (a: MemoryJob, b: MemoryJob) => a.seq - b.seq

export class MemoryQueue {
  settings: QueueSettings
  paused = false
  draining = false
  processed = 0
  failed = 0
  readonly jobs = new Map<string, MemoryJob>()
  readonly remembered = new RememberedIds()
  readonly calls = new CallMemory()
  readonly ready: SortedList<MemoryJob>
  readonly scheduled = new SortedList<MemoryJob>((a, b) => a.stamp - b.stamp || bySeq(a, b))
  readonly running = new SortedList<MemoryJob>((a, b) => a.leaseUntil - b.leaseUntil || bySeq(a, b))
  readonly dead = new SortedList<MemoryJob>((a, b) => a.finishedAt! - b.finishedAt! || bySeq(a, b))
  readonly completed = new SortedList<MemoryJob>((a, b) => a.finishedAt! - b.finishedAt! || bySeq(a, b))
  lastStamp = 0
  lastFence = 0
  #seq = 0

  constructor(settings: QueueSettings) {
    this.settings = settings
    const direction = settings.order === 'lifo' ? -1 : 1
    this.ready = new SortedList(
      (a, b) => b.spec.priority - a.spec.priority || direction * (a.stamp - b.stamp) || bySeq(a, b),
    )
  }

  get waiting(): number {
    return this.ready.size + this.scheduled.size
  }

  // Enqueue

  enqueue(call: EnqueueCall, now: number): Enqueued[] {
    const before = this.calls.answersTo(call.callId, now)
    if (before !== undefined) return before
    const answers = this.#answersTo(call.jobs, now)
    for (const [i, job] of call.jobs.entries()) if (answers[i] === 'added') this.#add(job, now)
    this.calls.remember(call.callId, answers, now)
    return answers
  }

  #answersTo(jobs: readonly NewJob[], now: number): Enqueued[] {
    if (this.draining) return jobs.map(() => 'draining')
    const ids = new Set<string>()
    const answers = jobs.map(({ id }): Enqueued => {
      const answer = ids.has(id) || this.#isKnown(id, now) ? 'duplicate' : 'added'
      ids.add(id)
      return answer
    })
    const added = answers.filter((answer) => answer === 'added').length
    const room = (this.settings.maxPending ?? Number.POSITIVE_INFINITY) - this.waiting
    return added > 0 && added > room ? jobs.map(() => 'full') : answers
  }

  /** Whether the id is live or remembered. */
  #isKnown(id: string, now: number): boolean {
    const job = this.jobs.get(id)
    const isLive = job !== undefined && job.state !== 'completed' && !this.isHidden(job, now)
    return isLive || this.memoryOf(id, now) !== undefined
  }

  /** What is remembered of an ended job, be its result kept or not. */
  memoryOf(id: string, now: number): RememberedJob | undefined {
    const job = this.jobs.get(id)
    if (job === undefined) return this.remembered.get(id, now)
    if (job.state !== 'completed' || job.finishedAt! + job.spec.rememberMs <= now) return undefined
    return rememberedJob(job, 'completed', job.finishedAt!, job.spec.rememberMs)
  }

  #add(spec: NewJob, now: number): void {
    const leftover = this.jobs.get(spec.id)
    if (leftover !== undefined) this.drop(leftover)
    this.remembered.delete(spec.id)
    const due = spec.runAt ?? (spec.delayMs ? now + spec.delayMs : undefined)
    const job: MemoryJob = {
      seq: ++this.#seq,
      queue: this.settings.name,
      spec,
      createdAt: now,
      state: due !== undefined && due > now ? 'scheduled' : 'ready',
      updatedAt: now,
      stamp: due === undefined ? this.#nextStamp(now) : stampOf(due),
      attempt: 1,
      crashes: 0,
      fence: 0,
      leaseUntil: 0,
      alone: false,
      cancelRequested: false,
      worker: undefined,
      host: undefined,
      pid: undefined,
      progress: undefined,
      startedAt: undefined,
      finishedAt: undefined,
      expiresAt: undefined,
      result: undefined,
      error: undefined,
      reason: undefined,
    }
    this.jobs.set(spec.id, job)
    this.#listOf(job).add(job)
  }

  #nextStamp(now: number): number {
    this.lastStamp = nextStamp(this.lastStamp, now)
    return this.lastStamp
  }

  // Claim

  /** Expired leases end: cancelled jobs leave, jobs that crashed too often are buried, the others are ready in their old place. */
  recover(now: number): Buried[] {
    const buried: Buried[] = []
    for (const job of this.running.head(upkeepLimit)) {
      if (job.leaseUntil > now) break
      if (job.alone) job.crashes += 1
      if (job.cancelRequested) this.end(job, 'cancelled', now)
      else if (job.alone && job.crashes >= this.settings.maxCrashes) {
        this.bury(job, 'crashed', undefined, now)
        buried.push({ queue: job.queue, id: job.spec.id, task: job.spec.task, reason: 'crashed' })
      } else this.#move(job, 'ready', now)
    }
    return buried
  }

  promote(now: number): void {
    for (const job of this.scheduled.head(upkeepLimit)) {
      if (dueAt(job.stamp) > now) break
      this.#move(job, 'ready', now)
    }
  }

  take(count: number, worker: string, leaseMs: number, alone: boolean, now: number): Claim[] {
    const jobs = this.ready.head(count)
    if (jobs.length > 0) this.lastFence = nextFence(this.lastFence, now)
    for (const job of jobs) {
      job.fence = this.lastFence
      job.worker = worker
      job.alone = alone
      this.#move(job, 'running', now, { leaseUntil: now + leaseMs })
    }
    return jobs.map(claimOf)
  }

  /** Ms until a scheduled job falls due or a lease ends. */
  nextChangeMs(now: number): number | undefined {
    const at = Math.min(
      this.scheduled.first === undefined ? Number.POSITIVE_INFINITY : dueAt(this.scheduled.first.stamp),
      this.running.first?.leaseUntil ?? Number.POSITIVE_INFINITY,
    )
    return at === Number.POSITIVE_INFINITY ? undefined : Math.max(0, at - now)
  }

  /** Ms since the oldest ready job was due. */
  headAgeMs(now: number): number | undefined {
    let oldest: number | undefined
    for (const job of this.ready) oldest = Math.min(oldest ?? job.stamp, job.stamp)
    return oldest === undefined ? undefined : Math.max(0, now - dueAt(oldest))
  }

  /** Whether a claim made now would find something. */
  hasWork(now: number): boolean {
    if (this.paused) return false
    return this.ready.size > 0 || this.nextChangeMs(now) === 0
  }

  // Settle and extend

  settle(item: SettleItem, now: number): SettleAnswer {
    const job = this.jobs.get(item.id)
    if (job === undefined) return 'gone'
    if (job.state !== 'running' || job.fence !== item.fence) return 'lost'
    switch (item.kind) {
      case 'complete':
        this.processed += 1
        job.reason = undefined
        if (item.result === undefined) this.end(job, 'completed', now)
        else this.#keep(job, item.result, now)
        break
      case 'retry':
        this.failClaim(job, item, now)
        break
      case 'release':
        this.#backToQueue(job, item.delayMs, now)
        break
      case 'bury':
        this.bury(job, item.reason, item.error, now)
        break
      case 'cancel':
        job.reason = item.reason
        this.end(job, 'cancelled', now)
        break
    }
    return 'ok'
  }

  /** A counted failure of a running job. */
  failClaim(
    job: MemoryJob,
    how: { delayMs: number; last?: boolean; error?: string; reason?: string },
    now: number,
  ): void {
    this.failed += 1
    job.attempt += 1
    job.error = how.error
    if (how.last) this.bury(job, how.reason, how.error, now)
    else if (job.cancelRequested) this.end(job, 'cancelled', now)
    else this.#schedule(job, how.delayMs, now)
  }

  /** Not counted: with no delay the job is back in its old place. */
  #backToQueue(job: MemoryJob, delayMs: number, now: number): void {
    if (job.cancelRequested) this.end(job, 'cancelled', now)
    else if (delayMs === 0) this.#move(job, 'ready', now)
    else this.#schedule(job, delayMs, now)
  }

  #schedule(job: MemoryJob, delayMs: number, now: number): void {
    if (delayMs === 0) this.#move(job, 'ready', now, { stamp: this.#nextStamp(now) })
    else this.#move(job, 'scheduled', now, { stamp: stampOf(now + delayMs) })
  }

  extend(key: ClaimKey, leaseMs: number, beat: Beat | undefined, now: number): ExtendAnswer {
    const job = this.jobs.get(key.id)
    if (job === undefined || job.state !== 'running' || job.fence !== key.fence) return 'lost'
    this.running.remove(job)
    job.leaseUntil = Math.max(job.leaseUntil, now + leaseMs)
    this.running.add(job)
    if (beat !== undefined) {
      if (beat.started) job.startedAt ??= now
      job.host = beat.host ?? job.host
      job.pid = beat.pid ?? job.pid
      job.progress = beat.progress ?? job.progress
      job.updatedAt = now
    }
    return job.cancelRequested ? 'cancel' : 'ok'
  }

  /** Drops what has expired or is over its bound; called once for every queue that a settle touched. */
  trim(now: number): void {
    this.remembered.expire(upkeepLimit, now)
    const { resultsCount = Number.POSITIVE_INFINITY, dead } = this.settings
    const expired = [...this.completed].filter((job) => this.isHidden(job, now))
    expired.sort((a, b) => a.expiresAt! - b.expiresAt! || bySeq(a, b))
    for (const job of expired.slice(0, upkeepLimit)) this.#dropResult(job, now)
    for (const job of this.completed.head(Math.min(upkeepLimit, this.completed.size - resultsCount)))
      this.#dropResult(job, now)
    for (const job of this.dead.head(upkeepLimit)) {
      if (!this.isHidden(job, now)) break
      this.drop(job)
    }
    for (const job of this.dead.head(Math.min(upkeepLimit, this.dead.size - (dead.count ?? Number.POSITIVE_INFINITY))))
      this.drop(job)
  }

  // Ends and moves

  #keep(job: MemoryJob, result: { payload: string | Uint8Array; codec?: string; keepMs?: number }, now: number): void {
    const { keepMs, ...kept } = result
    job.result = kept
    job.error = undefined
    this.#move(job, 'completed', now, { finishedAt: now, expiresAt: keepMs === undefined ? undefined : now + keepMs })
  }

  /** The job leaves; its id is remembered where the user gave it or the job was cancelled. */
  end(job: MemoryJob, state: 'completed' | 'cancelled', now: number): void {
    this.drop(job)
    const forMs = rememberedForMs(state, job.spec.rememberMs)
    if (forMs > 0) this.remembered.add(rememberedJob(job, state, now, forMs))
  }

  /** A kept result goes; the id stays remembered as long as it would have been without one. */
  #dropResult(job: MemoryJob, now: number): void {
    const memory = this.memoryOf(job.spec.id, now)
    this.drop(job)
    if (memory !== undefined) this.remembered.add(memory)
  }

  bury(job: MemoryJob, reason: string | undefined, error: string | undefined, now: number): void {
    job.reason = reason
    job.error = error ?? job.error
    this.#move(job, 'dead', now, { finishedAt: now })
  }

  /** A dead job is ready again, with all its attempts. */
  revive(job: MemoryJob, now: number): void {
    job.attempt = 1
    job.crashes = 0
    job.reason = undefined
    this.#move(job, 'ready', now, { stamp: this.#nextStamp(now), finishedAt: undefined })
  }

  runNow(job: MemoryJob, now: number): void {
    this.#move(job, 'ready', now, { stamp: this.#nextStamp(now) })
  }

  drop(job: MemoryJob): void {
    this.#listOf(job).remove(job)
    this.jobs.delete(job.spec.id)
  }

  /** Kept beyond its time and not yet trimmed. */
  isHidden(job: MemoryJob, now: number): boolean {
    if (job.state === 'completed') return job.expiresAt !== undefined && job.expiresAt <= now
    if (job.state === 'dead')
      return this.settings.dead.ageMs !== undefined && job.finishedAt! + this.settings.dead.ageMs <= now
    return false
  }

  /** Changes state, and with it the list; what orders the lists changes only between leaving one and entering the next. */
  #move(job: MemoryJob, state: MemoryJob['state'], now: number, changes: Partial<MemoryJob> = {}): void {
    this.#listOf(job).remove(job)
    if (state === 'running' || state === 'ready' || state === 'scheduled') {
      Object.assign(job, { host: undefined, pid: undefined, progress: undefined, startedAt: undefined })
      if (state !== 'running')
        Object.assign(job, { worker: undefined, alone: false, cancelRequested: false, leaseUntil: 0 })
    }
    Object.assign(job, changes, { state, updatedAt: now })
    this.#listOf(job).add(job)
  }

  #listOf(job: MemoryJob): SortedList<MemoryJob> {
    return this.#listIn(job.state)
  }

  #listIn(state: MemoryJob['state']): SortedList<MemoryJob> {
    switch (state) {
      case 'ready':
        return this.ready
      case 'scheduled':
        return this.scheduled
      case 'running':
        return this.running
      case 'dead':
        return this.dead
      default:
        return this.completed
    }
  }

  /** In the order in which administration takes them: as they will be claimed, were claimed, or ended (latest first). */
  inState(state: MemoryJob['state']): MemoryJob[] {
    const jobs = [...this.#listIn(state)]
    if (state === 'running') return jobs.sort((a, b) => a.fence - b.fence || bySeq(a, b))
    return state === 'completed' || state === 'dead' ? jobs.reverse() : jobs
  }

  depth(now: number): Depth {
    let retries = 0
    for (const list of [this.ready, this.scheduled]) for (const job of list) if (job.attempt > 1) retries += 1
    const due = this.scheduled.first === undefined ? 0 : Math.max(0, now - dueAt(this.scheduled.first.stamp))
    return {
      queue: this.settings.name,
      ready: this.ready.size,
      scheduled: this.scheduled.size,
      running: this.running.size,
      dead: this.dead.size,
      fresh: this.waiting - retries,
      retries,
      lagMs: Math.max(this.headAgeMs(now) ?? 0, due),
      processed: this.processed,
      failed: this.failed,
      paused: this.paused,
      draining: this.draining,
    }
  }
}
