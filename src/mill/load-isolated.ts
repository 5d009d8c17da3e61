/** Loading for an isolated job: from the files of its worker or of its task to a mill that knows the task. */

import { ConfigError } from '../core/errors.js'
import { isTask } from '../core/task/any-task.js'
import { millrace } from './assemble.js'
import { environmentOptions } from './configuration/environment.js'
import { isOptions } from './configuration/merged-options.js'
import { type Exports, importAll } from './configuration/user-modules.js'
import { type IsolatedFrom, markIsolated } from './isolated-from.js'
import { type ConfigFile, isMill, optionsMill } from './load-mill.js'
import type { Mill } from './mill.js'
import { millOptionNames } from './options/mill-options.js'

/** Loads the mill. Rejects if the files cannot be loaded, or if nothing that they export runs the task. */
export async function loadIsolated(
  task: string,
  files: readonly string[],
  { descriptor, command }: IsolatedFrom,
): Promise<Mill> {
  markIsolated()
  const loaded = await importAll(files)
  const exported = loaded.flatMap(exportedBy)
  const knows = ({ tasks }: Mill) => command !== undefined || [...tasks.values()].some((one) => isCalled(one, task))
  const mill = exported.filter(isMill).find(knows)
  if (mill !== undefined) return mill
  const configs = files.flatMap((file, i) => configIn(file, loaded[i]!['default']))
  if (configs.length > 0) {
    const made = await optionsMill(configs, environmentOptions(process.env))
    if (knows(made)) return made
  }
  const tasks = [...new Set(exported.filter(isTask))]
  if (command !== undefined || tasks.some((one) => isCalled(one, task))) return millrace({ store: descriptor, tasks })
  const message = `must export task '${task}', or a mill that knows it`
  throw new ConfigError(files.join(', '), [{ path: 'exports', message }])
}

/** The exports of a module. If Node or a loader takes it for CommonJS, all of them are in its default export. */
function exportedBy(exports: Exports): unknown[] {
  const { default: whole } = exports
  const isWhole = typeof whole === 'object' && whole !== null && !isMill(whole) && !isTask(whole)
  return [...Object.values(exports), ...(isWhole ? Object.values(whole) : [])]
}

/** The options in the default export of a file, which the worker has checked. A module may export anything else. */
function configIn(file: string, exported: unknown): ConfigFile[] {
  const isConfig = isOptions(exported) && Object.keys(exported).every((option) => millOptionNames.has(option))
  return isConfig ? [{ file, options: exported }] : []
}

function isCalled({ name, aliases }: { name: string; aliases: readonly string[] }, task: string): boolean {
  return name === task || aliases.includes(task)
}
