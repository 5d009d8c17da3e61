/**
 * The client: checks jobs, encodes them, sends them in calls, and returns a handle to each; or enqueues them in a user's
 * transaction.
 */

import {
  EnqueueManyError,
  InvalidArgumentError,
  InvalidJobError,
  LeaseLostError,
  QueueDrainingError,
  QueueFullError,
  UnsupportedByStoreError,
} from '../../core/errors.js'
import type { Events } from '../../core/events.js'
import type { EnqueueOutcome, JobHandle } from '../../core/job/job.js'
import { describe } from '../../core/messages/describe.js'
import { type AnyTask, refuseNoTask } from '../../core/task/any-task.js'
import type { EnqueueInOptions } from '../../core/task/enqueue-in.js'
import type { EnqueueArguments } from '../../core/task/enqueue-options.js'
import type { Flow, FlowCall, FlowHandles } from '../../core/task/flow.js'
import {
  type EnqueueItem,
  GivenItem,
  itemsOf,
  type ManyArguments,
  type Middleware,
  throughLayers,
} from '../../core/task/middleware.js'
import type { HandleOf } from '../../core/task/task-definition.js'
import { listOfOne } from '../../core/values/list-of-one.js'
import type { EnqueueCall, Enqueued, NewJob } from '../../stores/contract/new-job.js'
import type { ClaimKey } from '../../stores/contract/settle.js'
import type { Store } from '../../stores/contract/store.js'
import type { Transactions, UserConnection } from '../../stores/contract/transactions.js'
import { nameOf } from './draft-checks.js'
import type { GraphParts } from './graph-enqueue.js'
import { type DraftEnvironment, draftJob, draftJobNow, type JobDraft } from './job-draft.js'
import { FlowEnqueue } from './job-flow.js'
import { JoinEnqueue } from './join-enqueue.js'
import type { Sender } from './sender.js'

/** The outcome of one job of an `enqueueMany`: its handle, or the error that refused it. */
export type EnqueueResult<Result = unknown> = { readonly job: JobHandle<Result> } | { readonly error: Error }

/** @internal */
export interface ClientParts {
  readonly rules: () => Promise<DraftEnvironment>
  readonly sender: Sender
  readonly middleware: readonly Middleware[]
  readonly events: Events
  readonly handle: (queue: string, id: string, outcome: EnqueueOutcome) => JobHandle<unknown>
}

const takenOut = 'a middleware took jobs out of an enqueue or did not call next(); to refuse jobs, throw there.'

/** @internal */
export class Client {
  readonly #parts: ClientParts
  readonly #layers: readonly NonNullable<Middleware['enqueue']>[]
  /** The rules, which are known once the store is open and do not change afterwards. */
  #rules: DraftEnvironment | undefined
  readonly #joins: JoinEnqueue
  readonly #flows: FlowEnqueue

  constructor(parts: ClientParts) {
    this.#parts = parts
    this.#layers = parts.middleware.flatMap((layer) => layer.enqueue?.bind(layer) ?? [])
    const graphs: GraphParts = {
      ...{ rules: parts.rules, sender: parts.sender },
      through: (items, send) => this.#through(items, send),
      accepted: (queue, job, outcome) => this.#accepted(queue, job, outcome),
      dropped: (job) => parts.events.emit('job.dropped', job),
    }
    this.#joins = new JoinEnqueue(graphs)
    this.#flows = new FlowEnqueue(graphs)
  }

  /**
   * Enqueues one job. For an ordered task it enqueues one payload: if its id waits or runs, the payload joins those of
   * that id (`outcome: 'merged'`). Resolves when the job is stored as durably as the store promises. Throws
   * `InvalidArgumentError` if `task` is not a task, `UnknownTaskError`, `InvalidJobError`, `PayloadTooLargeError`,
   * `UnknownQueueError`, `QueueFullError`, `QueueDrainingError` (nothing was stored) or `StoreUnavailableError` (in
   * doubt: enqueue again with an id of your own to be safe).
   */
  enqueue<T extends AnyTask>(task: T, ...[input, options]: EnqueueArguments<T>): Promise<HandleOf<T>> {
    return this.enqueueItem(new GivenItem(task, input, options === undefined ? {} : options)) as Promise<HandleOf<T>>
  }

