/** Filter flags: the options by which a command takes only some jobs, and the filter that they mean. */

import type { Command } from 'commander'
import type { JobFilter, ListFilter } from '../../../client/admin/job-filter.js'
import type { JobFields } from '../../../core/job/job-fields.js'
import { defined } from '../../../core/values/defined.js'
import type { Mill } from '../../../mill/mill.js'
import { namedTask } from '../../../mill/named-task.js'
import { eachFlag } from '../../flags.js'
import { UsageError } from '../../process/exit-code.js'
import { fieldValueIn } from './one-job-commands.js'

export interface FilterFlags {
  readonly group?: string
  readonly field?: readonly string[]
  readonly error?: string
  readonly text?: string
  readonly from?: string
  readonly to?: string
}

export function withFilter(command: Command): Command {
  return command
    .option('--group <group>', "only jobs of this group; '' for those without one")
    .option('--field <name=value>', 'only jobs with this value of a field; may be repeated', eachFlag)
    .option('--error <text>', 'only jobs with an error of this kind: ids and numbers in it may differ')
    .option('--text <text>', 'only jobs with this text in their id, task, group, fields or input')
    .option('--from <time>', 'only jobs enqueued at this time or later, ISO-8601 with a zone')
    .option('--to <time>', 'only jobs enqueued before this time')
}

export function listFilterIn({ group, field, error, text, from, to }: FilterFlags): ListFilter {
  return defined({ group, error, text, from, to, fields: field && fieldsIn(field) })
}

/** The filter of an action on a queue, which may be of one task too, by any of its names; undefined if no flag says one. */
export function filterIn(
  mill: Mill,
  queue: string,
  flags: FilterFlags & { readonly task?: string },
): JobFilter | undefined {
  const task = flags.task === undefined ? undefined : namedTask(mill, flags.task, queue)
  const filter = defined({ ...listFilterIn(flags), task })
  return Object.keys(filter).length === 0 ? undefined : filter
}

export function saysFilter({ task, ...flags }: FilterFlags & { readonly task?: string }): boolean {
  return task !== undefined || Object.keys(listFilterIn(flags)).length > 0
}

/** Throws `UsageError`. */
export function fieldsIn(given: readonly string[]): JobFields {
  return Object.fromEntries(
    given.map((field) => {
      const end = field.indexOf('=')
      if (end < 1) throw new UsageError(`--field takes name=value; got '${field}'.`)
      const text = field.slice(end + 1)
      // No field is null.
      return [field.slice(0, end), fieldValueIn(text) ?? text]
    }),
  )
}
