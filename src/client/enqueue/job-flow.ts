/**
 * A flow: a graph of jobs that is built by hand, in which a job may be waited for by several joins. It is stored in one
 * step.
 */

import { InvalidArgumentError, InvalidJobError } from '../../core/errors.js'
import type { JobHandle } from '../../core/job/job.js'
import { describe } from '../../core/messages/describe.js'
import { type AnyTask, refuseNoTask } from '../../core/task/any-task.js'
import type { EnqueueOptions, JoinEnqueueOptions, SetsOf, WaitsOf } from '../../core/task/enqueue-options.js'
import type { JoinSets, ManyMembers, MemberSet, MemberTask } from '../../core/task/join-sets.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import type { AnyPlainTask } from '../../core/task/task.js'
import type { HandleOf, TaskInput } from '../../core/task/task-definition.js'
import type { StoredJoin } from '../../stores/contract/joins.js'
import type { MemberOf, NewJoin } from '../../stores/contract/new-join.js'
import { GraphEnqueue, type GraphJob, type GraphParts, mostGraphBytes, mostInGraph } from './graph-enqueue.js'
import { type DraftEnvironment, waitsForOthers, wrong } from './job-draft.js'
import { refuseOtherSets, refuseReplacing, waitBounds } from './join-enqueue.js'

/** A member reports to at most this many joins. */
const mostJoinsOfOne = 64

/** One job of a flow, for the `after` of another one. */
export class FlowJob<T extends MemberTask = MemberTask> {
  readonly task: T
  readonly id: string

  /** @internal */
  constructor(task: T, id: string) {
    this.task = task
    this.id = id
  }
}

/** Jobs of one task in a flow, for the `after` of another one. */
export class FlowJobs<T extends MemberTask = MemberTask> {
  readonly task: T
  readonly jobs: readonly FlowJob<T>[]
  /** The beginning of their ids. */
  readonly #ids: string

  /** @internal */
  constructor(task: T, ids: string, jobs: readonly FlowJob<T>[]) {
    this.task = task
    this.jobs = jobs
    this.#ids = ids
  }

  /** @internal */
  get ids(): string {
    return this.#ids
  }
}

/** The jobs that a job of a flow waits for, by the names of its task's `joins`. */
export type FlowAfter<Sets extends JoinSets> = {
  readonly [Name in keyof Sets]: Sets[Name] extends ManyMembers<infer T>
    ? FlowJobs<T>
    : Sets[Name] extends { readonly task: infer T extends MemberTask }
      ? FlowJob<T>
      : Sets[Name] extends MemberTask
        ? FlowJob<Sets[Name]>
        : never
}

/** The options of a job of a flow that waits for others of it. */
export type FlowJoinOptions<Sets extends JoinSets, QueueName extends string = string> = Omit<
  JoinEnqueueOptions<Sets, QueueName>,
  'after' | 'sealWithin' | 'within'
> & { readonly after: FlowAfter<Sets> } & Pick<JoinEnqueueOptions<Sets>, 'within'>

type FlowOptions<QueueName extends string> = Omit<EnqueueOptions<QueueName>, 'ifWaiting' | 'atMost'>

/** The arguments of `f.job` after the task. */
type FlowArguments<T extends AnyPlainTask, QueueName extends string> =
  WaitsOf<T> extends 'joins'
    ? [input: TaskInput<T>, options: FlowJoinOptions<SetsOf<T>, QueueName>]
    : undefined extends TaskInput<T>
      ? [input?: TaskInput<T>, options?: FlowOptions<QueueName>]
      : [input: TaskInput<T>, options?: FlowOptions<QueueName>]

