/** Merged options: the options of several configuration files, combined as if one file had them all. Pure. */

import { isTask } from '../../core/task/any-task.js'

/** The exported options of a file, not yet checked. */
export type GivenOptions = Readonly<Record<string, unknown>>

/** Options whose entries are merged by name. */
const namedMaps = new Set(['queues', 'schedules'])
/** Options that are usually imported: an undefined one is kept, so that the check refuses it. */
const imported = new Set(['store', 'codec', 'seal', 'middleware'])

/** Whether a value is plain options: neither a mill nor an instance of another class. */
export function isOptions(value: unknown): value is GivenOptions {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/**
 * Merges from left to right: a later file wins, key by key. `queues` and `schedules` are merged by name and then by
 * key, `worker` by key, `tasks` by the names of the tasks. `tasksElsewhere` is the union of all files. An undefined option
 * counts as left out.
 */
export function mergedOptions(parts: readonly GivenOptions[]): GivenOptions {
  const merged: Record<string, unknown> = {}
  for (const part of parts)
    for (const [option, value] of Object.entries(part))
      merged[option] = option in merged ? mergedOption(option, merged[option], value) : value
  return merged
}

function mergedOption(option: string, before: unknown, value: unknown): unknown {
  if (value === undefined && !imported.has(option)) return before
  if (option === 'worker') return byKey(before, value, given)
  if (namedMaps.has(option)) return byKey(before, value, (one, other) => byKey(one, other, given))
  if (!Array.isArray(before) || !Array.isArray(value)) return value
  if (option === 'tasks') return mergedTasks(before, value)
  return option === 'tasksElsewhere' ? [...new Set([...before, ...value])] : value
}

/** The later value, if there is one. */
function given(before: unknown, later: unknown): unknown {
  return later === undefined ? before : later
}

/** A value that is not an object replaces the one before; the check of the options reports the expected form. */
function byKey(before: unknown, value: unknown, merge: (before: unknown, value: unknown) => unknown): unknown {
  if (!isOptions(before) || !isOptions(value)) return value
  const both = Object.entries(value).map(([key, later]) => [key, key in before ? merge(before[key], later) : later])
  return { ...before, ...Object.fromEntries(both) }
}

/** A later task replaces the task of the same name. */
function mergedTasks(before: readonly unknown[], value: readonly unknown[]): unknown[] {
  const nameOf = (task: unknown) => (isTask(task) ? task.name : undefined)
  const later = new Map(value.filter(isTask).map((task) => [task.name, task]))
  const kept = before.map((task) => later.get(nameOf(task) ?? '') ?? task)
  const there = new Set(before.map(nameOf).filter((name) => name !== undefined))
  return [...kept, ...value.filter((task) => !there.has(nameOf(task) ?? ''))]
}