  /** Enqueues an item that is complete already. */
  async enqueueItem(item: EnqueueItem): Promise<JobHandle> {
    refuseNoTask(item.task, 'enqueue()')
    if (item.task.joins !== undefined) return this.#joins.enqueue(item)
    let result: JobHandle | Error | undefined
    if (this.#layers.length > 0) [result] = await this.#through([item], (items) => this.#send(items, false))
    else {
      // The path of most jobs: one more promise would cost as much as all the checks.
      this.#rules ??= await this.#parts.rules()
      const drafted = draftJob(item, this.#rules)
      const draft = drafted instanceof Promise ? await drafted : drafted
      const answers = item.isDone ? undefined : await this.#parts.sender.send(callOf(draft, this.#rules))
      result = this.#resultOf(draft.queue, draft.job, answers === undefined ? 'duplicate' : answers[0]!)
    }
    if (result === undefined) throw new EnqueueManyError(takenOut, [])
    if (result instanceof Error) throw result
    return result
  }

  /** Enqueues a graph of jobs, which `build` adds. Throws the errors of an enqueue; nothing was stored then. */
  flow<Returned>(build: (flow: Flow) => Returned, call?: FlowCall): Promise<FlowHandles<Returned>> {
    return this.#flows.enqueue(build, call)
  }

  /**
   * Enqueues many jobs, of one task or of several. All are checked before any is sent: a wrong one throws
   * `EnqueueManyError` and nothing is stored. They are sent in calls of at most 250 jobs of one queue. Each call is
   * accepted as a whole or not at all; in an ordered queue this holds shard by shard. If jobs are refused,
   * `EnqueueManyError` says what became of each job. Throws `InvalidArgumentError` if `task` is not a task.
   */
  async enqueueMany(...args: ManyArguments): Promise<JobHandle[]> {
    return this.enqueueItems(itemsOf(args))
  }

  /** Enqueues items that are complete already. */
  async enqueueItems(items: EnqueueItem[]): Promise<JobHandle[]> {
    const results = await this.#through(items, (left) => {
      if (left.length < items.length) throw new EnqueueManyError(takenOut, [])
      return this.#send(left, true)
    })
    if (results.length < items.length) throw new EnqueueManyError(takenOut, results.map(toldOf))
    if (results.every((result): result is JobHandle => !(result instanceof Error))) return results
    const refused = results.filter((result) => result instanceof Error)
    const message = `${refused.length} of ${results.length} jobs were refused, the first because: ${refused[0]!.message}`
    throw new EnqueueManyError(message, results.map(toldOf), { cause: refused[0] })
  }

