/**
 * Commands: calls to a store as plain data. A claim is named by its number among all claims of the run, so that a
 * command means the same on every store and in every replay.
 */

import type { FieldChanges } from '../../core/job/job-fields.js'
import type { QueueLimits } from '../../core/queue/queue-limits.js'
import type { Throttle, ThrottleRule } from '../../core/queue/throttle.js'
import type { Claimer, ClaimFrom } from '../../stores/contract/claim.js'
import type { Beat } from '../../stores/contract/job-beat.js'
import type { JobKey, JobSelection, ListQuery, NewPlace } from '../../stores/contract/job-records.js'
import type { EnqueueCall, NewJob } from '../../stores/contract/new-job.js'
import type { QueueSettings } from '../../stores/contract/queue-settings.js'
import type { ScheduleChange } from '../../stores/contract/schedules.js'
import type { ClaimKey, SettleItem } from '../../stores/contract/settle.js'
import type { EntryKind, NewSignal, NewStep } from '../../stores/contract/steps.js'
import type { WorkerRecord } from '../../stores/contract/worker-registry.js'

/** The end of a claim, without its name. */
export type Settlement = SettleItem extends infer Item
  ? Item extends ClaimKey
    ? Omit<Item, keyof ClaimKey>
    : never
  : never

/** A claim of this run: the `back`-th before the latest. `stale`: with a fence that is too small. */
export interface ClaimRef {
  readonly back: number
  readonly stale: boolean
}

/** Has, in place of an absolute `runAt`, the distance from the store's now, which may be negative. */
export type PlannedJob = Omit<NewJob, 'runAt'> & { readonly runInMs?: number }
export type PlannedCall = Omit<EnqueueCall, 'jobs'> & { readonly jobs: readonly PlannedJob[] }

/** Has, in place of an absolute `nextAt`, the distance from the store's now; absent: it is paused. */
export type PlannedSchedule = Omit<ScheduleChange, 'nextAt' | 'paused'> & { readonly nextInMs?: number }

/** The schedule on which a command is based: as it is stored, or as this run read it some time ago. */
export type ScheduleIdea = 'stored' | 'read'

export type ScheduleCommand =
  | { readonly verb: 'put schedule'; readonly schedule: PlannedSchedule; readonly by: ScheduleIdea }
  /** Absent: any stored revision. */
  | { readonly verb: 'remove schedule'; readonly name: string; readonly by?: ScheduleIdea }
  | {
      readonly verb: 'tick'
      readonly name: string
      readonly callId: string
      readonly by: ScheduleIdea
      /** The number of jobs. */
      readonly count: number
      /** Whether it is skipped while the last job exists. */
      readonly heedsLast: boolean
      /** Whether no tick follows. */
      readonly isLast: boolean
      readonly passes: boolean
    }
  | { readonly verb: 'due'; readonly worker: string; readonly limit: number }
  | { readonly verb: 'resign'; readonly worker: string }
  | { readonly verb: 'schedules'; readonly limit: number; readonly after?: string }

export type StepCommand =
  | { readonly verb: 'keep'; readonly claim: ClaimRef; readonly step: NewStep; readonly leaseMs: number }
  | { readonly verb: 'signal'; readonly job: JobKey; readonly signal: NewSignal }
  | { readonly verb: 'forget'; readonly job: JobKey; readonly name: string; readonly of: EntryKind }
  | { readonly verb: 'steps'; readonly job: JobKey }
  | { readonly verb: 'sweep waits'; readonly worker: string }

