/** The group of a draft: what its enqueue or its task says, checked. */

import { UnsupportedByStoreError } from '../../core/errors.js'
import type { AnyEnqueueOptions } from '../../core/task/enqueue-options.js'
import type { AnyOrderedTask } from '../../core/task/ordered-task.js'
import type { AnyPlainTask, AnyTask } from '../../core/task/task.js'
import { groupForm, groupNameOf } from '../../core/values/ids.js'
import { messageOf, shown } from '../../core/values/shown.js'
import { wrong } from './draft-content.js'
import type { DraftRules } from './job-draft.js'

/** The group of a plain job; undefined where it has none. Throws `InvalidJobError` or `UnsupportedByStoreError`. */
export function plainGroup(
  task: AnyPlainTask,
  input: unknown,
  options: AnyEnqueueOptions,
  rules: DraftRules,
): string | undefined {
  if (options.group !== undefined) return checkedGroup(task, options.group, rules)
  return task.group === undefined
    ? undefined
    : checkedGroup(
        task,
        answered(task, () => task.group!(input)),
        rules,
      )
}

/** The group of an ordered job: its task's to say by its id alone, so that all payloads of an id are of one. Throws as above. */
export function orderedGroup(task: AnyOrderedTask, id: string, rules: DraftRules): string | undefined {
  return task.group === undefined
    ? undefined
    : checkedGroup(
        task,
        answered(task, () => task.group!(id)),
        rules,
      )
}

function checkedGroup(task: AnyTask, given: unknown, { traits }: DraftRules): string | undefined {
  const group = groupNameOf(given)
  if (group === undefined) throw wrong(task, `group must be ${groupForm} ('' for none); got ${shown(given)}.`)
  if (group === '') return undefined
  if (traits.groups) return group
  throw new UnsupportedByStoreError(traits.name, 'groups', 'Leave `group` out, or use a store with groups.')
}

function answered(task: AnyTask, group: () => unknown): unknown {
  try {
    return group()
  } catch (error) {
    throw wrong(task, `its group() threw: ${messageOf(error)}`, { cause: error })
  }
}