  async #through(
    given: EnqueueItem[],
    send: (items: readonly EnqueueItem[]) => Promise<(JobHandle | Error)[]>,
  ): Promise<(JobHandle | Error)[]> {
    if (this.#layers.length === 0) return send(given)
    // A layer may take jobs out of its list: not of the one that the caller counts.
    const items = [...given]
    let results: (JobHandle | Error)[] = []
    await throughLayers<void>(
      this.#layers.map((layer) => (next) => layer(items, next)),
      async () => {
        results = await send(items)
        for (const [i, result] of results.entries()) {
          if (result instanceof Error) items[i]!.refusal = result
          else items[i]!.job = result
        }
      },
    )
    return results
  }

  async #send(items: readonly EnqueueItem[], many: boolean): Promise<(JobHandle | Error)[]> {
    this.#rules ??= await this.#parts.rules()
    const calls = await callsOf(items, many, this.#rules)
    const results = new Array<JobHandle | Error>(items.length)
    const areDone = items.length > 0 && items.every(({ isDone }) => isDone)
    await Promise.all(
      calls.map(async ({ call, places }) => {
        const answered = areDone
          ? call.jobs.map(() => 'duplicate' as const)
          : await this.#parts.sender.send(call).catch((error: Error) => error)
        // At once: the store works on the next call meanwhile.
        for (const [i, place] of places.entries())
          results[place] = this.#resultOf(
            call.queue,
            call.jobs[i]!,
            answered instanceof Error ? answered : answered[i]!,
          )
      }),
    )
    return results
  }

  #resultOf(queue: string, job: NewJob, answer: Enqueued | Error): JobHandle | Error {
    if (answer instanceof Error) return answer
    if (answer === 'full') return new QueueFullError(queue)
    if (answer === 'draining') return new QueueDrainingError(queue)
    return this.#accepted(queue, job, outcomeOf(answer, queue, job, this.#parts.events))
  }

  #accepted(queue: string, job: NewJob, outcome: EnqueueOutcome): JobHandle {
    const { events } = this.#parts
    if (outcome !== 'duplicate') events.counter?.enqueued(queue)
    if (events.has('job.enqueued')) events.emit('job.enqueued', { queue, id: job.id, task: job.task, outcome })
    return this.#parts.handle(queue, job.id, outcome)
  }
}

/** The outcome of an accepted call. An input that a dead job keeps out is reported: few producers look at outcomes. */
export function outcomeOf(
  answer: Exclude<Enqueued, 'full' | 'draining'>,
  queue: string,
  { id, task }: NewJob,
  events: Events,
): EnqueueOutcome {
  if (answer !== 'dead') return answer
  events.emit('job.dropped', { queue, id, task })
  return 'duplicate'
}

function toldOf(result: JobHandle | Error): EnqueueResult {
  return result instanceof Error ? { error: result } : { job: result }
}

/**
 * The calls for all items. Throws `EnqueueManyError` with every mistake, or the mistake itself if only one job was
 * requested.
 */
async function callsOf(items: readonly EnqueueItem[], many: boolean, rules: DraftEnvironment): Promise<PlacedCall[]> {
  const packer = new CallPacker(rules)
  const wrong = new Map<number, Error>()
  const take = (draft: JobDraft | Error, place: number) => {
    if (draft instanceof Error) wrong.set(place, draft)
    else packer.add(draft, place)
  }
  // A schema may be asynchronous: all drafts are begun before the first is awaited.
  const awaited: (JobDraft | Error | Promise<JobDraft | Error>)[] = []
  let at = 0
  for (const item of items) {
    const draft = draftOrError(item, rules)
    if (awaited.length > 0 || draft instanceof Promise) awaited.push(draft)
    else take(draft, at++)
  }
  for (const draft of awaited) take(await draft, at++)
  if (wrong.size === 0) return packer.calls
  const mistakes = [...wrong]
  if (!many) throw mistakes[0]![1]
  const shown = mistakes.slice(0, 10).map(([place, error]) => `  job ${place}: ${error.message}`)
  throw new EnqueueManyError(
    `${wrong.size} of ${items.length} jobs are not valid; nothing was stored:\n${shown.join('\n')}`,
    items.map((_, place) => ({ error: wrong.get(place) ?? new Error('not sent: another job is not valid') })),
  )
}

function draftOrError(item: EnqueueItem, rules: DraftEnvironment): JobDraft | Error | Promise<JobDraft | Error> {
  try {
    const draft = draftJob(item, rules)
    return draft instanceof Promise ? draft.catch((error: Error) => error) : draft
  } catch (error) {
    return error as Error
  }
}

/** A call, with the place of each of its jobs among all jobs of the enqueue. */
interface PlacedCall {
  readonly call: EnqueueCall
  readonly places: readonly number[]
}

interface OpenPlacedCall extends PlacedCall {
  readonly call: OpenCall
  readonly places: number[]
  bytes: number
}

/** The most bytes of one call: the limit of stores for one message. */
const mostBytes = 1_048_576

