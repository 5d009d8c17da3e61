/** `millrace()`: makes a mill from its options. */

import { ConfigError, hasCode } from '../core/errors.js'
import type { AnyTask } from '../core/task/any-task.js'
import { Mill } from './mill.js'
import {
  type CheckedOptions,
  type ContextOption,
  checkOptions,
  type MillOptions,
  type QueueNamesOf,
} from './options/mill-options.js'
import { storeMistakes, storeSource } from './store-source.js'

/**
 * Puts a mill together. Opens nothing: the store is opened at the first call. Throws `ConfigError` that lists every
 * mistake, or `UnsupportedByStoreError` for a feature that the store lacks.
 *
 * @example
 * const mill = millrace({ store: 'sqlite:jobs.db', tasks: [sendEmail] })
 * await mill.enqueue(sendEmail, { to: 'ada@example.com' })
 */
export function millrace<
  const Declared extends string = never,
  const Tasks extends readonly AnyTask[] = readonly [],
  Queues = unknown,
  Scheduled extends Readonly<Record<string, AnyTask>> = Readonly<Record<string, AnyTask>>,
>(
  options: MillOptions<Declared, Tasks, Queues, Scheduled> & ContextOption<Tasks>,
): Mill<QueueNamesOf<Declared, Tasks, Queues>> {
  const checked = checkedWithStore(options)
  const source = storeSource(options.store, { namespace: checked.namespace, replicas: checked.replicas })
  // The check runs twice: mistakes in the options come before those in the store, and both before anything is opened.
  return new Mill(source.traits === undefined ? checked : checkOptions(options, source.traits), source)
}

/** The checked options. Throws `ConfigError` for mistakes in the options, together with those in the store. */
function checkedWithStore(options: MillOptions): CheckedOptions {
  try {
    return checkOptions(options, undefined)
  } catch (error) {
    if (!hasCode(error, 'config-invalid')) throw error
    const isTold = error.issues.some(({ path }) => path === 'store' || path === '(options)')
    throw isTold ? error : new ConfigError(error.what, [...error.issues, ...storeMistakes(options.store)])
  }
}
