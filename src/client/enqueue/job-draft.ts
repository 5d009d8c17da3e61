/** A job draft: one new job, checked and encoded, not yet sent. */

import { type InvalidJobError, UnknownTaskError, UnsupportedByStoreError } from '../../core/errors.js'
import { isPriority, priorityForm } from '../../core/job.js'
import type { StoredOrigin } from '../../core/job-origin.js'
import type { Queue } from '../../core/queue/queue.js'
import { type AnyTask, isRunElsewhere } from '../../core/task/any-task.js'
import type { AnyEnqueueOptions } from '../../core/task/enqueue-options.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import type { AnyOrderedTask } from '../../core/task/ordered-task.js'
import { validated, validatedNow } from '../../core/task/schema.js'
import type { AnyPlainTask } from '../../core/task/task.js'
import { describe } from '../../core/values/describe.js'
import { durationForm, formatDuration, parseDuration } from '../../core/values/duration.js'
import { idMistake, isJobId, orderedIdOf } from '../../core/values/ids.js'
import type { StoreTraits } from '../../stores/contract/store.js'
import {
  addContent,
  answerOf,
  checkedBound,
  checkedGroup,
  checkOptions,
  type DraftRules,
  encoded,
  expiryOf,
  JobDraft,
  JobInMaking,
  nameOf,
  wrong,
} from './draft-content.js'
import { type MadeInput, madeInput } from './made-input.js'

const plainOptions = new Set<string>([
  'id',
  'delay',
  'runAt',
  'priority',
  'meta',
  'group',
  'queue',
  'expiresIn',
  'ifWaiting',
  'atMost',
  'idempotency',
])
const orderedOptions = new Set<string>(['id', 'score', 'delay', 'runAt', 'meta'])
const withQueue = new Set<string>([...orderedOptions, 'queue'])
/** Options that only plain tasks have, and why ordered ones do not. */
const plainOnly: Readonly<Record<string, string>> = {
  ifWaiting: "payloads of an ordered id merge. With merge: 'latest' of the queue the newest is kept.",
  atMost: 'its delay is not put off by later payloads.',
  idempotency: 'an ordered id that has ended is not remembered.',
  expiresIn: 'payloads of an ordered job are never dropped. Let the handler pass over those that are too old.',
}

/** How long a child is remembered after its end, or `idempotency` if that is longer: its parent may run again. */
const childMemoryMs = 3_600_000
/**
 * The memory of an id that may come again at once: practically none. 0 ms is reserved for ids that never come again.
 */
const shortestMemoryMs = 1

/**
 * Checks and encodes one job; a promise only if its task has a schema. Throws `UnknownTaskError`, `InvalidJobError`,
 * `PayloadTooLargeError`, `UnknownQueueError` or `UnsupportedByStoreError`; nothing was stored then.
 */
export function draftJob(item: EnqueueItem, rules: DraftRules): JobDraft | Promise<JobDraft> {
  const { task, input } = item
  const draft = checkedDraft(item, rules)
  if (task.input === undefined) return draft(item)
  return validated(task.input, input, inputOf(task))
    .then((output) => madeInput(task, input, output, rules))
    .then(draft)
}

/** Like `draftJob`, but the input is stored as it was given, for many jobs that must not share what the schema makes. */
export async function draftGivenJob(item: EnqueueItem, rules: DraftRules): Promise<JobDraft> {
  const { task, input } = item
  const draft = checkedDraft(item, rules)
  if (task.input !== undefined) await validated(task.input, input, inputOf(task))
  return draft(item)
}

/** Like `draftJob`, but synchronous. Also throws `InvalidJobError` if the schema of its task is asynchronous. */
export function draftJobNow(item: EnqueueItem, rules: DraftRules): JobDraft {
  const { task, input } = item
  const draft = checkedDraft(item, rules)
  if (task.input === undefined) return draft(item)
  const output = validatedNow(task.input, input, inputOf(task))
  // A schema that has answered at once does so again.
  return draft(madeInput(task, input, output, rules) as MadeInput)
}

function inputOf(task: AnyTask): string {
  return `the input of a ${nameOf(task)}`
}

/** A function that makes the draft once the input is known to be valid. It is given the input to be stored. */
function checkedDraft(item: EnqueueItem, rules: DraftRules): (made: MadeInput) => JobDraft {
  const { task, options } = item
  refuseUnknown(task, rules)
  const {
    name: queue,
    renewLease,
    leaseMs,
  } = task.kind === 'ordered' ? checkedOrderedQueue(task, options, rules) : checkedPlainQueue(task, item, rules)
  if (!renewLease && task.timeLimitMs >= leaseMs && rules.registry.find(task.name) === task)
    throw wrong(
      task,
      `its time limit (${formatDuration(task.timeLimitMs)}) is not less than the lease of queue '${queue}' (${formatDuration(leaseMs)}), which is not renewed: it would never be run. Use another queue, or a longer lease.`,
    )
  return (made) =>
    task.kind === 'ordered' ? orderedDraft(task, item, made, rules) : plainDraft(task, item, made, queue, rules)
}

/** Refuses a task that no worker of this mill knows: it would put its jobs back for ever. */
function refuseUnknown(task: AnyTask, { registry, tasksElsewhere }: DraftRules): void {
  if (registry.find(task.name) !== undefined || tasksElsewhere.includes(task.name) || isRunElsewhere(task)) return
  throw new UnknownTaskError(task.name, [...registry.tasks.keys()])
}

