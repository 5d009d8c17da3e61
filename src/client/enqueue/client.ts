/** The client: checks jobs, encodes them, sends them, and returns a handle to each. */

import { EnqueueManyError, QueueDrainingError, QueueFullError } from '../../core/errors.js'
import type { Events } from '../../core/events.js'
import type { EnqueueOutcome } from '../../core/job.js'
import type { JobHandle } from '../../core/job-handle.js'
import { type AnyTask, refuseNoTask } from '../../core/task/any-task.js'
import type { EnqueueArguments } from '../../core/task/enqueue-options.js'
import { GivenItem } from '../../core/task/given-item.js'
import { itemsOf, type ManyArguments } from '../../core/task/many-items.js'
import { type EnqueueItem, type Middleware, throughLayers } from '../../core/task/middleware.js'
import type { HandleOf } from '../../core/task/task-definition.js'
import type { Enqueued } from '../../stores/contract/new-job.js'
import type { DraftRules, JobDraft } from './draft-content.js'
import { callOf, callsOf } from './enqueue-call.js'
import { draftJob } from './job-draft.js'
import type { Sender } from './sender.js'

/** The outcome of one job of an `enqueueMany`: its handle, or the error that refused it. */
export type EnqueueResult<Result = unknown> = { readonly job: JobHandle<Result> } | { readonly error: Error }

/** @internal */
export interface ClientParts {
  readonly rules: () => Promise<DraftRules>
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
  #rules: DraftRules | undefined

  constructor(parts: ClientParts) {
    this.#parts = parts
    this.#layers = parts.middleware.flatMap((layer) => layer.enqueue?.bind(layer) ?? [])
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
    let result: JobHandle | Error | undefined
    if (this.#layers.length > 0) [result] = await this.#through([item], false)
    else {
      // The path of most jobs: one more promise would cost as much as all the checks.
      this.#rules ??= await this.#parts.rules()
      const drafted = draftJob(item, this.#rules)
      const draft = drafted instanceof Promise ? await drafted : drafted
      const answers = item.isDone ? undefined : await this.#parts.sender.send(callOf(draft, this.#rules))
      result = this.#resultOf(draft, answers === undefined ? 'duplicate' : answers[0]!)
    }
    if (result === undefined) throw new EnqueueManyError(takenOut, [])
    if (result instanceof Error) throw result
    return result
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
    const results = await this.#through(items, true)
    if (results.length < items.length) throw new EnqueueManyError(takenOut, results.map(toldOf))
    if (results.every((result): result is JobHandle => !(result instanceof Error))) return results
    const refused = results.filter((result) => result instanceof Error)
    const message = `${refused.length} of ${results.length} jobs were refused, the first because: ${refused[0]!.message}`
    throw new EnqueueManyError(message, results.map(toldOf), { cause: refused[0] })
  }

  async #through(items: EnqueueItem[], many: boolean): Promise<(JobHandle | Error)[]> {
    if (this.#layers.length === 0) return this.#send(items, many)
    let results: (JobHandle | Error)[] = []
    await throughLayers<void>(
      this.#layers.map((layer) => (next) => layer(items, next)),
      async () => {
        results = await this.#send(items, many)
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
    const drafts = await draftsOf(items, many, this.#rules)
    if (items.length > 0 && items.every(({ isDone }) => isDone))
      return drafts.map((draft) => this.#resultOf(draft, 'duplicate'))
    const results = new Array<JobHandle | Error>(drafts.length)
    await Promise.all(
      callsOf(drafts, this.#rules).map(async ({ call, at }) => {
        const answered = await this.#parts.sender.send(call).catch((error: Error) => error)
        // At once: the store works on the next call meanwhile.
        for (const [i, index] of at.entries())
          results[index] = this.#resultOf(drafts[index]!, answered instanceof Error ? answered : answered[i]!)
      }),
    )
    return results
  }

  #resultOf({ queue, job }: JobDraft, answer: Enqueued | Error): JobHandle | Error {
    if (answer instanceof Error) return answer
    if (answer === 'full') return new QueueFullError(queue)
    if (answer === 'draining') return new QueueDrainingError(queue)
    const { events } = this.#parts
    if (answer !== 'duplicate') events.counter?.enqueued(queue)
    if (events.has('job.enqueued')) events.emit('job.enqueued', { queue, id: job.id, task: job.task, outcome: answer })
    return this.#parts.handle(queue, job.id, answer)
  }
}

function toldOf(result: JobHandle | Error): EnqueueResult {
  return result instanceof Error ? { error: result } : { job: result }
}

/** All drafts. Throws `EnqueueManyError` with every mistake, or the mistake itself if only one job was requested. */
async function draftsOf(items: readonly EnqueueItem[], many: boolean, rules: DraftRules): Promise<JobDraft[]> {
  // All are begun before the first is awaited: a schema may be asynchronous.
  const begun = items.map((item) => draftOrError(item, rules))
  const drafts: (JobDraft | Error)[] = []
  for (const draft of begun) drafts.push(draft instanceof Promise ? await draft : draft)
  if (drafts.every((draft): draft is JobDraft => !(draft instanceof Error))) return drafts
  const wrong = drafts.flatMap((draft, i) => (draft instanceof Error ? [{ i, error: draft }] : []))
  if (!many) throw wrong[0]!.error
  const shown = wrong.slice(0, 10).map(({ i, error }) => `  job ${i}: ${error.message}`)
  throw new EnqueueManyError(
    `${wrong.length} of ${items.length} jobs are not valid; nothing was stored:\n${shown.join('\n')}`,
    drafts.map((draft) =>
      draft instanceof Error ? { error: draft } : { error: new Error('not sent: another job is not valid') },
    ),
  )
}

function draftOrError(item: EnqueueItem, rules: DraftRules): JobDraft | Error | Promise<JobDraft | Error> {
  try {
    const draft = draftJob(item, rules)
    return draft instanceof Promise ? draft.catch((error: Error) => error) : draft
  } catch (error) {
    return error as Error
  }
}
