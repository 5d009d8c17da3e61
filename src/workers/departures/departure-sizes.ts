/**
 * The sizes of departures: how many jobs of a throttled queue may wait for their instants at once. They are more than
 * the worker has slots, if several can begin in a slot within the spread.
 */

import type { ThrottleRule } from '../../core/queue/throttle.js'
import type { Registry } from '../../core/registry.js'
import type { Prefetch } from '../../runtime/prefetch.js'
import type { LimitedQueues } from './limited-queues.js'

/** All jobs of a departure are to begin in this share of their spread. A job that begins after the spread is put back. */
const spreadShare = 1 / 4
/** However long the spread: meanwhile they have every slot, and jobs of other queues wait. */
const longestReadyMs = 20
/**
 * If a worker has few slots, at most this share of a limit waits in it, or of each group's limit: when it stops, these
 * permits are wasted.
 */
const permitShare = 1 / 10

/** The executions of one queue that wait for their instants, and the slots kept for them. */
export interface DepartingShare {
  readonly jobs: number
  readonly slots: number
}

interface DepartureSizesParts {
  readonly limited: LimitedQueues
  readonly registry: Registry
  readonly prefetch: Prefetch
}

export class DepartureSizes {
  readonly #parts: DepartureSizesParts
  /** For each queue: as many may wait as departures have shown to begin in time. */
  readonly #proven = new Map<string, number>()
  /** For each queue whose limits hold for each group: the groups of its last departure. */
  readonly #groups = new Map<string, number>()

  constructor(parts: DepartureSizesParts) {
    this.#parts = parts
  }

  /** How many executions of this queue a claim may bring, by the free slots and by what already waits. */
  roomOf(queue: string, free: number, departing: DepartingShare): number {
    const inARow = this.inARow(queue)
    if (inARow === 1) return free
    // The free slots themselves need no proof.
    const together = Math.max(free + departing.slots, this.#mostOf(queue))
    return Math.min(free * inARow, together - departing.jobs)
  }

  /** The jobs of this queue that one slot begins in time, one after the other, by the measurements; at least 1. */
  inARow(queue: string): number {
    const { limited, registry, prefetch } = this.#parts
    const spreadMs = limited.spreadOf(queue)
    const { ordered, renewLease } = registry.queue(queue)
    if (spreadMs === undefined || ordered || !renewLease || limited.isBounded(queue)) return 1
    // The slot of an isolated job is taken for longer than its handler runs.
    if (registry.batchSize(queue) > 1 || registry.isolates(queue)) return 1
    return prefetch.hasRun(queue) ? prefetch.inARow(queue, readyMs(spreadMs)) : 1
  }

  /** The most jobs of this queue that may wait, however many slots are free; 0 until departures have shown more. */
  #mostOf(queue: string): number {
    const { limited } = this.#parts
    const whole = shareOf(limited.wholeRulesOf(queue))
    const each = shareOf(limited.groupRulesOf(queue))
    // A claim goes round the groups: the queue may have twice as many as the last one found.
    const ofGroups = Number.isFinite(each) ? 2 * (this.#groups.get(queue) ?? 0) * Math.max(1, each) : each
    const most = Math.min(whole, ofGroups)
    return Math.floor(Math.min(this.#proven.get(queue) ?? 0, most))
  }

  /**
   * Notes a departure of the queue: the number of its jobs, by how many ms the last of them began after its instant
   * (infinity: too late), and the number of their groups.
   */
  departed(queue: string, jobs: number, lagMs: number, groups: number): void {
    this.#groups.set(queue, groups)
    const proven = this.#proven.get(queue) ?? 0
    const withinMs = readyMs(this.#parts.limited.spreadOf(queue) ?? Number.POSITIVE_INFINITY)
    // Twice as many take about twice as long.
    if (lagMs <= withinMs / 2) this.#proven.set(queue, Math.max(proven, jobs * 2))
    else if (lagMs > withinMs) this.#proven.set(queue, Math.min(proven, Math.floor(jobs / 2)))
  }
}

/** The permits that may wait by these rules; without any as many as there are. */
function shareOf(rules: readonly ThrottleRule[] = []): number {
  return Math.min(...rules.map(({ limit }) => limit)) * permitShare
}

function readyMs(spreadMs: number): number {
  return Math.min(spreadMs * spreadShare, longestReadyMs)
}
