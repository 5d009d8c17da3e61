/** The issues of the schedules of a configuration: tasks that are not known, and jobs that could not be enqueued. */

import { DraftWarnings } from '../../client/enqueue/draft-warnings.js'
import type { DraftRules } from '../../client/enqueue/job-draft.js'
import { draftMistake } from '../../client/schedules/scheduled-job.js'
import { ConfigError, type ConfigIssue } from '../../core/errors.js'
import { Events } from '../../core/events.js'
import type { Registry } from '../../core/registry.js'
import type { CheckedSchedule } from '../../core/schedule/schedule-options.js'

/** Mistakes in the schedules: their tasks must be known. */
export function scheduleIssues(
  schedules: ReadonlyMap<string, CheckedSchedule> | undefined,
  registry: Registry,
  tasksElsewhere: readonly string[],
): ConfigIssue[] {
  return [...(schedules ?? [])].flatMap(([name, { task }]) =>
    registry.find(task.name) !== undefined || tasksElsewhere.includes(task.name)
      ? []
      : [
          {
            path: `schedules.${name}.task`,
            message: `is the task '${task.name}', which is not under \`tasks\`: add it there, or its name to \`tasksElsewhere\` if only other workers run it`,
          },
        ],
  )
}

/**
 * Throws `ConfigError` for schedules whose jobs could not be enqueued, with every mistake. What only an asynchronous
 * schema knows is refused when a worker starts.
 */
export function refuseScheduledJobs(
  schedules: ReadonlyMap<string, CheckedSchedule>,
  rules: Omit<DraftRules, 'warnings' | 'newId'>,
): void {
  // Warnings are for those who write them to the store.
  const checking = { ...rules, warnings: new DraftWarnings(new Events()), newId: () => 'checked' }
  const issues = [...schedules].flatMap(([name, schedule]): ConfigIssue[] => {
    const message = draftMistake(name, schedule, checking)
    return message === undefined ? [] : [{ path: `schedules.${name}`, message }]
  })
  if (issues.length > 0) throw new ConfigError('the configuration', issues)
}
