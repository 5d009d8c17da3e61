/** The lease keeper: beats for every claim of this process, and gives a claim up before its lease can end unnoticed. */

import { JobCancelledError, LeaseLostError } from '../core/errors.js'
import type { Events } from '../core/events.js'
import type { Beat, ExtendItem, Store } from '../stores/store.js'
import type { Execution } from './execution.js'
import { refOf } from './executor.js'

interface Held {
  readonly execution: Execution
  readonly leaseMs: number
  /** On this process's monotonic clock: after it the store may have given the job away. */
  deadline: number
  beatAt: number
  nextBeat: number
  announced: boolean
}

export interface LeaseKeeperParts {
  readonly store: Store
  readonly events: Events
  readonly mono: () => number
  readonly host: string
  readonly pid: number
}

/** How often it looks what is due: twice in the third of the shortest lease, 3 s, after which a beat is due. */
const tickMs = 500
/** A handler that runs longer than this is announced by a first beat; most end sooner and cost none. */
const announceAfterMs = 1_000
/** Progress is sent no more often. */
const progressGapMs = 1_000

export class LeaseKeeper {
  readonly #parts: LeaseKeeperParts
  readonly #held = new Set<Held>()
  #timer: NodeJS.Timeout | undefined
  #beating = false

  constructor(parts: LeaseKeeperParts) {
    this.#parts = parts
  }

  /** Keeps the lease of an execution until the returned function is called. `claimSentAt`: monotonic, from before the claim was sent. */
  keep(execution: Execution, leaseMs: number, claimSentAt: number): () => void {
    const held: Held = {
      execution,
      leaseMs,
      deadline: deadlineAfter(claimSentAt, leaseMs),
      beatAt: claimSentAt,
      nextBeat: claimSentAt + Math.min(announceAfterMs, leaseMs / 3),
      announced: false,
    }
    this.#held.add(held)
    this.#timer ??= setInterval(() => void this.#tick(), tickMs)
    return () => {
      this.#held.delete(held)
      this.#restIfIdle()
    }
  }

  /** Keeps no lease any longer; what is still claimed then ends with its lease. */
  stop(): void {
    this.#held.clear()
    this.#restIfIdle()
  }

  /** A timer that runs for nothing would keep the process alive. */
  #restIfIdle(): void {
    if (this.#held.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async #tick(): Promise<void> {
    const now = this.#parts.mono()
    for (const held of this.#held) if (held.deadline <= now) this.#lose(held)
    if (this.#beating) return
    const due = [...this.#held].filter((held) => isDue(held, now))
    if (due.length === 0) return
    this.#beating = true
    try {
      for (let i = 0; i < due.length; i += this.#parts.store.traits.maxBatch) {
        await this.#beat(due.slice(i, i + this.#parts.store.traits.maxBatch))
      }
    } catch (error) {
      // The next tick tries again; the local deadline bounds how long that can go on.
      this.#parts.events.emit('store.failed', { call: 'extend', error, retryMs: tickMs })
    } finally {
      this.#beating = false
    }
  }

  async #beat(due: readonly Held[]): Promise<void> {
    const sentAt = this.#parts.mono()
    const sent = due.map(({ execution }) => execution.unsentProgress)
    const answers = await this.#parts.store.extend(due.map((held) => this.#itemOf(held)))
    for (const [i, held] of due.entries()) {
      if (answers[i] === 'lost') {
        this.#lose(held)
        continue
      }
      held.announced = true
      held.deadline = deadlineAfter(sentAt, held.leaseMs)
      held.beatAt = sentAt
      held.nextBeat = sentAt + held.leaseMs / 3
      if (held.execution.unsentProgress === sent[i]) held.execution.unsentProgress = undefined
      if (answers[i] === 'cancel')
        held.execution.abort(new JobCancelledError(held.execution.claim.queue, held.execution.claim.id))
    }
  }

  #itemOf({ execution, leaseMs, announced }: Held): ExtendItem {
    const { queue, id, fence } = execution.claim
    const { host, pid } = this.#parts
    const progress = execution.unsentProgress
    const beat: Beat = {
      ...(announced ? {} : { started: true as const, host, pid }),
      ...(progress === undefined ? {} : { progress }),
    }
    return { queue, id, fence, leaseMs, ...(Object.keys(beat).length === 0 ? {} : { beat }) }
  }

  #lose(held: Held): void {
    if (!this.#held.delete(held)) return
    this.#restIfIdle()
    const { claim } = held.execution
    this.#parts.events.emit('lease.lost', refOf(claim))
    held.execution.abort(new LeaseLostError(claim.queue, claim.id))
  }
}

/** Ticks come late rather than early: what falls due before the next one is due now. */
function isDue({ execution, beatAt, nextBeat }: Held, now: number): boolean {
  const soon = now + tickMs / 2
  return nextBeat <= soon || (execution.unsentProgress !== undefined && beatAt + progressGapMs <= soon)
}

/**
 * The local deadline: counted from before the call was sent, so that the store's lease cannot end sooner, less a margin
 * for clocks that run at different rates. (Gray & Cheriton, "Leases", 1989.)
 */
function deadlineAfter(sentAt: number, leaseMs: number): number {
  return sentAt + leaseMs - Math.max(1_000, leaseMs / 10)
}
