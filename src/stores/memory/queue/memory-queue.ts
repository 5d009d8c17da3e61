/**
 * One queue of the memory store, or one shard of an ordered one: its jobs by state, and the changes of state of which
 * all rules consist. Every other store is compared with it, step by step.
 */

import type { NewPlace, UnreportedDeath } from '../../contract/job-records.js'
import type { NewJob } from '../../contract/new-job.js'
import type { KeptResult } from '../../contract/settle.js'
import { isSignalEntry } from '../../contract/steps.js'
import { rememberedForMs } from '../../rules/bounds.js'
import { compareBytes } from '../../rules/byte-order.js'
import type { SignalWait } from '../../rules/claim-end.js'
import { dueAt, expiredReason, expiryOf, newDue, nextStamp, stampOf } from '../../rules/sequence.js'
import { boundedDelayMs } from '../../rules/taken-id.js'
import { asksNow, isLed, type Lead } from '../../rules/wake-lead.js'
import { byId, bySeq, defined, hasBegun, type MemoryJob, newMemoryJob, remainsOf, rememberedJob } from './memory-job.js'
import type { MemoryJoins } from './memory-joins.js'
import { MemoryLanes, nextOpening } from './memory-lanes.js'
import { groupOf, MemoryLimits, type ShardSettings } from './memory-limits.js'
import { CallMemory, ExpectedIds, ExpiringJobs, RememberedIds, SetBackClock } from './memory-times.js'
import { SortedList } from './sorted-list.js'

export class MemoryQueue {
  settings: ShardSettings
  paused = false
  /** Being moved into other shards: as good as paused, until that is done. */
  isHeld = false
  draining = false
  processed = 0
  failed = 0
  lostAt = 0
  crashed = 0
  expired = 0
  /** The claimer that asks again when a job falls due or a lease ends. */
  lead: Lead | undefined
  /** The claimer that makes room for the suspects. */
  suspectLead: Lead | undefined
  readonly limits: MemoryLimits<MemoryQueue>
  /** Nothing is granted before: it is held, or its throttle has denied its ready jobs. */
  heldUntil = Number.NEGATIVE_INFINITY
  shutUntil = Number.NEGATIVE_INFINITY
  /** The run of the store in which an expired lease was last found, and until when such leases are left alone. */
  run: string | undefined
  sparesUntil = Number.NEGATIVE_INFINITY
  readonly lanes = new MemoryLanes()
  readonly jobs = new Map<string, MemoryJob>()
  readonly remembered = new RememberedIds()
  readonly expected = new ExpectedIds()
  readonly calls = new CallMemory()
  /** Ready jobs for all claims, in the order of claims. */
  readonly ready: SortedList<MemoryJob>
  /** Ready jobs for claims made alone, in the same order. */
  readonly suspects: SortedList<MemoryJob>
  readonly scheduled: SortedList<MemoryJob>
  /** Joins that wait for their members. */
  readonly joining: SortedList<MemoryJob>
  readonly expiring = new ExpiringJobs()
  readonly running: SortedList<MemoryJob>
  /** Orders jobs whose places are otherwise equal. */
  readonly tied: (a: MemoryJob, b: MemoryJob) => number
  readonly dead: SortedList<MemoryJob>
  readonly completed = new SortedList<MemoryJob>((a, b) => a.finishedAt! - b.finishedAt! || bySeq(a, b))
  /** Deaths that are not reported yet, the oldest first. */
  unreported: UnreportedDeath[] = []
  /** The number of all such deaths that there were. */
  #deaths = 0
  /** The number of ready jobs with a group. */
  #grouped = 0
  lastStamp = 0
  lastFence = 0
  #seq = 0
  readonly setBack = new SetBackClock(this)
  /** The joins of the store. */
  readonly #joins: MemoryJoins

