/**
 * The enqueue of a graph: jobs of which some, the joins, wait for others. At most 1,000 are stored in one step, all or
 * none.
 */

import {
  EnqueueManyError,
  hasCode,
  InvalidJobError,
  isMillraceError,
  QueueDrainingError,
  QueueFullError,
} from '../../core/errors.js'
import type { JobRef } from '../../core/events.js'
import type { EnqueueOutcome, JobHandle } from '../../core/job/job.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import type { GraphAnswer } from '../../stores/contract/joins.js'
import type { EnqueueCall, NewJob } from '../../stores/contract/new-job.js'
import type { MemberOf, NewJoin } from '../../stores/contract/new-join.js'
import { nameOf } from './draft-checks.js'
import { type DraftEnvironment, draftJob } from './job-draft.js'
import type { Sender } from './sender.js'

/** The most jobs that are stored in one step. */
export const mostInGraph = 1_000

/** The most bytes of inputs that are stored in one step. */
export const mostGraphBytes = 8 * 1_048_576

/** One job of a graph, before it is checked. */
export interface GraphJob {
  readonly item: EnqueueItem & Required<Pick<EnqueueItem, 'graph'>>
  readonly join?: NewJoin
  readonly memberOf?: readonly MemberOf[]
  /** Its id follows from another one, or was made for it: nobody gives it again. */
  readonly isIdOurs: boolean
  /** Its id was made for this enqueue: no job has it, and no later enqueue makes it again. */
  readonly isIdNew: boolean
}

/** One job of a graph, ready to be sent. */
export interface GraphDraft {
  readonly queue: string
  readonly job: NewJob
  readonly bytes: number
  readonly isIdNew: boolean
}

type Results = (JobHandle | Error)[]

/** `again`: the same drafts with other ids, for which the handles are then. */
type SendDrafts = (
  drafts: readonly GraphDraft[],
  again: (rename: (id: string) => string) => Promise<readonly GraphDraft[]>,
) => Promise<EnqueueOutcome>

export interface GraphParts {
  readonly rules: () => Promise<DraftEnvironment>
  readonly sender: Sender
  /** Passes items through the middleware to `send`. */
  readonly through: (
    items: EnqueueItem[],
    send: (items: readonly EnqueueItem[]) => Promise<Results>,
  ) => Promise<Results>
  /** Reports a job that the store knows now, and makes its handle. */
  readonly accepted: (queue: string, job: NewJob, outcome: EnqueueOutcome) => JobHandle
  /** Reports a job whose input was dropped, because a dead job has its id. */
  readonly dropped: (job: JobRef) => void
}

export class GraphEnqueue {
  readonly #parts: GraphParts

  constructor(parts: GraphParts) {
    this.#parts = parts
  }

  /**
   * Checks the jobs of a graph and passes them to `send`, through the middleware. Throws the errors of an enqueue, which
   * name a member by its set and number; nothing was sent then.
   */
  async drafted(jobs: readonly GraphJob[], rules: DraftEnvironment, send: SendDrafts): Promise<JobHandle[]> {
    const results = await this.#parts.through(
      jobs.map(({ item }) => item),
      async (items) => {
        if (items.length !== jobs.length || items.some(({ graph }, i) => graph !== jobs[i]!.item.graph))
          throw new EnqueueManyError(
            'a middleware changed which jobs an enqueue of jobs that wait for others has; to refuse jobs, throw there.',
            [],
          )
        let drafts = await draftsOf(items, jobs, rules)
        const outcome = await send(drafts, async (rename) => {
          const renamed = jobs.map((job) => renamedJob(job, rename))
          const theirs = items.map((item, i) => ({ ...item, ...idsOf(renamed[i]!.item) }))
          drafts = await draftsOf(theirs, renamed, rules)
          return drafts
        })
        return drafts.map(({ queue, job }) => this.#parts.accepted(queue, job, outcome))
      },
    )
    return results as JobHandle[]
  }

  /** Reports the first job of a graph that was there already, if that is dead: few producers look at outcomes. */
  async reportIfDead({ item: { task, graph } }: GraphJob): Promise<void> {
    const stored = await this.#parts.sender.recordOf(graph).catch((error: unknown) => {
      // The graph is there, which is all that its producer has to know.
      if (!hasCode(error, 'store-unavailable')) throw error
    })
    if (stored?.state === 'dead') this.#parts.dropped({ queue: graph.queue, id: graph.id, task: task.name })
  }

  /** Sends a graph, whose first job is a join. Throws `InvalidJobError`, `QueueFullError` or `QueueDrainingError`. */
  async sent(drafts: readonly GraphDraft[], rules: DraftEnvironment): Promise<'added' | 'duplicate'> {
    const answer = await this.#parts.sender.sendGraph(callsOf(drafts, rules))
    if (answer.outcome === 'refused') throw refusal(answer, drafts)
    return answer.outcome
  }
}

