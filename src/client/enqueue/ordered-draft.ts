/** The draft of an ordered job: one payload, and the id that it belongs to. */

import type { Queue } from '../../core/queue/queue.js'
import type { AnyEnqueueOptions } from '../../core/task/enqueue-options.js'
import type { AnyOrderedTask } from '../../core/task/ordered-task.js'
import { jobIdForm, orderedIdOf } from '../../core/values/ids.js'
import { messageOf, shown } from '../../core/values/shown.js'
import { addContent, checkOptions, encoded, type JobInMaking, wrong } from './draft-content.js'
import { orderedGroup } from './draft-group.js'
import type { DraftRules, JobDraft } from './job-draft.js'

const optionNames = new Set<string>(['id', 'score', 'delay', 'runAt', 'meta'])
const withQueue = new Set<string>([...optionNames, 'queue'])

/** The queue the job goes to, once all that can be said without its input is checked. */
export function checkedOrderedQueue(task: AnyOrderedTask, options: AnyEnqueueOptions, { registry }: DraftRules): Queue {
  // The queue of the task may be named, as plain tasks may have theirs named; it changes nothing.
  checkOptions(task, options, options?.queue === task.queue ? withQueue : optionNames)
  const queue = registry.queue(task.queue)
  if (!queue.ordered)
    throw wrong(
      task,
      `queue '${queue.name}' is not ordered in this mill. Add the task to 'tasks' in your configuration, or set \`ordered: true\` for the queue.`,
    )
  // A producer may have a definition of its own, without the handler.
  const owner = registry.orderedTask(queue.name)
  if (owner !== undefined && owner !== task && registry.find(task.name) !== owner)
    throw wrong(
      task,
      `queue '${queue.name}' belongs to the task '${owner.name}', and an ordered queue has one task. Give this one another queue.`,
    )
  return queue
}

export function orderedDraft(
  task: AnyOrderedTask,
  input: unknown,
  options: AnyEnqueueOptions,
  rules: DraftRules,
): JobDraft {
  const score = scoreOf(task, input, options)
  const job: JobInMaking = {
    id: idOf(task, input, options),
    task: task.name,
    payload: encoded(rules, task, 'input', input),
    priority: 0,
    rememberMs: 0,
  }
  if (score !== undefined) job.score = score
  const group = orderedGroup(task, job.id, rules)
  if (group !== undefined) job.group = group
  return { queue: task.queue, bytes: addContent(job, task, options, rules), job, isIdNew: false }
}

function idOf(task: AnyOrderedTask, input: unknown, options: AnyEnqueueOptions): string {
  if (options.id === undefined && task.id === undefined)
    throw wrong(
      task,
      'an ordered job needs an id, under which its payloads are gathered. Give one when you enqueue, as { id }, or define the task with id: (input) => ….',
    )
  const given = options.id === undefined ? answerOf(task, 'id', input) : options.id
  const id = orderedIdOf(given)
  if (id === undefined) throw wrong(task, `id must be ${jobIdForm}, or a finite number; got ${shown(given)}.`)
  return id
}

function scoreOf(task: AnyOrderedTask, input: unknown, options: AnyEnqueueOptions): number | undefined {
  if (options.score === undefined && task.score === undefined) return undefined
  const score: unknown = options.score === undefined ? answerOf(task, 'score', input) : options.score
  if (typeof score === 'number' && Number.isFinite(score)) return score
  throw wrong(task, `score must be a finite number; got ${shown(score)}.`)
}

/** What a function of the task's makes of the input. */
function answerOf(task: AnyOrderedTask, name: 'id' | 'score', input: unknown): unknown {
  try {
    return task[name]?.(input)
  } catch (error) {
    throw wrong(task, `its ${name}() threw: ${messageOf(error)}`, { cause: error })
  }
}