/**
 * Packs drafts into calls: by queue, with a limit of jobs and bytes for each. It keeps no draft: those of thousands of
 * jobs would outlive several collections of garbage, which would take longer than the drafting.
 */
class CallPacker {
  readonly calls: PlacedCall[] = []
  readonly #open = new Map<string, OpenPlacedCall>()
  readonly #rules: DraftEnvironment
  #last: OpenPlacedCall | undefined

  constructor(rules: DraftEnvironment) {
    this.#rules = rules
  }

  /** Adds the draft of the job at this place. */
  add(draft: JobDraft, place: number): void {
    const { queue, job, bytes } = draft
    const open = this.#last?.call.queue === queue ? this.#last : this.#open.get(queue)
    const { maxBatch } = this.#rules.traits
    if (open === undefined || open.places.length >= maxBatch || open.bytes + bytes > mostBytes) {
      this.#last = { call: callOf(draft, this.#rules), places: [place], bytes }
      this.#open.set(queue, this.#last)
      this.calls.push(this.#last)
      return
    }
    open.call.jobs.push(job)
    open.call.hasNewIds &&= draft.isIdNew
    open.places.push(place)
    open.bytes += bytes
    this.#last = open
  }
}

/** The call for one job, or the first for several. */
function callOf(draft: JobDraft, { newId }: DraftEnvironment): OpenCall {
  // An id generated for the job also names its call. A user's id may come again, in another call.
  return new OpenCall(draft.isIdNew ? draft.job.id : newId(), draft)
}

class OpenCall implements EnqueueCall {
  readonly callId: string
  readonly queue: string
  readonly jobs: NewJob[]
  hasNewIds: boolean

  constructor(callId: string, { queue, job, isIdNew }: JobDraft) {
    this.callId = callId
    this.queue = queue
    this.jobs = listOfOne(job)
    this.hasNewIds = isIdNew
  }
}

type MayWait<T> = T | Promise<T>

/**
 * Enqueueing in a user's transaction. If the store answers by a promise, the call does too, and all before it may wait.
 * Otherwise checks, encoding, the client side of middleware up to its call of `next()`, and the store's statements happen
 * before the call returns, because a transaction does not wait.
 * @internal
 */
export class TransactionEnqueue {
  readonly #parts: Pick<ClientParts, 'middleware' | 'events' | 'handle'>
  readonly #store: () => Store | undefined
  readonly #rulesOf: (store: Store) => DraftEnvironment

  /** `store`: the store, if it is open. */
  constructor(
    parts: Pick<ClientParts, 'middleware' | 'events' | 'handle'>,
    store: () => Store | undefined,
    rulesOf: (store: Store) => DraftEnvironment,
  ) {
    this.#parts = parts
    this.#store = store
    this.#rulesOf = rulesOf
  }

  enqueue(connection: UserConnection, given: EnqueueItem): MayWait<JobHandle> {
    refuseNoTask(given.task, 'enqueueIn()')
    const { wakes, item } = askedOf(given)
    const store = this.#store()
    if (store === undefined)
      throw new InvalidArgumentError(
        'enqueueIn() needs a store that is open, for it cannot wait for that: `await mill.ready()` once, when the program starts.',
      )
    const transactions = transactionsOf(store)
    const rules = this.#rulesOf(store)
    const stored = ({ queue, job, isIdNew }: JobDraft): MayWait<JobHandle> => {
      const handleOf = ([answer]: Enqueued[]) => {
        if (answer === 'full') throw new QueueFullError(queue)
        if (answer === 'draining') throw new QueueDrainingError(queue)
        return this.#parts.handle(queue, job.id, outcomeOf(answer!, queue, job, this.#parts.events))
      }
      const answers = transactions.enqueue(connection, { queue, jobs: [job], hasNewIds: isIdNew, wakes })
      return answers instanceof Promise ? answers.then(handleOf) : handleOf(answers)
    }
    if (transactions.answersLater !== true) return this.#through(item, (one) => stored(draftJobNow(one, rules)))
    return this.#throughLater(item, async (one) => stored(await draftJob(one, rules)))
  }