/** The queue of the job, after every check that needs no input. */
function checkedPlainQueue(
  task: AnyPlainTask,
  { options, child, origin }: EnqueueItem,
  { registry, traits }: DraftRules,
): Queue {
  const parent = origin?.parent
  checkOptions(task, options, plainOptions)
  const { id, priority } = options
  if (id !== undefined && !isJobId(id)) throw wrong(task, `id ${idMistake(id)}`)
  if (priority !== undefined && !isPriority(priority))
    throw wrong(task, `priority must be ${priorityForm}; got ${describe(priority)}.`)
  if (priority !== undefined && priority !== 0 && !traits.priority) {
    throw new UnsupportedByStoreError(traits.name, 'job priorities', 'Use a queue of its own for urgent jobs.')
  }
  if (!traits.exactEnqueue) refuseExact(options, traits)
  if (options.ifWaiting !== undefined) checkIfWaiting(task, options)
  if (options.idempotency !== undefined && id === undefined && child === undefined)
    throw wrong(task, 'idempotency needs an id of your own, which is what is remembered.')
  const queue = registry.queue(options.queue ?? task.queue)
  if (queue.ordered) throw otherTasks(task, queue.name, registry.orderedTask(queue.name)?.name)
  if (id !== undefined && id === parent?.id && queue.name === parent.queue) throw enqueuesItself(task, id)
  return queue
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

function plainDraft(
  task: AnyPlainTask,
  item: EnqueueItem,
  made: MadeInput,
  queue: string,
  rules: DraftRules,
): JobDraft {
  const { input, options, child } = item
  // Text, otherwise it would be refused by now.
  const given = options.id as string | undefined
  const id = given ?? child
  const payload = made.payload ?? encoded(rules, task, 'input', made.input)
  const rememberMs = id === undefined ? 0 : memoryMs(task, options, rules)
  const job = new JobInMaking(id ?? rules.newId(), task.name, payload, options.priority ?? 0, rememberMs)
  if (options.group !== undefined || task.group !== undefined) {
    const named = options.group === undefined ? answerOf(task, 'group', () => task.group?.(input)) : options.group
    const group = checkedGroup(task, named, rules)
    if (group !== undefined) job.group = group
  }
  if (options.ifWaiting === 'replace') job.ifWaiting = 'replace'
  const bytes = addContent(job, queue, task, options, originOf(item), rules)
  const expiresMs = expiryOf(task, options, job, rules)
  if (expiresMs !== undefined) {
    job.expiresMs = expiresMs
    rules.warnings.expires(task, expiresMs)
  }
  if (options.atMost !== undefined) job.atMostMs = checkedBound(task, options, job)
  return new JobDraft(queue, job, bytes, id === undefined)
}

function originOf({ origin, schedule }: EnqueueItem): StoredOrigin | undefined {
  return schedule === undefined ? origin : { ...origin, schedule }
}

/**
 * How long an id is remembered after its job has ended, if a user gave it or it follows from a parent. Throws
 * `InvalidJobError`.
 */
function memoryMs(task: AnyPlainTask, options: AnyEnqueueOptions, rules: DraftRules): number {
  const { id, ifWaiting, idempotency } = options
  const ownMs = idempotency === undefined ? undefined : parseDuration(idempotency)
  if (idempotency !== undefined && ownMs === undefined)
    throw wrong(task, `idempotency must be ${durationForm}; got ${describe(idempotency)}.`)
  if (ownMs !== undefined) return Math.max(ownMs, shortestMemoryMs)
  // An enqueue after its end is another change, not the same job again.
  if (ifWaiting === 'replace') return shortestMemoryMs
  return Math.max(id === undefined ? childMemoryMs : shortestMemoryMs, task.idempotencyMs ?? rules.idempotencyMs)
}

/** The queue of the job, after every check that needs no input. */
function checkedOrderedQueue(task: AnyOrderedTask, options: AnyEnqueueOptions, { registry }: DraftRules): Queue {
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

function orderedDraft(
  task: AnyOrderedTask,
  { input, options, origin, child }: EnqueueItem,
  made: MadeInput,
  rules: DraftRules,
): JobDraft {
  const score = scoreOf(task, input, options)
  const payload = made.payload ?? encoded(rules, task, 'input', made.input)
  const job = new JobInMaking(orderedId(task, input, options), task.name, payload, 0, 0)
  if (score !== undefined) job.score = score
  else if (child !== undefined) job.arrival = child
  if (task.group !== undefined) {
    // From its id alone, so that all payloads of an id have the same group.
    const group = checkedGroup(
      task,
      answerOf(task, 'group', () => task.group?.(job.id)),
      rules,
    )
    if (group !== undefined) job.group = group
  }
  return new JobDraft(task.queue, job, addContent(job, task.queue, task, options, origin, rules), false)
}

function orderedId(task: AnyOrderedTask, input: unknown, options: AnyEnqueueOptions): string {
  if (options.id === undefined && task.id === undefined)
    throw wrong(
      task,
      'an ordered job needs an id, under which its payloads are gathered. Give one when you enqueue, as { id }, or define the task with id: (input) => ….',
    )
  const given = options.id === undefined ? answerOf(task, 'id', () => task.id?.(input)) : options.id
  const id = orderedIdOf(given)
  if (id === undefined) throw wrong(task, `id ${idMistake(given, true)}`)
  return id
}

function scoreOf(task: AnyOrderedTask, input: unknown, options: AnyEnqueueOptions): number | undefined {
  if (options.score === undefined && task.score === undefined) return undefined
  const score: unknown =
    options.score === undefined ? answerOf(task, 'score', () => task.score?.(input)) : options.score
  if (typeof score === 'number' && Number.isFinite(score)) return score
  throw wrong(task, `score must be a finite number; got ${describe(score)}.`)
}
