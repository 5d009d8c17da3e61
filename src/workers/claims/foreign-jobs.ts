/**
 * The foreign jobs of a worker: those that it has claimed and cannot run, because it has no handler for their task or
 * cannot read them. Each is put aside for a moment, so that a worker that can run it gets it, and so that its own jobs
 * behind them have their turn. If nobody can, the moments grow.
 */

import type { WorkerSurroundings } from '../../core/surroundings.js'
import { type ForeignReason, longestForeignMs } from '../../runtime/run/claim-decoder.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { Store } from '../../stores/contract/store.js'
import type { LimitedQueues } from './limited-queues.js'

/** The first time: enough for an idle worker that is rung now. */
const firstMs = 20
/** Meanwhile it leaves the queue to others. */
const leaveMs = 25
/**
 * This many times it leaves the queue for twice as long as before: of many workers that cannot run the job, all have then
 * left at the same time, and one that can run it is alone there.
 */
const mostLeaves = 6
/**
 * After that, every fourth time, it leaves the queue for longer than the job waits. It knows when the job is due, and would
 * otherwise be the first to take it again, each time.
 */
const laterLeaves = 4
/** The first time if each claim costs money. */
const firstMeteredMs = 1_000
/** The most if a worker that lives has a handler: it may be busy, and its next slot must not wait. */
const briefMs = 250
/** With many foreign jobs, each waits this much longer for each of the last second: looking at them costs claims. */
const paceMs = 2
/** How long the list of workers is good for. */
const listMs = 5_000
/** The most jobs whose times are remembered. */
const mostRemembered = 10_000

export class ForeignJobs {
  readonly #surroundings: WorkerSurroundings
  readonly #store: Pick<Store, 'workers' | 'traits'>
  readonly #limited: LimitedQueues
  readonly #leave: (queue: string, forMs: number) => void
  /** How often each job was put aside, by queue and id; the one put aside longest ago is first. */
  readonly #times = new Map<string, number>()
  readonly #toldOf = new Set<string>()
  /** Those that were put aside in the second that began then, and in the one before. */
  #second = { beganAt: 0, count: 0, before: 0 }
  /** Which tasks the other workers of a queue run; undefined: not known yet. */
  #runElsewhere: ((task: string, queue: string) => boolean) | undefined
  /** When it may leave a queue for longer again. */
  #leavesAt = Number.NEGATIVE_INFINITY
  #listedAt = Number.NEGATIVE_INFINITY

  /** `leave` leaves a queue to other workers for a number of ms. The store rings one of them then. */
  constructor(
    surroundings: WorkerSurroundings,
    store: Pick<Store, 'workers' | 'traits'>,
    limited: LimitedQueues,
    leave: (queue: string, forMs: number) => void,
  ) {
    this.#surroundings = surroundings
    this.#store = store
    this.#limited = limited
    this.#leave = leave
  }

  /** For how many ms this claim is to be released. */
  putAside(claim: Claim, reason: ForeignReason): number {
    const { metered } = this.#store.traits
    const { queue, id, task } = claim
    this.#list()
    const isElsewhere = reason === 'unknown-task' && (this.#runElsewhere?.(task, queue) ?? true)
    if (reason === 'unknown-task' && !this.#toldOf.has(`${queue} ${task}`)) {
      this.#toldOf.add(`${queue} ${task}`)
      this.#surroundings.events.emit('task.unknown', { task, queue })
    }
    const times = this.#timesOf(queue, id)
    const atLeastMs = Math.min(this.#lately() * paceMs, longestForeignMs)
    // A throttle counts each claim.
    const isBrief = isElsewhere && !this.#limited.isThrottled(queue) && !metered
    const isSought = isBrief && times < mostLeaves
    const isGone = isBrief && times % laterLeaves === laterLeaves - 1
    this.#leave(queue, this.#leaveMs(isSought ? leaveMs * 2 ** times : isGone ? briefMs + leaveMs : leaveMs))
    if (isSought) return Math.max(firstMs, atLeastMs)
    const grownMs = (metered ? firstMeteredMs : firstMs) * 2 ** Math.min(times, 16)
    return Math.max(Math.min(grownMs, isBrief ? briefMs : longestForeignMs), atLeastMs)
  }

  /** It is there for at least as long as it was away: its own jobs may wait there too. */
  #leaveMs(wantedMs: number): number {
    const now = this.#surroundings.clock.mono()
    if (now < this.#leavesAt) return leaveMs
    this.#leavesAt = now + 2 * wantedMs
    return wantedMs
  }

  #timesOf(queue: string, id: string): number {
    const key = `${queue} ${id}`
    const times = this.#times.get(key) ?? 0
    this.#times.delete(key)
    this.#times.set(key, times + 1)
    if (this.#times.size > mostRemembered) this.#times.delete(this.#times.keys().next().value!)
    return times
  }

  /** How many were put aside within about a second. */
  #lately(): number {
    const now = this.#surroundings.clock.mono()
    const { beganAt, count } = this.#second
    if (now >= beganAt + 1_000) this.#second = { beganAt: now, count: 0, before: now < beganAt + 2_000 ? count : 0 }
    this.#second.count += 1
    return Math.max(this.#second.count, this.#second.before)
  }

  /** Refreshes what is known of the other workers. Nobody waits for it. */
  #list(): void {
    const store = this.#store
    const { worker, clock } = this.#surroundings
    if (clock.mono() < this.#listedAt + listMs) return
    this.#listedAt = clock.mono()
    if (store.workers === undefined) this.#runElsewhere = () => false
    void store.workers
      ?.list()
      .then((all) => {
        const others = all.filter(({ id, state }) => id !== worker && state !== 'stopping')
        this.#runElsewhere = (task, queue) =>
          others.some(({ queues, taskNames }) => queues.includes(queue) && (taskNames?.includes(task) ?? true))
      })
      .catch(() => {})
  }
}
