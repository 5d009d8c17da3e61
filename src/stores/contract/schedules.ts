/**
 * Schedules: the facet of a store that keeps them, and enqueues what they tick. The store knows nothing of calendars: whoever
 * writes or ticks a schedule says when its next tick is (`core/schedule/`), and the store compares and steps.
 */

import type { OnMissed, Overlap } from '../../core/schedule/due-ticks.js'
import type { ScheduleRule } from '../../core/schedule/schedule-rule.js'
import type { Enqueued, NewJob } from './new-job.js'

/** What a schedule enqueues with each tick. An ordered job has its id; others are named by their tick (`rules/schedule-tick`). */
type ScheduledJob = Omit<NewJob, 'id' | 'runAt'> & { readonly id?: string }

/** All that is needed to tick it, so that every process can, whatever its own code knows of it. */
export interface ScheduleDefinition {
  readonly name: string
  /** Must be open. A schedule may change its queue. */
  readonly queue: string
  readonly rule: ScheduleRule
  readonly onMissed: OnMissed
  readonly overlap: Overlap
  readonly jitterMs: number
  /** Whether code declares it: what it no longer declares is removed. Others are set at run time. */
  readonly isDeclared: boolean
  readonly job: ScheduledJob
}

/** A schedule as somebody wants it. */
export interface ScheduleChange {
  readonly definition: ScheduleDefinition
  /** Names this change, unlike any before and after those of its writer. */
  readonly revision: string
  readonly paused: boolean
  /** Absent: it does not tick. */
  readonly nextAt?: number
}

/** How far a schedule is. */
export type ScheduleState = Pick<ScheduleChange, 'revision' | 'nextAt'>

export interface StoredSchedule extends ScheduleChange {
  /** Over how many shards the jobs of its queue are spread; 1 for one of an ordered queue, whose job has its id. */
  readonly shards: number
  /** The instant of its last tick, whether or not that was enqueued. */
  readonly lastAt?: number
  /** The job that it enqueued last, by a tick or at somebody's wish. */
  readonly lastId?: string
  /** Jobs enqueued, and ticks left out: because the job before was there, or because nobody was there in time. */
  readonly ticked: number
  readonly skipped: number
  readonly missed: number
  readonly createdAt: number
  readonly updatedAt: number
}

/** The step of a schedule from the tick that is due to the one after. */
export interface ScheduleTick {
  readonly name: string
  readonly queue: string
  /** Of the schedule as it was read. It ticks only if this is its revision still, and `dueAt` its next tick. */
  readonly revision: string
  readonly dueAt?: number
  /** Absent: none follows. The same as `dueAt` where somebody enqueues its job out of turn. */
  readonly nextAt?: number
  /** The instant of the last tick that this step passes; absent where it passes none. */
  readonly lastAt?: number
  /** As that of an enqueue. */
  readonly callId: string
  /** They lie in the shard of the schedule. None: ticks are passed and nothing is enqueued. */
  readonly jobs: readonly NewJob[]
  /** While the job with this id waits or runs nothing is enqueued. Where it lies in another shard it may be overlooked. */
  readonly unless?: string
  /** Ticks left out, to be counted. */
  readonly skips: number
  readonly misses: number
}

/**
 * `'lost'`: the schedule has stepped on, was changed or is gone; nothing was done. `'skipped'`: it stepped, and the job of
 * `unless` is there. `'full'`, `'draining'`: its queue takes none; nothing was done, and it is due as before.
 */
export type TickAnswer =
  | { readonly outcome: 'ticked'; readonly enqueued: readonly Enqueued[] }
  | { readonly outcome: 'skipped' | 'lost' | 'full' | 'draining' }

export interface DueSchedules {
  readonly now: number
  /** Whether the caller leads; of one who does not, nothing else is told. */
  readonly isLead: boolean
  /** After how long the lead lapses: the caller's, or that of whoever leads. */
  readonly leadMs: number
  /** Those whose next tick is not after `now`, the earliest first, at most as many as were asked for. */
  readonly due: readonly StoredSchedule[]
  /** Of the others the earliest tick. */
  readonly nextAt?: number
}

export interface Schedules {
  /**
   * Writes a schedule if what is stored of its name has the revision and the next tick that `expects` has: who read it before a
   * tick must not take it back. Absent: if there is none. What it has ticked so far stays. False, and nothing changed,
   * otherwise; true also if the change is stored already. Throws `UnknownQueueError`.
   */
  put(change: ScheduleChange, expects: ScheduleState | undefined): Promise<boolean>
  /** Removes it if it has this revision; absent: whatever it has. Whether it did. */
  remove(name: string, expects?: string): Promise<boolean>
  get(name: string): Promise<StoredSchedule | undefined>
  /** By the bytes of their names, those behind `after`, at most `limit`. */
  list(after: string | undefined, limit: number): Promise<StoredSchedule[]>
  /** Enqueues and steps, both or neither. A tick that was in doubt may be sent again: it is `'lost'` if it was done. */
  tick(tick: ScheduleTick): Promise<TickAnswer>
  /**
   * What is due, for the lead. Whoever asks leads if nobody does or the lead has lapsed, and for `leadMs` from then on. So one
   * of many looks, and the others ask again when the lead would have lapsed.
   */
  due(worker: string, leadMs: number, limit: number): Promise<DueSchedules>
  /** The worker leads no more. */
  resign(worker: string): Promise<void>
  /**
   * Resolves once a schedule was written, and no later than after `forMs` or when `signal` aborts. Where a store cannot hear
   * of what other processes write, after at most 5 s.
   */
  changed(forMs: number, signal: AbortSignal): Promise<void>
}