  constructor(settings: ShardSettings, joins: MemoryJoins, limits = new MemoryLimits<MemoryQueue>()) {
    this.settings = settings
    this.#joins = joins
    this.limits = limits
    const direction = settings.order === 'lifo' ? -1 : 1
    const tied = settings.kind === 'ordered' ? byId : bySeq
    this.tied = tied
    const inLine = (a: MemoryJob, b: MemoryJob) =>
      b.spec.priority - a.spec.priority || direction * (a.stamp - b.stamp) || tied(a, b)
    this.ready = new SortedList(inLine)
    this.suspects = new SortedList(inLine)
    this.scheduled = new SortedList((a, b) => a.stamp - b.stamp || tied(a, b))
    this.joining = new SortedList((a, b) => a.stamp - b.stamp || tied(a, b))
    this.running = new SortedList((a, b) => a.leaseUntil - b.leaseUntil || tied(a, b))
    this.dead = new SortedList((a, b) => a.finishedAt! - b.finishedAt! || tied(a, b))
  }

  get waiting(): number {
    return this.ready.size + this.suspects.size + this.scheduled.size
  }

  /** The number that `maxPending` bounds. */
  get pending(): number {
    return this.waiting + this.joining.size
  }

  /** Whether it grants nothing before a claim has ended. */
  get isFull(): boolean {
    return this.isBusy || this.limits.room <= 0
  }

  /** Whether another claim has it for itself. */
  get isBusy(): boolean {
    return false
  }

  /** Whether nothing is granted, whatever is ready. */
  get isStopped(): boolean {
    return this.paused || this.isHeld
  }

  /** Until when nothing is granted, whatever is ready. */
  get opensAt(): number {
    return Math.max(this.heldUntil, this.shutUntil)
  }

  /** Whether claims on it go round its lanes. */
  get hasLanes(): boolean {
    return this.limits.byGroup || this.#grouped > 0
  }

  /** The ready jobs of a group. */
  lane(group: string): MemoryJob[] {
    return [...this.ready].filter((job) => groupOf(job) === group)
  }

  /** Whether jobs without a group may be granted when claims go round the lanes. */
  get isGrouplessOpen(): boolean {
    return !this.lanes.shut.has('') && this.limits.roomIn('') > 0
  }

  /** Ready jobs that a claim in company may take now. */
  claimable(now: number): number {
    if (this.isStopped || this.isFull || this.opensAt > now) return 0
    if (!this.hasLanes) return this.ready.size
    const open = new Set(this.isGrouplessOpen ? [...this.lanes.turns, ''] : this.lanes.turns)
    return [...this.ready].filter((job) => open.has(groupOf(job))).length
  }

  /** Whether a claim made alone would receive a suspect, if its group lets it start. */
  isOpenForSuspects(now: number): boolean {
    return !this.isStopped && !this.isFull && this.opensAt <= now && this.suspects.size > 0
  }

  /** The entry of an id in the morgue. */
  deadJob(id: string): MemoryJob | undefined {
    const job = this.jobs.get(id)
    return job?.state === 'dead' ? job : undefined
  }

  /** All jobs of which more than the id is kept. */
  kept(): MemoryJob[] {
    return [...this.jobs.values()]
  }

  // Changes to come

  /** Ms until a scheduled job falls due, a lease ends, or shut ready jobs open. */
  nextChangeMs(now: number): number | undefined {
    const at = Math.min(
      this.scheduled.first === undefined ? Number.POSITIVE_INFINITY : dueAt(this.scheduled.first.stamp),
      Math.max(this.running.first?.leaseUntil ?? Number.POSITIVE_INFINITY, this.sparesUntil),
      nextOpening(this, now),
    )
    return at === Number.POSITIVE_INFINITY ? undefined : Math.max(0, at - now)
  }

  /** Whether a claim made now would find something, if only a change. */
  hasWork(now: number): boolean {
    return !this.isStopped && (this.claimable(now) > 0 || this.nextChangeMs(now) === 0)
  }

  /** Whether some claimer must ask: there is work, and no lead will find it. */
  needsClaimer(now: number): boolean {
    if (!this.isStopped && this.setBack.isSo(now) && this.waiting + this.running.size > 0) return true
    return this.hasWork(now) && (this.claimable(now) > 0 || !asksNow(this.lead, now))
  }

  /** Whether the next scheduled job is due before any lead will ask. */
  needsLead(now: number): boolean {
    const next = this.scheduled.first
    return !this.isStopped && next !== undefined && this.isCalling(next.spec.id, now)
  }

