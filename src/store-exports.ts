/**
 * `millrace/store`: everything that the author of a store needs: the contract's types, the errors that a store throws,
 * and the rules that all stores share.
 */

export {
  ClosedError,
  ConfigConflictError,
  InvalidArgumentError,
  QueueMissingError,
  StoreCorruptError,
  StoreFullError,
  StoreRefusedError,
  StoreUnavailableError,
  StoreVersionError,
  ThrottleConflictError,
  UnknownQueueError,
  UnsupportedByStoreError,
} from './core/errors.js'
export type { OnMissed, Overlap } from './core/schedule/due-ticks.js'
export type { ScheduleRule } from './core/schedule/schedule-rule.js'
export * from './stores/contract/claim.js'
export * from './stores/contract/damage.js'
export * from './stores/contract/history.js'
export * from './stores/contract/job-beat.js'
export * from './stores/contract/job-records.js'
export * from './stores/contract/live-messages.js'
export * from './stores/contract/new-job.js'
export * from './stores/contract/provision.js'
export * from './stores/contract/queue-depth.js'
export * from './stores/contract/queue-settings.js'
export * from './stores/contract/schedules.js'
export * from './stores/contract/settle.js'
export type * from './stores/contract/steps.js'
export * from './stores/contract/store.js'
export * from './stores/contract/store-health.js'
export * from './stores/contract/throttles.js'
export * from './stores/contract/transactions.js'
export * from './stores/contract/worker-registry.js'
export * from './stores/rules/bounds.js'
export * from './stores/rules/byte-order.js'
export * from './stores/rules/claim-end.js'
export * from './stores/rules/claim-waits.js'
export * from './stores/rules/claim-weight.js'
export * from './stores/rules/fair-share.js'
export * from './stores/rules/full-traits.js'
export * from './stores/rules/history-slots.js'
export * from './stores/rules/listing-cursor.js'
export * from './stores/rules/payloads.js'
export * from './stores/rules/queue-counts.js'
export * from './stores/rules/queue-form.js'
export * from './stores/rules/schedule-record.js'
export * from './stores/rules/sequence.js'
export * from './stores/rules/throttle/grid.js'
export * from './stores/rules/throttle/own-rates.js'
export * from './stores/rules/throttle/start-log.js'
export * from './stores/rules/throttle/throttle-counter.js'
export * from './stores/rules/throttle/throttle-recovery.js'
export * from './stores/rules/wake-lead.js'