/** Builds a flow. A job must be there before another one can wait for it, so none can wait for itself. */
export interface Flow<QueueName extends string = string> {
  /** Adds a job. For a task with `joins`, `after` names the jobs of this flow that it waits for. */
  job<T extends AnyPlainTask>(task: T, ...args: FlowArguments<T, QueueName>): FlowJob<T>
  /** Adds jobs of one task, for a set of many. */
  jobs<T extends AnyPlainTask>(
    task: T,
    inputs: Iterable<TaskInput<T>>,
    options?: Omit<FlowOptions<QueueName>, 'id'>,
  ): FlowJobs<T>
}

/** What a flow resolves to: what its function returned, with handles in the place of jobs; all handles if nothing. */
export type FlowHandles<Returned> =
  Returned extends FlowJob<infer T>
    ? HandleOf<T>
    : Returned extends FlowJobs<infer T>
      ? HandleOf<T>[]
      : Returned extends object
        ? { -readonly [Key in keyof Returned]: FlowHandles<Returned[Key]> }
        : Returned extends void
          ? JobHandle[]
          : Returned

export class FlowEnqueue {
  readonly #parts: GraphParts
  readonly #graphs: GraphEnqueue

  constructor(parts: GraphParts) {
    this.#parts = parts
    this.#graphs = new GraphEnqueue(parts)
  }

  /** Calls `build`, and enqueues the jobs of the flow. Throws the errors of an enqueue; nothing was stored then. */
  async enqueue<Returned>(build: (flow: Flow) => Returned): Promise<FlowHandles<Returned>> {
    if (typeof build !== 'function')
      throw new InvalidArgumentError(`mill.flow() expects a function that adds jobs; got ${describe(build)}.`)
    await this.#parts.sender.refuseWithoutJoins()
    const rules = await this.#parts.rules()
    const flow = new JobFlow(rules)
    const returned = build(flow)
    if (returned instanceof Promise)
      throw new InvalidArgumentError(
        'the function of mill.flow() must not be async: it only adds jobs. Await what it needs before the call.',
      )
    const jobs = flow.graph()
    const handles = await this.#graphs.drafted(jobs, rules, async (drafts, again) => {
      const bytes = drafts.reduce((sum, draft) => sum + draft.bytes, 0)
      if (bytes > mostGraphBytes)
        throw new InvalidJobError(
          `the inputs of a flow take ${bytes} bytes together, the limit is ${mostGraphBytes}. Store large parts elsewhere and enqueue references to them.`,
        )
      const outcome = await this.#graphs.sent(drafts, rules)
      if (outcome === 'added') return outcome
      // The same flow was sent before: its jobs have the ids that they were given then.
      const stored = await this.#parts.sender.lookAt(jobs[0]!.item.graph)
      const life = await this.#storedLife(jobs, stored, flow)
      const theirs = life === undefined ? drafts : await again((id) => flow.renamed(id, life))
      const isLeftOpen = stored?.sets.some(({ size }) => size === undefined) === true
      // Its producer died before all of it was stored: it goes on.
      return isLeftOpen ? this.#graphs.sent(theirs, rules) : outcome
    })
    return flow.handles(returned, new Map(jobs.map(({ item }, i) => [item.graph.id, handles[i]!])))
  }

  /** What the made ids begin with in the stored flow: the first stored join says so that waits for a job of such an id. */
  async #storedLife(
    jobs: readonly GraphJob[],
    first: StoredJoin | undefined,
    flow: JobFlow,
  ): Promise<string | undefined> {
    for (const [i, { item, join, isIdOurs }] of jobs.entries()) {
      if (join === undefined || isIdOurs) continue
      const stored = i === 0 ? first : await this.#parts.sender.lookAt(item.graph)
      for (const { name, ids } of join.sets) {
        const life = flow.lifeIn(stored?.sets.find((set) => set.name === name)?.ids, ids)
        if (life !== undefined) return life
      }
    }
    return undefined
  }
}

/** A job of a flow and those who wait for it. */
interface Node {
  readonly item: GraphJob['item']
  readonly join?: NewJoin
  readonly memberOf: MemberOf[]
  readonly isIdOurs: boolean
}

