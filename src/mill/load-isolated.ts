/** Loading in a process that runs an isolated job: from the files of its worker, or of its task, to a mill that knows the task. */

import { ConfigError } from '../core/errors.js'
import { isTask } from '../core/task/any-task.js'
import { millrace } from './assemble.js'
import { type IsolatedFrom, markIsolated } from './isolated-from.js'
import { importAll, isMill } from './load-mill.js'
import type { Mill } from './mill.js'

/** Rejects where the files cannot be loaded, or nothing that they export runs the task. */
export async function loadIsolated(
  task: string,
  files: readonly string[],
  { descriptor, command }: IsolatedFrom,
): Promise<Mill> {
  markIsolated()
  const exported = (await importAll(files)).flatMap((exports) => Object.values(exports))
  const knows = ({ tasks }: Mill) => command !== undefined || [...tasks.values()].some((one) => isCalled(one, task))
  const mill = exported.filter(isMill).find(knows)
  if (mill !== undefined) return mill
  const tasks = [...new Set(exported.filter(isTask))]
  if (command !== undefined || tasks.some((one) => isCalled(one, task))) return millrace({ store: descriptor, tasks })
  const message = `must export task '${task}', or a mill that knows it`
  throw new ConfigError(files.join(', '), [{ path: 'exports', message }])
}

function isCalled({ name, aliases }: { name: string; aliases: readonly string[] }, task: string): boolean {
  return name === task || aliases.includes(task)
}
