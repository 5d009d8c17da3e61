/** The public API: everything that users import from `millrace`. */

import './core/platform/node-version.js'

export type { JobFilter } from './client/admin/job-filter.js'
export type { LimitsAdmin } from './client/admin/limits-admin.js'
export type { LiveFeed, LiveOptions } from './client/admin/live-feed.js'
export type { QueueAdmin } from './client/admin/queue-admin.js'
export type { HistoryOptions, QueueHistory } from './client/admin/queue-history.js'
export type { JobPage, ListOptions, QueueLook } from './client/admin/queue-looks.js'
export type {
  QueueHold,
  QueueHolds,
  RateChoice,
  ThrottleAdmin,
  ThrottleChange,
  ThrottleStatus,
} from './client/admin/throttle-admin.js'
export type { EnqueueResult } from './client/enqueue/client.js'
export type { ScheduleAdmin, SchedulePage } from './client/schedules/schedule-admin.js'
export type { ScheduleRecord } from './client/schedules/schedule-view.js'
export { type ErrorsByCode, hasCode, isMillraceError, MillraceError, UnrecoverableError } from './core/errors.js'
export type { EventMap, EventName, JobRef } from './core/events.js'
export type {
  FateCounts,
  FollowOptions,
  JobEvent,
  JobHandle,
  JobHold,
  JobMeta,
  JobRecord,
  JobState,
  JoinPlace,
  JoinProgress,
  JoinSetProgress,
  PayloadRecord,
  Progress,
  RunningJob,
} from './core/job/job.js'
export type { JobFailure } from './core/job/job-failures.js'
export type { FieldChanges, FieldWriter, JobFields } from './core/job/job-fields.js'
export type { TraceContext } from './core/job/job-origin.js'
export type { WaitCause, WaitReason } from './core/job/wait-reason.js'
export type { LiveEvent } from './core/live-event.js'
export type { Logger } from './core/logger.js'
export type { Queue, QueueOptions, ShardCandidate } from './core/queue/queue.js'
export type { LimitChange, MaxRunning, StandingLimits } from './core/queue/queue-limits.js'
export type { OwnRates, Throttle, ThrottleRule } from './core/queue/throttle.js'
export type { ThrottleOptions } from './core/queue/throttle-options.js'
export type { ScheduleOptions } from './core/schedule/schedule-options.js'
export type { AnyTask } from './core/task/any-task.js'
export { type Backoff, exponential, polynomial } from './core/task/backoff.js'
export type {
  BatchContext,
  JobContext,
  JoinContext,
  OrderedContext,
  OrderedJob,
  StepCall,
} from './core/task/contexts.js'
export type { Death, DeathTask } from './core/task/death.js'
export type { EnqueueInOptions, SqliteDatabase } from './core/task/enqueue-in.js'
export type {
  AfterOf,
  EnqueueOptions,
  EnqueueOptionsOf,
  JoinEnqueueOptions,
  OrderedEnqueueOptions,
} from './core/task/enqueue-options.js'
export type { Flow, FlowAfter, FlowHandles, FlowJob, FlowJobs, FlowJoinOptions } from './core/task/flow.js'
export {
  type Joined,
  type JoinedMany,
  type JoinSets,
  type ManyMembers,
  many,
  type OneMember,
  type SetOptions,
  type Settled,
} from './core/task/join-sets.js'
export type {
  BatchRun,
  EndAnswer,
  EnqueueItem,
  JobRun,
  Middleware,
  OrderedRun,
  RunEnd,
  TaskRun,
} from './core/task/middleware.js'
export {
  type AnyOrderedTask,
  defineOrderedTask,
  type ExhaustedPayload,
  type OrderedHandler,
  type OrderedTask,
  type OrderedTaskOptions,
} from './core/task/ordered-task.js'
export type { HoldOptions, HoldTime } from './core/task/outcome.js'
export { bury, cancel, hold, type OutcomeValue, snooze } from './core/task/outcome.js'
export type { Schema } from './core/task/schema.js'
export { type AnySignal, type DefinedSignal, defineSignal, type SignalData } from './core/task/signal.js'
export type { BatchHandler, BatchOptions } from './core/task/task.js'
export {
  type BatchTask,
  type BatchTaskOptions,
  defineTask,
  type ExhaustedJob,
  type Handler,
  type JoinHandler,
  type JoinTask,
  type JoinTaskOptions,
  type Task,
  type TaskOptions,
} from './core/task/task.js'
export type { HandleOf, RetryOptions, TaskInput, TaskResult } from './core/task/task-definition.js'
export { type Codec, jsonCodec, type Payload } from './core/values/codec.js'
export type { Duration } from './core/values/duration.js'
export { idOf } from './core/values/ids.js'
export type { Mill } from './mill/mill.js'
export { millrace } from './mill/millrace.js'
export type { ListenerOptions } from './mill/options/listener-options.js'
export type { MillOptions } from './mill/options/mill-options.js'
export type { WorkerOptions } from './mill/options/worker-options.js'
export type { StoreDescriptor } from './mill/store-source.js'
export type { SelectorName } from './selectors/named-selectors.js'
export type { Candidate, Selector } from './selectors/selector.js'
export type { JobSelection } from './stores/contract/job-records.js'
export type { ScoredPayload } from './stores/contract/new-job.js'
export type { ProvisionedQueue } from './stores/contract/provision.js'
export type { QueueDepth } from './stores/contract/queue-depth.js'
export type { StoredQueue } from './stores/contract/queue-settings.js'
export type { Store, StoreTraits } from './stores/contract/store.js'
export type { FsckFinding, FsckRepair, Repair, StoreHealth } from './stores/contract/store-health.js'
export type { GroupRate, GroupRates } from './stores/contract/throttles.js'
export type { SeenWorker, WorkerRecord } from './stores/contract/worker-registry.js'
export { type PostgresStoreOptions, postgresStore } from './stores/postgres/postgres-module.js'
export { type RedisStoreOptions, redisStore } from './stores/redis/redis-module.js'
export { type SqsStoreOptions, sqsStore } from './stores/sqs/sqs-module.js'
export type { ShardChoice } from './workers/claims/shard-owners.js'
export type { QueueListener } from './workers/listener/listener.js'
export type { ListenerClaim } from './workers/listener/listener-claim.js'
export type { PoppedJob } from './workers/pops.js'
export type { ThrottledQueue, ThrottledQueueOptions } from './workers/throttled-queue.js'
export type { Worker } from './workers/worker.js'
export type { WorkerStatus } from './workers/worker-status.js'
