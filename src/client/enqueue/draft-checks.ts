/**
 * The checks of a new job that need no input: its task, its options and its queue. They come first, so that no schema runs for
 * a job that is refused.
 */

import { InvalidJobError, UnknownTaskError, UnsupportedByStoreError } from '../../core/errors.js'
import { isPriority, priorityForm } from '../../core/job/job.js'
import { newFieldsMistake } from '../../core/job/job-fields.js'
import { originKey } from '../../core/job/job-origin.js'
import { describe } from '../../core/messages/describe.js'
import { hintFor } from '../../core/messages/foreign-words.js'
import type { Queue } from '../../core/queue/queue.js'
import type { Registry } from '../../core/registry.js'
import { type AnyTask, isRunElsewhere } from '../../core/task/any-task.js'
import type { AnyEnqueueOptions } from '../../core/task/enqueue-options.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import type { AnyOrderedTask } from '../../core/task/ordered-task.js'
import type { AnyPlainTask } from '../../core/task/task.js'
import { formatDuration } from '../../core/values/duration.js'
import { idMistake, isJobId } from '../../core/values/ids.js'
import type { StoreTraits } from '../../stores/contract/store.js'

/** The parts of the mill that a job is checked against. */
export interface CheckedAgainst {
  readonly registry: Registry
  /** Names of tasks that only workers elsewhere know. */
  readonly tasksElsewhere: readonly string[]
  readonly traits: StoreTraits
}

/** The queue of the job. Throws `UnknownTaskError`, `InvalidJobError`, `UnknownQueueError` or `UnsupportedByStoreError`. */
export function checkedQueue(item: EnqueueItem, rules: CheckedAgainst): Queue {
  const { task, options } = item
  refuseUnknown(task, rules)
  const queue =
    task.kind === 'ordered' ? checkedOrderedQueue(task, options, rules) : checkedPlainQueue(task, item, rules)
  const { name, renewLease, leaseMs } = queue
  if (!renewLease && task.timeLimitMs >= leaseMs && rules.registry.find(task.name) === task)
    throw wrong(
      task,
      `its time limit (${formatDuration(task.timeLimitMs)}) is not less than the lease of queue '${name}' (${formatDuration(leaseMs)}), which is not renewed: it would never be run. Use another queue, or a longer lease.`,
    )
  return queue
}

/** Refuses a task that no worker of this mill knows: it would put its jobs back for ever. */
function refuseUnknown(task: AnyTask, { registry, tasksElsewhere }: CheckedAgainst): void {
  if (registry.find(task.name) !== undefined || tasksElsewhere.includes(task.name) || isRunElsewhere(task)) return
  throw new UnknownTaskError(task.name, [...registry.tasks.keys()])
}

const plainOptions = new Set<string>([
  'id',
  'delay',
  'runAt',
  'priority',
  'meta',
  'group',
  'fields',
  'queue',
  'expiresIn',
  'ifWaiting',
  'atMost',
  'idempotency',
])

function checkedPlainQueue(
  task: AnyPlainTask,
  { options, child, origin, graph }: EnqueueItem,
  { registry, traits }: CheckedAgainst,
): Queue {
  const parent = origin?.parent
  if (task.joins !== undefined && graph === undefined) throw waitsForOthers(task, task.joins)
  checkOptions(task, options, plainOptions)
  const { id, priority } = options
  if (id !== undefined && !isJobId(id)) throw wrong(task, `id ${idMistake(id)}`)
  if (priority !== undefined && !isPriority(priority))
    throw wrong(task, `priority must be ${priorityForm}; got ${describe(priority)}.`)
  if (priority !== undefined && priority !== 0 && !traits.priority) {
    throw new UnsupportedByStoreError(traits.name, 'job priorities', 'Use a queue of its own for urgent jobs.')
  }
  if (!traits.exactEnqueue) refuseExact(options, traits)
  if (options.fields !== undefined) checkFields(task, options.fields, traits)
  if (options.ifWaiting !== undefined) checkIfWaiting(task, options)
  if (options.idempotency !== undefined && id === undefined && child === undefined)
    throw wrong(task, 'idempotency needs an id of your own, which is what is remembered.')
  const queue = registry.queue(options.queue ?? task.queue)
  if (queue.ordered) throw otherTasks(task, queue.name, registry.orderedTask(queue.name)?.name)
  if (id !== undefined && id === parent?.id && queue.name === parent.queue) throw enqueuesItself(task, id)
  return queue
}

/** A join whose members nobody names would never run. */
export function waitsForOthers(task: AnyTask, joins: ReadonlyMap<string, unknown>): InvalidJobError {
  return wrong(
    task,
    `it waits for other jobs, whose inputs must be given: after: { ${[...joins.keys()].join(', ')} }. Only mill.enqueue(), ctx.enqueue() and mill.flow() take them; from a schedule, a list of jobs, the command line, an API or a transaction enqueue a task whose handler calls ctx.enqueue().`,
  )
}