/** A schema may be asynchronous: all drafts are begun before the first is awaited. */
async function draftsOf(
  items: readonly EnqueueItem[],
  places: readonly GraphJob[],
  rules: DraftEnvironment,
): Promise<GraphDraft[]> {
  const begun = items.map((item, i) => draftOf(item, places[i]!, rules))
  for (const draft of begun) if (draft instanceof Promise) draft.catch(() => {})
  const drafts: GraphDraft[] = []
  for (const draft of begun) drafts.push(draft instanceof Promise ? await draft : draft)
  return drafts
}

function renamedJob({ item, join, memberOf, isIdOurs }: GraphJob, rename: (id: string) => string): GraphJob {
  const id = rename(item.graph.id)
  const sets = join?.sets.map((set) => ({ ...set, ids: rename(set.ids) }))
  return {
    item: { ...item, child: id, graph: { ...item.graph, id } },
    ...(join && { join: { ...join, sets: sets! } }),
    ...(memberOf && {
      memberOf: memberOf.map((place) => ({ ...place, join: { ...place.join, id: rename(place.join.id) } })),
    }),
    isIdOurs,
    isIdNew: false,
  }
}

function idsOf({ child, graph }: GraphJob['item']): Partial<EnqueueItem> {
  return { graph, ...(child !== undefined && { child }) }
}

function draftOf(item: EnqueueItem, place: GraphJob, rules: DraftEnvironment): GraphDraft | Promise<GraphDraft> {
  try {
    const draft = draftJob(item, rules)
    if (draft instanceof Promise)
      return draft.then(
        (made) => placed(made, place),
        (error: unknown) => {
          throw named(error, place)
        },
      )
    return placed(draft, place)
  } catch (error) {
    throw named(error, place)
  }
}

function placed(
  { queue, job, bytes }: Omit<GraphDraft, 'isIdNew'>,
  { item, join, memberOf, isIdOurs, isIdNew }: GraphJob,
): GraphDraft {
  const { graph, task } = item
  if (job.id !== graph.id || queue !== graph.queue)
    throw new InvalidJobError(
      `${nameOf(task)}: a middleware gave it another id or queue, by which the jobs that wait for it, or that it waits for, do not know it. Leave both as they are.`,
    )
  return {
    queue,
    bytes,
    isIdNew,
    job: {
      ...job,
      ...(isIdOurs && { rememberMs: 0 }),
      ...(join && { join }),
      ...(memberOf && memberOf.length > 0 && { memberOf }),
    },
  }
}

/** The same error, which says of which member it is. */
function named(error: unknown, { item: { graph } }: GraphJob): unknown {
  if (graph.as !== undefined && isMillraceError(error)) error.message = `${graph.as}: ${error.message}`
  return error
}

/** One call for each queue, that of the first job first. */
function callsOf(drafts: readonly GraphDraft[], { newId }: DraftEnvironment): EnqueueCall[] {
  const byQueue = new Map<string, GraphDraft[]>()
  for (const draft of drafts) {
    const others = byQueue.get(draft.queue)
    if (others === undefined) byQueue.set(draft.queue, [draft])
    else others.push(draft)
  }
  return [...byQueue].map(([queue, some]) => callOf(queue, some, newId()))
}

/** The call for these drafts of one queue. */
export function callOf(queue: string, drafts: readonly GraphDraft[], callId: string): EnqueueCall {
  const hasNewIds = drafts.every(({ isIdNew }) => isIdNew)
  return { callId, queue, jobs: drafts.map(({ job }) => job), ...(hasNewIds && { hasNewIds }) }
}

function refusal(
  { refused: { queue, id }, as }: GraphAnswer & { readonly outcome: 'refused' },
  drafts: readonly GraphDraft[],
): Error {
  if (as === 'full') return new QueueFullError(queue)
  if (as === 'draining') return new QueueDrainingError(queue)
  const task = drafts.find(({ job }) => job.id === id)?.job.task
  return new InvalidJobError(
    `job of task '${task}': a job with the id '${id}' is in queue '${queue}' already${as === 'dead' ? ', in the morgue' : ''}, and nobody can wait for a job that was there before. Give it another id, or wait for its result. Nothing was stored.`,
  )
}