export type Command = { readonly handle: number } & (
  | ScheduleCommand
  | StepCommand
  | { readonly verb: 'open'; readonly queues: readonly QueueSettings[]; readonly follows?: boolean }
  | { readonly verb: 'setLimits'; readonly queue: string; readonly change: QueueLimits }
  | { readonly verb: 'enqueue'; readonly calls: readonly PlannedCall[] }
  | { readonly verb: 'graph'; readonly calls: readonly PlannedCall[] }
  /** The sizes of the sets are what they have, or wrong by this. */
  | { readonly verb: 'seal'; readonly join: JobKey; readonly wrong: -1 | 0 }
  /** The sets of these joins, and all ends in them. */
  | { readonly verb: 'joins'; readonly keys: readonly JobKey[] }
  | { readonly verb: 'sweep'; readonly worker: string }
  | { readonly verb: 'claim'; readonly from: readonly ClaimFrom[]; readonly by: Claimer }
  | { readonly verb: 'settle'; readonly items: readonly { readonly claim: ClaimRef; readonly end: Settlement }[] }
  | {
      readonly verb: 'extend'
      readonly items: readonly { readonly claim: ClaimRef; readonly leaseMs: number; readonly beat?: Beat }[]
    }
  | { readonly verb: 'advance'; readonly ms: number }
  | { readonly verb: 'reopen' }
  /** The store itself is restarted. */
  | { readonly verb: 'restart' }
  | { readonly verb: 'throttle'; readonly queue: string; readonly group?: string }
  | { readonly verb: 'holds'; readonly queue: string; readonly groups?: readonly string[]; readonly limit: number }
  | { readonly verb: 'release'; readonly queue: string; readonly group?: string }
  | { readonly verb: 'pause group' | 'resume group'; readonly queue: string; readonly group: string }
  | {
      readonly verb: 'set throttle'
      readonly queue: string
      readonly rules: readonly ThrottleRule[]
      readonly by?: Throttle['by']
    }
  /** Absent: the group has no rules of its own. */
  | {
      readonly verb: 'set rate'
      readonly queue: string
      readonly group: string
      readonly rules?: readonly ThrottleRule[]
    }
  | { readonly verb: 'rates'; readonly queue: string; readonly limit: number }
  | { readonly verb: 'depth'; readonly queues: readonly string[] }
  | { readonly verb: 'queues' | 'workers' }
  | { readonly verb: 'get' | 'get dead'; readonly queue: string; readonly id: string }
  | { readonly verb: 'set fields'; readonly queue: string; readonly id: string; readonly fields: FieldChanges }
  | { readonly verb: 'list'; readonly queue: string; readonly query: ListQuery }
  | { readonly verb: 'list dead'; readonly queue: string; readonly query: { by: 'id' | 'time'; limit: number } }
  | { readonly verb: 'cancel'; readonly queue: string; readonly where: JobSelection; readonly reason?: string }
  | {
      readonly verb: 'delete' | 'runNow' | 'bury' | 'revive' | 'delete dead'
      readonly queue: string
      readonly where: JobSelection
    }
  | {
      readonly verb: 'reschedule'
      readonly queue: string
      readonly ids: readonly string[]
      readonly to: Omit<NewPlace, 'runAt'> & { readonly runInMs?: number }
    }
  | {
      readonly verb: 'fail'
      readonly queue: string
      readonly id: string
      readonly how: { readonly delayMs: number; readonly last?: boolean; readonly reason: string }
    }
  /** Deaths of jobs of this task are reported, at most this many. */
  | { readonly verb: 'report'; readonly queue: string; readonly task: string; readonly most: number }
  | { readonly verb: 'pause' | 'resume' | 'drain' | 'clear'; readonly queue: string }
  /** To its end, or until a running job must end first. */
  | { readonly verb: 'reshard'; readonly queue: string; readonly shards: number }
  /** To its end. */
  | { readonly verb: 'move'; readonly from: string; readonly to: string }
  | {
      readonly verb: 'expect'
      readonly jobs: readonly { readonly queue: string; readonly id: string }[]
      readonly by: string
      readonly forMs: number
    }
  | { readonly verb: 'watch'; readonly jobs: readonly { readonly queue: string; readonly id: string }[] }
  | { readonly verb: 'beat'; readonly worker: WorkerRecord; readonly ttlMs: number }
  | { readonly verb: 'remove worker'; readonly id: string }
  | { readonly verb: 'held'; readonly worker: string }
  /** `worker`: the supposed holder of the claims; absent: the worker that made the first of them. */
  | { readonly verb: 'gone'; readonly claims: readonly ClaimRef[]; readonly worker?: string }
  | { readonly verb: 'adopt'; readonly claim: ClaimRef; readonly worker?: string; readonly to: string }
)
