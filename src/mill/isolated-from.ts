/** The start data of isolated jobs: what their processes need to find the task and the store. */

import { fileURLToPath } from 'node:url'
import { ConfigError, type ConfigIssue, UnsupportedByStoreError } from '../core/errors.js'
import { Registry } from '../core/registry.js'
import type { AnyTask } from '../core/task/any-task.js'
import type { StoreTraits } from '../stores/contract/store.js'
import { type CommandLine, commandTask } from '../workers/isolated/command-task.js'
import type { CheckedOptions } from './options/mill-options.js'
import type { StoreAccess, StoreDescriptor, StoreSource } from './store-source.js'

export interface IsolatedFrom {
  readonly descriptor: StoreDescriptor
  readonly access: StoreAccess
  /** The modules of the worker, in the order in which it loaded them; empty: each task names its own. */
  readonly modules: readonly string[]
  /** The worker's packing, which the process must match. It has its keys from its own configuration. */
  readonly packing: string
  /** The command that runs for every job, instead of a task. */
  readonly command: CommandLine | undefined
}

/** The start data. Throws if a process could not get it. */
export function isolatedFrom(
  registry: Registry,
  packing: string,
  source: StoreSource,
  modules: readonly string[],
  command: CommandLine | undefined,
): IsolatedFrom | undefined {
  const tasks = [...registry.tasks.values()].filter(isIsolated)
  if (tasks.length === 0 && command === undefined) return undefined
  const issues = modules.length > 0 || command !== undefined ? [] : tasks.flatMap(lost)
  if (issues.length > 0) throw new ConfigError('the worker', issues)
  const { descriptor, access, traits } = source
  if (traits !== undefined) refuseUnshared(traits)
  if (descriptor === undefined)
    throw new ConfigError('the worker', [
      { path: 'store', message: 'must be a descriptor if tasks are isolated, because other processes open it' },
    ])
  return { descriptor, access, modules, packing, command }
}

/** Throws if another process cannot open the store. */
export function refuseUnshared({ name, shared, beatsFromThread }: StoreTraits): void {
  if (shared && beatsFromThread) return
  const remedy = "Leave `isolate` out, or use a store that processes share, such as 'sqlite:.millrace/jobs.db'."
  throw new UnsupportedByStoreError(name, 'isolated tasks', remedy)
}

/** The same start data for a command that runs for every job, instead of tasks. */
export function withCommand(
  { registry, namespace }: Pick<CheckedOptions, 'registry' | 'namespace'>,
  command: CommandLine | undefined,
  secrets: readonly string[] = [],
): Registry {
  if (command === undefined) return registry
  const task = commandTask(command, Object.keys(process.env), namespace, secrets)
  return new Registry([], [...registry.queues.values()], task)
}

/** The files that a process loads to find the task. */
export function filesFor(module: string | undefined, { modules }: IsolatedFrom): readonly string[] {
  return modules.length > 0 || module === undefined ? modules : [fileURLToPath(module)]
}

function isIsolated(task: AnyTask): boolean {
  return task.kind === 'plain' && task.isolation !== undefined
}

function lost(task: AnyTask): ConfigIssue[] {
  if (task.kind !== 'plain' || task.isolation?.module !== undefined) return []
  const message = 'must be `import.meta.url`, so that its processes find it; or start the worker by `millrace work`'
  return [{ path: `tasks.${task.name}.module`, message }]
}

/** A global symbol, so that every copy of the library in this process knows it. */
const mark = Symbol.for('millrace.isolated')

/** Marks this process as one that runs an isolated job. */
export function markIsolated(): void {
  Object.assign(globalThis, { [mark]: true })
}

/**
 * Throws in a process that runs an isolated job: a module that starts a worker when it is loaded would start one in
 * each such process.
 */
export function refuseIsolated(): void {
  if (!(mark in globalThis)) return
  throw new ConfigError('the worker', [
    {
      path: 'module',
      message:
        'must be started elsewhere: this process runs one isolated job. Move the task to a module that starts nothing when it is loaded',
    },
  ])
}