/** The options that need a store that knows at an enqueue which ids it holds, and their words in a refusal. */
const exactOnly = { id: 'ids of your own', ifWaiting: 'a job in the place of another' } as const

function refuseExact(options: AnyEnqueueOptions, { name }: StoreTraits): void {
  const { id, idempotency, ifWaiting, atMost } = options
  const asked = (id ?? idempotency) !== undefined ? 'id' : (ifWaiting ?? atMost) !== undefined ? 'ifWaiting' : undefined
  if (asked === undefined) return
  const remedy = `Leave \`${asked}\` out and make the handler idempotent, or use a store that knows the ids of its jobs.`
  throw new UnsupportedByStoreError(name, exactOnly[asked], remedy)
}

function checkFields(task: AnyPlainTask, fields: unknown, { name, fields: hasThem }: StoreTraits): void {
  const mistake = newFieldsMistake(fields)
  if (mistake !== undefined) throw wrong(task, mistake)
  if (hasThem) return
  throw new UnsupportedByStoreError(
    name,
    'fields of jobs',
    'Put what you need into `meta`, or use a store that lists jobs.',
  )
}

function checkIfWaiting(task: AnyPlainTask, { id, ifWaiting }: AnyEnqueueOptions): void {
  if (ifWaiting !== 'keep' && ifWaiting !== 'replace')
    throw wrong(task, `ifWaiting must be 'keep' or 'replace'; got ${describe(ifWaiting)}.`)
  if (ifWaiting === 'replace' && id === undefined)
    throw wrong(task, "ifWaiting: 'replace' needs an id of your own, of the job that is to be replaced.")
}

/** While it runs, its id is taken: nothing would be stored, and a chain of such jobs would end in silence. */
function enqueuesItself(task: AnyPlainTask, id: string): InvalidJobError {
  return wrong(
    task,
    `it would enqueue its own id '${id}', which is taken for as long as it runs. Return snooze('1m') to run the same job again later, or give the next job another id.`,
  )
}

function otherTasks(task: AnyPlainTask, queue: string, owner: string | undefined): InvalidJobError {
  const whose = owner === undefined ? 'and takes only jobs of an ordered task' : `and belongs to the task '${owner}'`
  return wrong(
    task,
    `queue '${queue}' is ordered ${whose}. Use another queue, or define this task by defineOrderedTask().`,
  )
}

const orderedOptions = new Set<string>(['id', 'score', 'delay', 'runAt', 'meta'])
const withQueue = new Set<string>([...orderedOptions, 'queue'])
/** Options that only plain tasks have, and why ordered ones do not. */
const plainOnly: Readonly<Record<string, string>> = {
  ifWaiting: "payloads of an ordered id merge. With merge: 'latest' of the task the newest is kept.",
  atMost: 'its delay is not put off by later payloads.',
  idempotency: 'an ordered id that has ended is not remembered.',
  expiresIn: 'payloads of an ordered job are never dropped. Let the handler pass over those that are too old.',
  fields: 'those of an ordered id end with each of its jobs. Let the handler set them: ctx.fields.set().',
}

function checkedOrderedQueue(task: AnyOrderedTask, options: AnyEnqueueOptions, { registry }: CheckedAgainst): Queue {
  // The queue may be named, as for plain tasks; it must be the task's own.
  const refused = Object.keys(options ?? {}).find((name) => plainOnly[name] !== undefined)
  if (refused !== undefined) throw wrong(task, `${refused} is for plain tasks: ${plainOnly[refused]}`)
  checkOptions(task, options, options?.queue === task.queue ? withQueue : orderedOptions)
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

/** Refuses unknown options, and a meta that is not an object. */
function checkOptions(task: AnyTask, options: AnyEnqueueOptions, known: ReadonlySet<string>): void {
  if (typeof options !== 'object' || options === null)
    throw wrong(task, `options must be an object; got ${describe(options)}.`)
  for (const name of Object.keys(options)) if (!known.has(name)) throw unknownOption(task, name, known)
  const { meta } = options
  if (meta !== undefined && (typeof meta !== 'object' || meta === null || Array.isArray(meta)))
    throw wrong(task, 'meta must be a plain object.')
  if (meta !== undefined && Object.hasOwn(meta, originKey))
    throw wrong(task, `meta must have no key '${originKey}': it holds the origin of a job. Use another name.`)
}

function unknownOption(task: AnyTask, name: string, known: ReadonlySet<string>): InvalidJobError {
  const where = task.kind === 'ordered' ? 'enqueue for an ordered task' : 'enqueue'
  return wrong(task, `'${name}' is not an option of ${where}; known are ${[...known].join(', ')}${hintFor(name)}.`)
}

/** The name of the job in messages. */
export function nameOf(task: AnyTask): string {
  return `job of task '${task.name}'`
}

/** The error that refuses the job. */
export function wrong(task: AnyTask, message: string, options?: ErrorOptions): InvalidJobError {
  return new InvalidJobError(`${nameOf(task)}: ${message}`, options)
}