  /** Whether the job is now a reason to ring: ready and not shut, or due before the lead asks. */
  isCalling(id: string, now: number): boolean {
    const job = this.jobs.get(id)
    if (job?.state === 'scheduled') return !this.#isLedBy(dueAt(job.stamp), now)
    if (job?.state !== 'ready' || this.isFull) return false
    const group = groupOf(job)
    if (!job.suspect && this.hasLanes && this.limits.roomIn(group) <= 0) return false
    const isShut = !job.suspect && this.hasLanes && this.lanes.shut.has(group)
    const opensAt = Math.max(this.opensAt, isShut ? this.lanes.shut.get(group)! : Number.NEGATIVE_INFINITY)
    return opensAt <= now || !this.#isLedBy(opensAt, now)
  }

  /** Whether a lead will ask by then. */
  #isLedBy(at: number, now: number): boolean {
    return isLed(this.lead, now) && this.lead.wakeAt <= at
  }

  // The past

  /** Beyond its time and not yet trimmed. */
  isHidden(job: MemoryJob, now: number): boolean {
    if (job.state === 'completed') return job.expiresAt !== undefined && job.expiresAt <= now
    if (job.state === 'dead')
      return this.settings.dead.ageMs !== undefined && job.finishedAt! + this.settings.dead.ageMs <= now
    return false
  }

  /** In the order of administration: as they will be claimed, were claimed, or ended (latest first). */
  inState(state: MemoryJob['state']): MemoryJob[] {
    if (state === 'ready') return [...this.#byLane(), ...this.suspects]
    const jobs = [...this.#inList(state)]
    if (state === 'running') return jobs.sort((a, b) => a.fence - b.fence || this.tied(a, b))
    return state === 'completed' || state === 'dead' ? jobs.reverse() : jobs
  }

  /** Ready jobs without a group, then lane by lane. */
  #byLane(): MemoryJob[] {
    return [...this.ready].sort((a, b) => compareBytes(groupOf(a), groupOf(b)))
  }

  /** Whether the number of this job in a set has been added. */
  hasMember(spec: NewJob): boolean {
    return this.#joins.hasMember(this.settings.name, spec)
  }

  // Changes of state

  /** Adds a new job. It replaces the rest of an ended one, or a waiting one that came in at `createdAt`. */
  add(spec: NewJob, now: number, createdAt = now): void {
    const leftover = this.jobs.get(spec.id)
    if (leftover !== undefined) this.drop(leftover, now)
    this.remembered.delete(spec.id)
    const { join } = spec
    const runAt = spec.runAt ?? now + boundedDelayMs(spec, createdAt, now)
    const isLater = join === undefined && runAt > now
    const job = newMemoryJob(spec, {
      seq: this.nextSeq(),
      queue: this.settings.name,
      createdAt,
      state: join !== undefined ? 'waiting' : isLater ? 'scheduled' : 'ready',
      // Behind all ready jobs, however long ago it was due.
      stamp: isLater ? stampOf(runAt) : this.nextStamp(now),
    })
    job.updatedAt = now
    if (join === undefined) job.expiresAt = expiryOf(spec, now)
    this.insert(job)
    this.#joins.add(this.settings.name, spec)
    if (join !== undefined) this.#joins.begin(this, job, now)
  }

  /** A join whose members have ended takes the place of its enqueue, or waits for its time, which counts from now. */
  release(job: MemoryJob, now: number): void {
    const { spec } = job
    const runAt = spec.runAt ?? now + boundedDelayMs(spec, now, now)
    job.expiresAt = expiryOf(spec, now)
    if (runAt > now) this.move(job, 'scheduled', now, { stamp: stampOf(runAt), waitedUntil: now })
    else this.wake(job, now)
  }

  take(
    job: MemoryJob,
    claim: Pick<MemoryJob, 'worker' | 'fence' | 'alone' | 'leaseUntil'>,
    now: number,
    ..._of: [maxPayloads: number, mostBytes: number]
  ): void {
    this.move(job, 'running', now, claim)
  }

  /** Sets the end of the lease. */
  renew(job: MemoryJob, leaseUntil: number): void {
    this.running.remove(job)
    job.leaseUntil = leaseUntil
    this.running.add(job)
  }

  /** Makes the job ready in its old place; suspect if it was, or if so said. */
  putBack(job: MemoryJob, now: number, suspect = job.suspect): void {
    this.move(job, 'ready', now, { suspect })
  }

  /** Makes it due after `delayMs` and free of suspicion; with 0, ready behind the other ready jobs. */
  schedule(job: MemoryJob, delayMs: number, now: number): void {
    if (delayMs === 0) this.move(job, 'ready', now, { stamp: this.nextStamp(now), suspect: false })
    else this.move(job, 'scheduled', now, { stamp: stampOf(now + delayMs) })
  }

  /** A claimed job waits for a signal, unless that came before. */
  await(job: MemoryJob, { signal, withinMs }: SignalWait, now: number): void {
    const until = withinMs === undefined ? undefined : now + withinMs
    this.move(job, 'waiting', now, { awaits: { signal, until }, expiresAt: undefined })
    if (job.steps.some((step) => isSignalEntry(step) && step.name === signal)) this.wake(job, now)
  }

  /** The wait of a job is over: it is ready in its old place. */
  wake(job: MemoryJob, now: number): void {
    this.move(job, 'ready', now, { waitedUntil: now })
  }

  promote(job: MemoryJob, now: number): void {
    this.move(job, 'ready', now)
  }

  runNow(job: MemoryJob, now: number): void {
    job.steps = job.steps.map((step) =>
      step.until === undefined ? step : { ...step, until: Math.min(step.until, now) },
    )
    this.move(job, 'ready', now, { stamp: this.nextStamp(now) })
  }

  /** Gives a job that waits for a claim another place. */
  reschedule(job: MemoryJob, to: NewPlace, now: number): void {
    const due = newDue(job.stamp, to, now)
    const spec = { ...job.spec, priority: to.priority ?? job.spec.priority }
    if (typeof due === 'number') this.move(job, 'scheduled', now, { spec, stamp: stampOf(due) })
    else if (due === 'behind') this.move(job, 'ready', now, { spec, stamp: this.nextStamp(now) })
    else this.move(job, due === 'due' ? 'ready' : job.state, now, { spec })
  }

  /**
   * A dead job is ready again, with all its attempts; a join that misses members waits again. False: the join cannot,
   * because a member is gone.
   */
  revive(job: MemoryJob, now: number): boolean {
    const becomes = this.#joins.afterRevive(job)
    if (becomes === 'dead') return false
    job.attempt = 1
    job.crashes = 0
    job.reason = undefined
    this.move(job, becomes, now, { stamp: this.nextStamp(now), finishedAt: undefined })
    if (becomes === 'waiting') this.#joins.waitAgain(job, now)
    this.#joins.revived(job)
    return true
  }

  /** The last failure, or one crash too many. */
  exhaust(job: MemoryJob, reason: string | undefined, error: string | undefined, now: number): void {
    this.bury(job, reason, error, now)
  }

  /** A running job is to be cancelled. */
  requestCancel(job: MemoryJob): void {
    job.cancelRequested = true
  }

  keep(job: MemoryJob, { keepMs, ...result }: KeptResult, now: number) {
    const { onlyForJoins: _, ...kept } = result
    job.result = kept
    job.error = undefined
    job.checkpoint = undefined
    job.steps = []
    const expiresAt = keepMs === undefined ? undefined : Math.max(now + keepMs, this.expected.until(job.spec.id, now))
    this.move(job, 'completed', now, { finishedAt: now, expiresAt })
    this.#joins.report(job, 'completed', result, now)
    this.#joins.forget(job)
  }

  bury(job: MemoryJob, reason: string | undefined, error: string | undefined, now: number): void {
    job.reason = reason
    job.error = error ?? job.error
    this.move(job, 'dead', now, { finishedAt: now, expiresAt: undefined })
    if (job.spec.reportsDeath) this.unreported.push(this.#deathOf(job, now))
    this.#joins.report(job, 'dead', { error: job.error }, now)
  }

  #deathOf({ spec, attempt, crashes, error, reason }: MemoryJob, diedAt: number): UnreportedDeath {
    const { id, task, payload, codec } = spec
    const number = ++this.#deaths
    return {
      ...{ queue: this.settings.name, id, number, task, payload, attempt, crashes, diedAt },
      ...defined({ codec, error, reason }),
    }
  }

  /** Removes the job; its id is remembered if the user gave it or the job was cancelled, then with its remains. */
  end(job: MemoryJob, state: 'completed' | 'cancelled', now: number, result: KeptResult = {}): void {
    this.#joins.report(job, state, result, now)
    const hasRemains = state === 'cancelled' && hasBegun(job)
    this.drop(job, now)
    const forMs = rememberedForMs(state, job.spec.rememberMs, hasRemains)
    if (forMs > 0) this.remembered.add(rememberedJob(job, state, now, forMs, hasRemains ? remainsOf(job) : undefined))
  }

  /** Nobody has begun the job in time. */
  expire(job: MemoryJob, now: number): void {
    job.reason = expiredReason
    this.expired += 1
    this.#joins.report(job, 'expired', {}, now)
    this.end(job, 'cancelled', now)
  }

  drop(job: MemoryJob, now: number): void {
    this.discard(job)
    // Unless it has ended before: a member that is dropped is as good as cancelled.
    this.#joins.report(job, 'cancelled', {}, now)
    this.#joins.forget(job)
  }

  protected discard(job: MemoryJob): void {
    this.#remove(job)
    this.jobs.delete(job.spec.id)
    this.refresh(groupOf(job))
  }

  /** Nothing of the queue, or of a group in it, is granted before then. */
  hold(group: string | undefined, until: number): void {
    if (group === undefined) this.heldUntil = Math.max(this.heldUntil, until)
    else this.lanes.hold(group, until)
  }

  /** Opens everything that its throttle has shut. */
  reopen(): void {
    this.shutUntil = Number.NEGATIVE_INFINITY
    this.lanes.openDue(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY)
  }

  relimit(): void {
    for (const group of new Set([...this.running].map(groupOf).sort(compareBytes))) this.refresh(group)
  }

  protected insert(job: MemoryJob): void {
    this.jobs.set(job.spec.id, job)
    this.#add(job)
    this.refresh(groupOf(job))
  }

  /** A lane has a turn while it has a job and its group has room. */
  refresh(group: string): void {
    if (group === '') return
    const isOpen = this.limits.roomIn(group) > 0 && this.lane(group).length > 0
    if (!isOpen) this.lanes.leave(group)
    else if (!this.lanes.has(group)) this.lanes.open(group)
  }

  protected nextSeq(): number {
    return ++this.#seq
  }

  protected nextStamp(now: number): number {
    this.lastStamp = nextStamp(this.lastStamp, now)
    return this.lastStamp
  }

  /** Changes state and list. The values that order the lists change only between the two lists. */
  protected move(job: MemoryJob, state: MemoryJob['state'], now: number, changes: Partial<MemoryJob> = {}): void {
    this.#remove(job)
    if (state !== 'dead' && state !== 'completed') {
      Object.assign(job, { process: {}, progress: undefined, startedAt: undefined })
      if (state !== 'running')
        Object.assign(job, { worker: undefined, alone: false, cancelRequested: false, leaseUntil: 0 })
    }
    if (state !== 'running' && state !== 'ready') job.suspect = false
    job.awaits = undefined
    Object.assign(job, changes, { state, updatedAt: now })
    this.#add(job)
    this.refresh(groupOf(job))
  }

  #add(job: MemoryJob): void {
    const list = this.#listOf(job)
    list.add(job)
    this.expiring.add(job)
    if (list === this.ready && groupOf(job) !== '') this.#grouped += 1
  }

  #remove(job: MemoryJob): void {
    const list = this.#listOf(job)
    list.remove(job)
    this.expiring.leave(job)
    if (list === this.ready && groupOf(job) !== '') this.#grouped -= 1
  }

  #listOf({ state, suspect }: MemoryJob): SortedList<MemoryJob> {
    if (state === 'ready') return suspect ? this.suspects : this.ready
    return this.#inList(state)
  }

  #inList(state: MemoryJob['state']): SortedList<MemoryJob> {
    if (state === 'waiting') return this.joining
    return state === 'cancelled' ? this.completed : this[state]
  }
}