class JobFlow implements Flow {
  /** The ids that it makes begin with this. What follows is the same if the flow is built again. */
  readonly #life: string
  #made = 0
  readonly #nodes = new Map<object, Node>()

  constructor({ newId }: DraftEnvironment) {
    this.#life = `${newId()}-`
  }

  #newId(): string {
    return `${this.#life}${this.#made++}`
  }

  /** The id that this one has in a flow of another life. */
  renamed(id: string, life: string): string {
    return id.startsWith(this.#life) ? `${life}${id.slice(this.#life.length)}` : id
  }

  /** The life of a flow in which the id is another; undefined if that cannot be said. */
  lifeIn(stored: string | undefined, id: string): string | undefined {
    if (stored === undefined || !id.startsWith(this.#life)) return undefined
    const rest = id.slice(this.#life.length)
    return stored.endsWith(`-${rest}`) ? stored.slice(0, -rest.length) : undefined
  }

  job<T extends AnyPlainTask>(task: T, ...[input, options]: FlowArguments<T, string>): FlowJob<T> {
    return this.#add(task, 'f.job()', input, options ?? {}, undefined)
  }

  jobs<T extends AnyPlainTask>(task: T, inputs: Iterable<TaskInput<T>>, options: object = {}): FlowJobs<T> {
    refuseOrdered(task, 'f.jobs()')
    if (task.joins !== undefined)
      throw wrong(
        task,
        'f.jobs() takes no task with `joins`, as each of its jobs waits for others: add each by f.job().',
      )
    if (typeof inputs !== 'object' || inputs === null || !(Symbol.iterator in inputs))
      throw wrong(task, `f.jobs() expects a list or an iterable of inputs; got ${describe(inputs)}.`)
    if ('id' in options) throw wrong(task, 'f.jobs() takes no id, as it adds many jobs. Add each by f.job().')
    const ids = this.#newId()
    const jobs: FlowJob<T>[] = []
    for (const input of inputs) jobs.push(this.#add(task, 'f.jobs()', input, options, `${ids}.${jobs.length}`))
    return new FlowJobs(task, ids, jobs)
  }

  #add<T extends AnyPlainTask>(
    task: T,
    call: string,
    input: unknown,
    given: object,
    madeId: string | undefined,
  ): FlowJob<T> {
    refuseOrdered(task, call)
    const { after, within, sealWithin, ...options } = given as EnqueueItem['options'] & { readonly after?: unknown }
    if (sealWithin !== undefined) throw wrong(task, 'sealWithin is for mill.enqueue(): a flow is stored in one step.')
    if (task.joins === undefined && (after !== undefined || within !== undefined))
      throw wrong(task, '`after` and `within` are for a task with `joins`, which say what its jobs wait for.')
    if (this.#nodes.size === mostInGraph)
      throw new InvalidJobError(
        `a flow has at most ${mostInGraph} jobs. For more, enqueue a join by mill.enqueue(), whose \`after\` takes any number of inputs.`,
      )
    const ownId = typeof options.id === 'string' ? options.id : undefined
    const id = ownId ?? madeId ?? this.#newId()
    const queue = options.queue ?? task.queue
    const as = `job ${this.#nodes.size} of the flow`
    const item = { task: task as AnyTask, input, options, child: id, graph: { id, queue, as } }
    const node = { item, memberOf: [], isIdOurs: ownId === undefined }
    const job = new FlowJob(task, id)
    this.#nodes.set(
      job,
      task.joins === undefined ? node : { ...node, join: this.#joinOf(task, item, after, { within }) },
    )
    return job
  }

  /** The join, to which its members report from now on. */
  #joinOf(
    task: AnyPlainTask,
    item: GraphJob['item'],
    after: unknown,
    bounds: Pick<EnqueueItem['options'], 'within'>,
  ): NewJoin {
    const joins = task.joins!
    if (after === undefined) throw waitsForOthers(task, joins)
    refuseReplacing(task, item.options)
    if (typeof after !== 'object' || after === null)
      throw wrong(task, `after must be an object; got ${describe(after)}.`)
    refuseOtherSets(task, joins, after)
    const places: [Node, MemberOf][] = []
    const sets = [...joins.values()].map((set) => {
      const given = (after as Record<string, unknown>)[set.name]
      const { ids, members } = this.#membersOf(task, set, given)
      const { name, isMany, onDead, keepResults: keepsResults } = set
      const queue = members[0]?.item.graph.queue ?? set.task.queue
      for (const [number, member] of members.entries())
        places.push([member, { join: item.graph, set: name, number, onDead, keepsResults }])
      return { name, queue, ids, isMany, onDead, keepsResults, size: members.length }
    })
    for (const [member, { join, ...place }] of places) {
      if (member.memberOf.length === mostJoinsOfOne)
        throw wrong(member.item.task, `${member.item.graph.as} is waited for by more than ${mostJoinsOfOne} jobs.`)
      member.memberOf.push({ join: { queue: join.queue, id: join.id }, ...place })
    }
    const cancelsRest = [...joins.values()].some(({ cancelRest }) => cancelRest)
    return { sets, ...waitBounds(task, bounds), ...(cancelsRest && { cancelsRest }) }
  }

  #membersOf(task: AnyPlainTask, set: MemberSet, given: unknown): { readonly ids: string; readonly members: Node[] } {
    const where = `after.${set.name}`
    const form = set.isMany ? 'what f.jobs() gave' : 'what f.job() gave'
    const isForm = set.isMany ? given instanceof FlowJobs : given instanceof FlowJob
    if (!isForm) throw wrong(task, `${where} must be ${form}; got ${describe(given)}.`)
    const { task: theirs } = given as FlowJob | FlowJobs
    if (theirs !== set.task)
      throw wrong(task, `${where} must be of task '${set.task.name}'; got a job of task '${theirs.name}'.`)
    const jobs = given instanceof FlowJobs ? given.jobs : [given as FlowJob]
    const members = jobs.map((job) => {
      const node = this.#nodes.get(job)
      if (node === undefined) throw wrong(task, `${where} is of another flow: add it to this one.`)
      return node
    })
    return { ids: given instanceof FlowJobs ? given.ids : (given as FlowJob).id, members }
  }

  /**
   * Joins first, those that wait for other joins before these; then the rest in its order. The first one names the flow:
   * if the user gave a join its id, that is known again.
   */
  graph(): GraphJob[] {
    const nodes = [...this.#nodes.values()]
    const joins = nodes.filter(({ join }) => join !== undefined).reverse()
    if (joins.length === 0)
      throw new InvalidJobError(
        'a flow needs a job that waits for others: one of a task with `joins`. Enqueue jobs that do not by mill.enqueueMany().',
      )
    const first = joins.find(({ isIdOurs }) => !isIdOurs) ?? joins[0]!
    return [first, ...joins.filter((one) => one !== first), ...nodes.filter(({ join }) => join === undefined)]
  }

  handles<Returned>(returned: Returned, handles: ReadonlyMap<string, JobHandle>): FlowHandles<Returned> {
    const found = (value: unknown): unknown => {
      if (value instanceof FlowJob) return handles.get(value.id)
      if (value instanceof FlowJobs) return value.jobs.map(found)
      if (Array.isArray(value)) return value.map(found)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, found(one)]))
    }
    const all = [...this.#nodes.keys()]
    return (returned === undefined ? all.map(found) : found(returned)) as FlowHandles<Returned>
  }
}

function refuseOrdered(task: unknown, call: string): asserts task is AnyPlainTask {
  refuseNoTask(task, call)
  if (task.kind !== 'ordered') return
  throw wrong(
    task,
    'an ordered task is no part of a flow: its jobs gather payloads and have no end of their own. Let a job of the flow enqueue it.',
  )
}
