/** The environment: the mill options in `MILLRACE_*` variables. They win over configuration files. */

import { ConfigError, type ConfigIssue } from '../../core/errors.js'
import { describe } from '../../core/messages/describe.js'
import { isQueueName, queueNameForm } from '../../core/values/ids.js'
import type { Mill } from '../mill.js'
import { storeMistakes, storeSource } from '../store-source.js'

export type Environment = Readonly<Record<string, string | undefined>>

export interface EnvironmentOptions {
  readonly store?: string
  readonly namespace?: string
}

/**
 * The options of the environment. An empty variable counts as not set. Throws `ConfigError` that names each wrong
 * variable.
 */
export function environmentOptions(env: Environment): EnvironmentOptions {
  const { MILLRACE_STORE: store, MILLRACE_NAMESPACE: namespace } = env
  const issues = [
    ...(store ? storeMistakes(store).map(({ message }) => ({ path: 'MILLRACE_STORE', message })) : []),
    ...(namespace ? namespaceMistakes(namespace) : []),
  ]
  if (issues.length > 0) throw new ConfigError('the environment', issues)
  return { ...(store && { store }), ...(namespace && { namespace }) }
}

function namespaceMistakes(namespace: string): ConfigIssue[] {
  if (isQueueName(namespace)) return []
  return [{ path: 'MILLRACE_NAMESPACE', message: `must be ${queueNameForm}; got ${describe(namespace)}` }]
}

/**
 * Refuses an environment that contradicts a ready mill. A mill that a file exports cannot change: other programs import
 * it, and would use another store. Throws `ConfigError`.
 */
export function refuseUnheard(file: string, mill: Mill, { store, namespace }: EnvironmentOptions): void {
  const unheard = (variable: string, option: string, is: string): ConfigIssue => ({
    path: option,
    message: `is '${is}' in the mill that this file exports, and ${variable} says otherwise. Write \`${option}: process.env.${variable} ?? '${is}'\` there, or export the options instead of a mill, or unset ${variable}`,
  })
  const issues = [
    ...(store !== undefined && storeSource(store).text !== mill.store.text
      ? [unheard('MILLRACE_STORE', 'store', mill.store.text)]
      : []),
    ...(namespace !== undefined && namespace !== mill.namespace
      ? [unheard('MILLRACE_NAMESPACE', 'namespace', mill.namespace)]
      : []),
  ]
  if (issues.length > 0) throw new ConfigError(file, issues)
}
