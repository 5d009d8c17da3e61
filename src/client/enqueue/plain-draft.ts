/** The draft of a plain job. */

import { type InvalidJobError, UnsupportedByStoreError } from '../../core/errors.js'
import { isPriority, priorityForm } from '../../core/job.js'
import type { Queue } from '../../core/queue/queue.js'
import type { AnyEnqueueOptions } from '../../core/task/enqueue-options.js'
import type { AnyPlainTask } from '../../core/task/task.js'
import { isJobId, jobIdForm } from '../../core/values/ids.js'
import { shown } from '../../core/values/shown.js'
import { addContent, checkOptions, encoded, type JobInMaking, wrong } from './draft-content.js'
import { plainGroup } from './draft-group.js'
import type { DraftRules, JobDraft } from './job-draft.js'

const optionNames = new Set<string>(['id', 'delay', 'runAt', 'priority', 'meta', 'group', 'queue'])

/** The queue the job goes to, once all that can be said without its input is checked. */
export function checkedPlainQueue(
  task: AnyPlainTask,
  options: AnyEnqueueOptions,
  { registry, traits }: DraftRules,
): Queue {
  checkOptions(task, options, optionNames)
  const { id, priority } = options
  if (id !== undefined && !isJobId(id)) throw wrong(task, `id must be ${jobIdForm}; got ${shown(id)}.`)
  if (priority !== undefined && !isPriority(priority))
    throw wrong(task, `priority must be ${priorityForm}; got ${shown(priority)}.`)
  if (priority !== undefined && priority !== 0 && !traits.priority) {
    throw new UnsupportedByStoreError(traits.name, 'job priorities', 'Use a queue of its own for urgent jobs.')
  }
  const queue = registry.queue(options.queue ?? task.queue)
  if (queue.ordered) throw otherTasks(task, queue.name, registry.orderedTask(queue.name)?.name)
  return queue
}

function otherTasks(task: AnyPlainTask, queue: string, owner: string | undefined): InvalidJobError {
  const whose = owner === undefined ? 'and takes only jobs of an ordered task' : `and belongs to the task '${owner}'`
  return wrong(
    task,
    `queue '${queue}' is ordered ${whose}. Use another queue, or define this task by defineOrderedTask().`,
  )
}

export function plainDraft(
  task: AnyPlainTask,
  input: unknown,
  options: AnyEnqueueOptions,
  queue: string,
  rules: DraftRules,
): JobDraft {
  // Text, or refused by now.
  const id = options.id as string | undefined
  const job: JobInMaking = {
    id: id ?? rules.newId(),
    task: task.name,
    payload: encoded(rules, task, 'input', input),
    priority: options.priority ?? 0,
    // A store may remember ids that are never used again longer; this one may be, at once where it is not to be remembered.
    rememberMs: id === undefined ? 0 : Math.max(1, rules.idempotencyMs),
  }
  const group = plainGroup(task, input, options, rules)
  if (group !== undefined) job.group = group
  return { queue, bytes: addContent(job, task, options, rules), job, isIdNew: id === undefined }
}
