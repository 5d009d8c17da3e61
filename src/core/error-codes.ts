/** The codes of the errors, and the check of an error by its code. */

import type {
  ClosedError,
  CodecError,
  ConfigConflictError,
  ConfigError,
  EnqueueManyError,
  InvalidArgumentError,
  InvalidJobError,
  JobCancelledError,
  JobDeadError,
  JobElsewhereError,
  JobRunningError,
  LeaseLostError,
  PackageBundledError,
  PayloadTooLargeError,
  ProcessDiedError,
  QueueDrainingError,
  QueueFullError,
  QueueMissingError,
  ResultNotKeptError,
  ResultTimeoutError,
  StoreCorruptError,
  StoreFullError,
  StoreRefusedError,
  StoreUnavailableError,
  StoreVersionError,
  ThrottleConflictError,
  TimeLimitError,
  UnknownQueueError,
  UnknownTaskError,
  UnrecoverableError,
  UnsupportedByStoreError,
  WorkerStoppedError,
} from './errors.js'

/** The errors of Millrace by their codes. Each type names the fields that the error has besides its message. */
export interface ErrorsByCode {
  readonly 'argument-invalid': InvalidArgumentError
  readonly closed: ClosedError
  readonly 'codec-failed': CodecError
  readonly 'config-conflict': ConfigConflictError
  readonly 'config-invalid': ConfigError
  readonly 'enqueue-many-refused': EnqueueManyError
  readonly 'job-cancelled': JobCancelledError
  readonly 'job-dead': JobDeadError
  readonly 'job-elsewhere': JobElsewhereError
  readonly 'job-invalid': InvalidJobError
  readonly 'job-running': JobRunningError
  readonly 'lease-lost': LeaseLostError
  readonly 'package-bundled': PackageBundledError
  readonly 'payload-too-large': PayloadTooLargeError
  readonly 'process-died': ProcessDiedError
  readonly 'queue-draining': QueueDrainingError
  readonly 'queue-full': QueueFullError
  readonly 'queue-missing': QueueMissingError
  readonly 'queue-unknown': UnknownQueueError
  readonly 'result-not-kept': ResultNotKeptError
  readonly 'result-timeout': ResultTimeoutError
  readonly 'store-corrupt': StoreCorruptError
  readonly 'store-full': StoreFullError
  readonly 'store-newer': StoreVersionError
  readonly 'store-refused': StoreRefusedError
  readonly 'store-unavailable': StoreUnavailableError
  readonly 'task-unknown': UnknownTaskError
  readonly 'throttle-conflict': ThrottleConflictError
  readonly 'time-limit-exceeded': TimeLimitError
  readonly unrecoverable: UnrecoverableError
  readonly 'unsupported-by-store': UnsupportedByStoreError
  readonly 'worker-stopped': WorkerStoppedError
}

/**
 * Checks whether an error is the Millrace error with this code; its own fields are then typed. The check compares
 * codes, not classes, because the error may come from another copy of the package.
 */
export function hasCode<Code extends keyof ErrorsByCode>(error: unknown, code: Code): error is ErrorsByCode[Code] {
  return typeof error === 'object' && error !== null && (error as { code?: unknown }).code === code
}