  /** Completes a claim in the transaction. Throws `LeaseLostError` if it is lost. */
  async complete(connection: UserConnection, claim: ClaimKey): Promise<void> {
    const { transactions, traits } = this.#store()!
    if (transactions?.complete === undefined)
      throw new UnsupportedByStoreError(
        traits.name,
        'ending a job in a transaction of yours',
        'Write ctx.job.fence with your rows, and refuse a smaller one; or use a postgres: store in the database of your tables.',
      )
    if (!(await transactions.complete(connection, claim))) throw new LeaseLostError(claim.queue, claim.id)
  }

  async #throughLater(item: EnqueueItem, enqueue: (item: EnqueueItem) => Promise<JobHandle>): Promise<JobHandle> {
    const items = [item]
    let job: JobHandle | undefined
    await throughLayers<void>(
      this.#layers.map((layer) => (next) => layer(items, next)),
      async () => {
        if (items.length === 0) throw new EnqueueManyError(takenOut, [])
        for (const one of items) {
          one.job = await enqueue(one)
          job ??= one.job
        }
      },
    )
    if (job === undefined) throw new EnqueueManyError(takenOut, [])
    return job
  }

  get #layers() {
    return this.#parts.middleware.flatMap((layer) => layer.enqueue?.bind(layer) ?? [])
  }

  #through(item: EnqueueItem, enqueue: (item: EnqueueItem) => MayWait<JobHandle>): MayWait<JobHandle> {
    const layers = this.#layers
    if (layers.length === 0) return enqueue(item)
    const items = [item]
    let ended: { readonly job: MayWait<JobHandle> } | { readonly error: unknown } | undefined
    const passed = throughLayers<void>(
      layers.map((layer) => (next) => layer(items, next)),
      async () => {
        if (ended !== undefined) throw tooLate(item)
        try {
          if (items.length === 0) throw new EnqueueManyError(takenOut, [])
          const jobs = items.map(enqueue)
          ended = { job: jobs[0]! }
          for (const [i, one] of items.entries()) {
            const job = jobs[i]!
            one.job = job instanceof Promise ? await job : job
          }
        } catch (error) {
          ended = { error }
          throw error
        }
      },
    )
    const outcome = ended as typeof ended
    ended ??= { error: tooLate(item) }
    passed.catch((error: unknown) => {
      const isKnown = ended !== undefined && 'error' in ended && ended.error === error
      if (!isKnown) this.#parts.events.emit('hook.failed', { hook: 'middleware of enqueueIn()', error })
    })
    if (outcome === undefined) throw tooLate(item)
    if ('error' in outcome) throw outcome.error
    return outcome.job
  }
}

/** The item without the options of the call. Throws `InvalidJobError`. */
function askedOf(item: EnqueueItem): { readonly wakes: boolean; readonly item: EnqueueItem } {
  if (typeof item.options !== 'object' || item.options === null || !('wake' in item.options))
    return { wakes: true, item }
  const { wake = true, ...options } = item.options as EnqueueItem['options'] & EnqueueInOptions
  if (typeof wake === 'boolean') return { wakes: wake, item: { ...item, options } }
  throw new InvalidJobError(`${nameOf(item.task)}: wake must be true or false; got ${describe(wake)}.`)
}

function transactionsOf({ transactions, traits }: Store): Transactions {
  if (transactions !== undefined) return transactions
  throw new UnsupportedByStoreError(
    traits.name,
    'enqueueing in a transaction of yours',
    'Write the job into a table of yours (an outbox) in that transaction, and enqueue from there under an id of your own; or use a sqlite: store in the file of your tables, or a postgres: store in their database.',
  )
}

function tooLate({ task }: EnqueueItem): InvalidJobError {
  return new InvalidJobError(
    `${nameOf(task)}: a middleware refused it, or waited for something before it called next(); in enqueueIn() it must call next() at once, because a transaction cannot wait. Nothing was enqueued; the event 'hook.failed' has the reason.`,
  )
}
