/**
 * Schedules: the facet of a store that keeps schedules and enqueues the jobs of their ticks. The store knows no
 * calendar: the process that writes or ticks a schedule computes the next tick (`core/schedule/`); the store compares
 * and steps.
 */

import type { OnMissed, Overlap } from '../../core/schedule/due-ticks.js'
import type { ScheduleRule } from '../../core/schedule/schedule-rule.js'
import type { Enqueued, NewJob } from './new-job.js'

/**
 * The job that each tick enqueues. An ordered job has its own id; others are named by their tick
 * (`rules/schedule-record`).
 */
type ScheduledJob = Omit<NewJob, 'id' | 'runAt'> & { readonly id?: string }

/** The definition of a schedule: complete, so that any process can tick it, whatever its own code declares. */
export interface ScheduleDefinition {
  readonly name: string
  /** The name of an open queue. A schedule may change its queue. */
  readonly queue: string
  readonly rule: ScheduleRule
  readonly onMissed: OnMissed
  readonly overlap: Overlap
  readonly jitterMs: number
  /**
   * The name of the configuration that declares it, which removes it once it no longer does. Absent: it was set at run
   * time.
   */
  readonly declaredBy?: string
  readonly job: ScheduledJob
}

/** A requested change of a schedule. */
export interface ScheduleChange {
  readonly definition: ScheduleDefinition
  /** A name for this change, different from every other change of its writer. */
  readonly revision: string
  readonly paused: boolean
  /** Absent: it does not tick. */
  readonly nextAt?: number
}

/** The position of a schedule. */
export type ScheduleState = Pick<ScheduleChange, 'revision' | 'nextAt'>

export interface StoredSchedule extends ScheduleChange {
  /**
   * The number of shards over which its jobs are spread; 1 for a schedule of an ordered queue, whose job has one id.
   */
  readonly shards: number
  /** The instant of its last tick, whether or not that enqueued anything. */
  readonly lastAt?: number
  /** The job that it enqueued last, by a tick or on request. */
  readonly lastId?: string
  /** Jobs enqueued, and ticks left out because the job before still existed or because nobody ticked in time. */
  readonly ticked: number
  readonly skipped: number
  readonly missed: number
  readonly createdAt: number
  readonly updatedAt: number
}

/** One step of a schedule, from the due tick to the next one. */
export interface ScheduleTick {
  readonly name: string
  readonly queue: string
  /**
   * The revision that the caller read. The step happens only if the schedule still has it and `dueAt` is its next tick.
   */
  readonly revision: string
  readonly dueAt?: number
  /** Absent: no tick follows. The same as `dueAt` if the job is enqueued out of turn. */
  readonly nextAt?: number
  /** The last tick that this step passes; absent if it passes none. */
  readonly lastAt?: number
  /** As in an enqueue. */
  readonly callId: string
  /** They belong to the shard of the schedule. None: the step passes ticks and enqueues nothing. */
  readonly jobs: readonly NewJob[]
  /**
   * Enqueues nothing while the job with this id waits or runs in `queue`. The store may overlook the job if it is in
   * another shard.
   */
  readonly unless?: string
  /** The number of ticks left out, to be counted. */
  readonly skips: number
  readonly misses: number
}

/**
 * `'lost'`: the schedule has stepped on, was changed or is gone; nothing happened. `'skipped'`: it stepped and enqueued
 * nothing, as the job of `unless` exists. `'full'`, `'draining'`: its queue takes no jobs; nothing happened, and the
 * tick is still due.
 */
export type TickAnswer =
  | { readonly outcome: 'ticked'; readonly enqueued: readonly Enqueued[] }
  | { readonly outcome: 'skipped' | 'lost' | 'full' | 'draining' }

export interface DueSchedules {
  readonly now: number
  /**
   * Names what the store holds now: the same to all who ask, for as long as the store forgets nothing. A store that was
   * emptied, or was restarted and kept nothing, has another one.
   */
  readonly origin: string
  /** Whether the caller leads. If not, the answer holds nothing else about schedules. */
  readonly isLead: boolean
  /** Ms until the lead lapses: the caller's, or the present lead's. */
  readonly leadMs: number
  /** The schedules whose next tick is not after `now`, earliest first, at most `limit`. */
  readonly due: readonly StoredSchedule[]
  /** The earliest tick of the other schedules. */
  readonly nextAt?: number
}

export interface Schedules {
  /**
   * Writes a schedule if its stored revision and next tick equal `expects`: a writer that read it before a tick must
   * not undo the tick. `expects` absent: writes only if there is none. Its counts stay. Resolves with true, also if
   * this change is already stored; otherwise with false, and nothing changed. Throws `UnknownQueueError`.
   */
  put(change: ScheduleChange, expects: ScheduleState | undefined): Promise<boolean>
  /** Removes the schedule if it has this revision; `expects` absent: any revision. Resolves with whether it did. */
  remove(name: string, expects?: string): Promise<boolean>
  get(name: string): Promise<StoredSchedule | undefined>
  /** Lists schedules by the bytes of their names: those after `after`, at most `limit`. */
  list(after: string | undefined, limit: number): Promise<StoredSchedule[]>
  /** Enqueues and steps, both or neither. A tick in doubt may be sent again: it is `'lost'` if it was done. */
  tick(tick: ScheduleTick): Promise<TickAnswer>
  /**
   * Lists due schedules for the lead. The caller becomes the lead, for `leadMs` from now, if nobody leads or the lead
   * has lapsed. So one of many processes looks; the others ask again when the lead would lapse.
   */
  due(worker: string, leadMs: number, limit: number): Promise<DueSchedules>
  /** Ends the lead of this worker. */
  resign(worker: string): Promise<void>
  /**
   * Resolves once a schedule was written, and at the latest after `forMs` or when `signal` aborts. A store that cannot
   * hear of other processes' writes resolves after at most 5 s.
   */
  changed(forMs: number, signal: AbortSignal): Promise<void>
}
