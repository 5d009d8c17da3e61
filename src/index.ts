/** The public API: everything that users import from `millrace`. */

import './core/platform/node-version.js'

export type { JobPage, ListOptions, QueueAdmin, QueueLook } from './client/admin/queue-admin.js'
export type { LongActionOptions, StepProgress } from './client/admin/step-loop.js'
export type { ThrottleAdmin, ThrottleChange, ThrottleStatus } from './client/admin/throttle-admin.js'
export type { EnqueueResult } from './client/enqueue/client.js'
export type { JobHandle } from './client/jobs/job-handle.js'
export type { Popped, PopWait } from './client/throttled-queue/pops.js'
export type { ThrottledQueue } from './client/throttled-queue/throttled-queue.js'
export type { ThrottledQueueOptions } from './client/throttled-queue/throttled-queue-options.js'
export * from './core/errors.js'
export type { EventMap, EventName, JobRef } from './core/events.js'
export type { JobContext, JobRecord, JobState, Meta, PayloadRecord, Progress, RunningJob } from './core/job.js'
export type { Logger } from './core/logger.js'
export type { Exclusive, Keep, Merge, QueueOptions, ShardCandidate, ShardOrder } from './core/queue/queue.js'
export type { Throttle, ThrottleRule } from './core/queue/throttle.js'
export type { ThrottleOptions } from './core/queue/throttle-options.js'
export type { AnyTask, TaskInput, TaskResult } from './core/task/any-task.js'
export { type Backoff, exponential, kale, lowkiq } from './core/task/backoff.js'
export type { BatchContext, BatchJob } from './core/task/batch-context.js'
export type {
  AnyEnqueueOptions,
  EnqueueOptions,
  EnqueueOptionsOf,
  OrderedEnqueueOptions,
} from './core/task/enqueue-options.js'
export type { BatchRun, EnqueueItem, JobRun, Middleware, Run } from './core/task/middleware.js'
export {
  type AnyOrderedTask,
  type BatchHandler,
  defineOrderedTask,
  type ExhaustedPayload,
  type OrderedTask,
  type OrderedTaskOptions,
} from './core/task/ordered-task.js'
export { bury, cancel, type OutcomeValue, snooze, throttle } from './core/task/outcome.js'
export type { InputOf, OutputOf, Schema, SchemaIssue, SchemaResult } from './core/task/schema.js'
export { defineTask, type ExhaustedJob, type Handler, type Task, type TaskOptions } from './core/task/task.js'
export type { RetryOptions } from './core/task/task-definition.js'
export { type Codec, jsonCodec, type Payload } from './core/values/codec.js'
export type { Duration } from './core/values/duration.js'
export { millrace } from './mill/assemble.js'
export type { ListenerOptions } from './mill/listener-options.js'
export type { Mill } from './mill/mill.js'
export type { MillOptions } from './mill/mill-options.js'
export type { StoreDescriptor } from './mill/store-source.js'
export type { WorkerOptions } from './mill/worker-options.js'
export type { SelectorName } from './selectors/named-selectors.js'
export type { Candidate, Selector } from './selectors/selector.js'
export type { Where } from './stores/contract/job-records.js'
export type { Depth } from './stores/contract/queue-depth.js'
export type { StoredQueue } from './stores/contract/queue-settings.js'
export type { ScoredPayload } from './stores/contract/scored-payload.js'
export type { Finding, Mended, Repair, StoreHealth } from './stores/contract/store-health.js'
export type { WorkerRecord } from './stores/contract/worker-registry.js'
export { type RedisStoreOptions, redisStore } from './stores/redis/redis-module.js'
export type { QueueListener } from './workers/listener/listener.js'
export type { ListenerClaim, RunPlace } from './workers/listener/listener-claim.js'
export type { ShardChoice, ShardRef, ShardsOf } from './workers/shards/shard-owners.js'
export type { Worker } from './workers/worker.js'
