/**
 * A flow: a graph of jobs that is built by hand, in which a job may be waited for by several joins. It is stored in one
 * step.
 */

import { InvalidArgumentError, InvalidJobError } from '../../core/errors.js'
import type { JobHandle } from '../../core/job/job.js'
import type { JobOrigin } from '../../core/job/job-origin.js'
import { describe } from '../../core/messages/describe.js'
import { type AnyTask, refuseNoTask } from '../../core/task/any-task.js'
import {
  type Flow,
  type FlowArguments,
  type FlowCall,
  type FlowContent,
  type FlowHandles,
  FlowJob,
  FlowJobs,
} from '../../core/task/flow.js'
import type { MemberSet, MemberTask } from '../../core/task/join-sets.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import type { AnyPlainTask } from '../../core/task/task.js'
import type { TaskInput } from '../../core/task/task-definition.js'
import type { StoredJoin } from '../../stores/contract/joins.js'
import type { MemberOf, NewJoin, NewSet } from '../../stores/contract/new-join.js'
import { memberId } from '../../stores/rules/join-rules.js'
import { waitsForOthers, wrong } from './draft-checks.js'
import { GraphEnqueue, type GraphJob, type GraphParts, mostGraphBytes, mostInGraph } from './graph-enqueue.js'
import { jobIn, refuseOtherSets, refuseReplacing, waitBounds } from './join-enqueue.js'

/** A member reports to at most this many joins. */
const mostJoinsOfOne = 64

export class FlowEnqueue {
  readonly #parts: GraphParts
  readonly #graphs: GraphEnqueue

  constructor(parts: GraphParts) {
    this.#parts = parts
    this.#graphs = new GraphEnqueue(parts)
  }

  /** Calls `build`, and enqueues the jobs of the flow. Throws the errors of an enqueue; nothing was stored then. */
  async enqueue<Returned>(build: (flow: Flow) => Returned, call?: FlowCall): Promise<FlowHandles<Returned>> {
    const { flow, returned } = builtFlow(build, call === undefined ? 'mill.flow()' : 'ctx.flow()')
    await this.#parts.sender.refuseWithoutJoins()
    const rules = await this.#parts.rules()
    const named = call?.named(flow.content)
    const jobs = flow.graph(rules.newId, named && { name: named.name, origin: call!.origin })
    const handles = await this.#graphs.drafted(jobs, rules, async (drafts, again) => {
      if (named?.isDone) return 'duplicate'
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
      if (isLeftOpen) return this.#graphs.sent(theirs, rules)
      await this.#graphs.reportIfDead(jobs[0]!)
      return outcome
    })
    if (named !== undefined) call!.enqueued(named.name, handles)
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

/** A place for a handle in a copied value. */
interface HandlePlace {
  readonly holder: object
  readonly key: string
  readonly job: FlowJob
}

/**
 * What `build` returned, copied before anything is stored: its lists and plain objects, into which handles are put in the
 * place of jobs. Everything else in it is as it was.
 */
class CopiedReturn<Returned> {
  readonly isNothing: boolean
  readonly #root = { value: undefined as unknown }
  readonly #places: HandlePlace[] = []
  readonly #copies = new Map<object, object>()

  constructor(returned: Returned) {
    this.isNothing = returned === undefined
    this.#put(this.#root, 'value', returned)
  }

  withHandles(handleOf: (job: FlowJob) => JobHandle | undefined): FlowHandles<Returned> {
    for (const { holder, key, job } of this.#places) putInto(holder, key, handleOf(job))
    return this.#root.value as FlowHandles<Returned>
  }

  #put(holder: object, key: string, value: unknown): void {
    if (value instanceof FlowJob) this.#places.push({ holder, key, job: value })
    // Keeps the order of the keys, also where a handle follows.
    putInto(holder, key, value instanceof FlowJobs ? this.#copied(value.jobs) : this.#copied(value))
  }

  /** A value may contain itself. */
  #copied(value: unknown): unknown {
    if (!isPlain(value)) return value
    const known = this.#copies.get(value)
    if (known !== undefined) return known
    const copy = Array.isArray(value) ? new Array<unknown>(value.length) : {}
    this.#copies.set(value, copy)
    for (const [key, one] of Object.entries(value)) this.#put(copy, key, one)
    return copy
  }
}

/** Whether the value is a list or an object of no class. */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value) as object | null
  // That of all objects is another one in each realm of Node's `vm`.
  return Array.isArray(value) || prototype === null || Object.getPrototypeOf(prototype) === null
}

/** Also of the name `__proto__`. */
function putInto(holder: object, key: string, value: unknown): void {
  Object.defineProperty(holder, key, { value, configurable: true, enumerable: true, writable: true })
}

/** The flow that `build` has built, and what that returned. Throws `InvalidArgumentError` and `InvalidJobError`. */
export function builtFlow<Returned>(
  build: (flow: Flow) => Returned,
  call: string,
): { readonly flow: JobFlow; readonly returned: CopiedReturn<Returned> } {
  if (typeof build !== 'function')
    throw new InvalidArgumentError(`${call} expects a function that adds jobs; got ${describe(build)}.`)
  const flow = new JobFlow()
  const returned = build(flow)
  if (returned instanceof Promise)
    throw new InvalidArgumentError(
      `the function of ${call} must not be async: it only adds jobs. Await what it needs before the call.`,
    )
  return { flow, returned: new CopiedReturn(returned) }
}

/** A job of a flow and those for which it waits. */
interface Node {
  readonly place: number
  readonly task: AnyTask
  readonly input: unknown
  readonly options: EnqueueItem['options']
  /** As they were given. */
  readonly asked: object
  /** The list that it is in, and its number there: that of its `f.jobs()`, or of the first `after` with it in a list. */
  among: { readonly jobs: ManyNodes; readonly number: number } | undefined
  readonly waits: Waits | undefined
  /** How many wait for it. */
  waitedFor: number
}

/** A list of jobs for sets of many. Their ids begin alike, by the place of the first, and end with their numbers. */
interface ManyNodes {
  readonly place: number
  readonly nodes: Node[]
}

interface Waits extends Pick<NewJoin, 'withinMs' | 'sealWithinMs' | 'cancelsRest'> {
  readonly sets: readonly { readonly set: MemberSet; readonly members: readonly Node[]; readonly jobs?: ManyNodes }[]
}

class JobFlow implements Flow {
  /** The ids that it makes begin with this. What follows is the same if the flow is built again. */
  #life = ''
  readonly #nodes = new Map<object, Node>()
  readonly #many = new Map<FlowJobs, ManyNodes>()
  /** By the ids that the last `graph()` has given. */
  #ids = new Map<object, string>()

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

  job<T extends MemberTask>(task: T, ...[input, options]: FlowArguments<T, string>): FlowJob<T> {
    return this.#add(task, 'f.job()', input, options ?? {})
  }

  jobs<T extends MemberTask>(task: T, inputs: Iterable<TaskInput<T>>, options: object = {}): FlowJobs<T> {
    refuseOrdered(task, 'f.jobs()')
    if (task.joins !== undefined)
      throw wrong(
        task,
        'f.jobs() takes no task with `joins`, as each of its jobs waits for others: add each by f.job(), and give a list of them as `after`.',
      )
    if (typeof inputs !== 'object' || inputs === null || !(Symbol.iterator in inputs))
      throw wrong(task, `f.jobs() expects a list or an iterable of inputs; got ${describe(inputs)}.`)
    if ('id' in options) throw wrong(task, 'f.jobs() takes no id, as it adds many jobs. Add each by f.job().')
    const many: ManyNodes = { place: this.#nodes.size, nodes: [] }
    const jobs: FlowJob<T>[] = []
    for (const input of inputs) {
      const job = this.#add<T>(task, 'f.jobs()', input, options)
      this.#enter(many, this.#nodes.get(job)!)
      jobs.push(job)
    }
    const added = new FlowJobs<T>(task, jobs)
    this.#many.set(added, many)
    return added
  }

  #add<T extends MemberTask>(task: T, call: string, input: unknown, asked: object): FlowJob<T> {
    refuseOrdered(task, call)
    const { after, within, sealWithin, ...options } = asked as EnqueueItem['options'] & { readonly after?: unknown }
    if (sealWithin !== undefined) throw wrong(task, 'sealWithin is for mill.enqueue(): a flow is stored in one step.')
    if (task.joins === undefined && (after !== undefined || within !== undefined))
      throw wrong(
        task,
        '`after` and `within` are for a task with `joins`: define it with `joins: { name: task }`, or `many(task)`, of the jobs that it waits for.',
      )
    if (this.#nodes.size === mostInGraph)
      throw new InvalidJobError(
        `a flow has at most ${mostInGraph} jobs. For more, enqueue a join by mill.enqueue(), whose \`after\` takes any number of inputs.`,
      )
    const place = this.#nodes.size
    const waits = task.joins === undefined ? undefined : this.#waitsOf(task, options, after, { within })
    const job = new FlowJob<T>(task)
    this.#nodes.set(job, { place, task: task as AnyTask, input, options, asked, among: undefined, waits, waitedFor: 0 })
    return job
  }

  /** The jobs for which a new one waits. */
  #waitsOf(
    task: AnyPlainTask,
    options: EnqueueItem['options'],
    after: unknown,
    bounds: Pick<EnqueueItem['options'], 'within'>,
  ): Waits {
    const joins = task.joins!
    if (after === undefined) throw waitsForOthers(task, joins)
    refuseReplacing(task, options)
    if (typeof after !== 'object' || after === null || Array.isArray(after) || jobIn(after) !== undefined)
      throw wrong(
        task,
        `after must be an object with the jobs for ${[...joins.keys()].join(', ')}; got ${described(after)}.`,
      )
    refuseOtherSets(task, joins, after)
    const sets = [...joins.values()].map((set) => ({
      set,
      ...this.#membersOf(task, set, (after as Record<string, unknown>)[set.name]),
    }))
    for (const { members } of sets)
      for (const member of members) {
        if (member.waitedFor === mostJoinsOfOne)
          throw wrong(member.task, `${nameOf(member)} is waited for by more than ${mostJoinsOfOne} jobs.`)
        member.waitedFor += 1
      }
    const cancelsRest = [...joins.values()].some(({ cancelRest }) => cancelRest)
    return { sets, ...waitBounds(task, bounds), ...(cancelsRest && { cancelsRest }) }
  }

  #membersOf(
    task: AnyPlainTask,
    set: MemberSet,
    given: unknown,
  ): { readonly members: readonly Node[]; readonly jobs?: ManyNodes } {
    const where = `after.${set.name}`
    if (set.isMany && Array.isArray(given)) return this.#listed(task, set, given)
    const form = set.isMany ? 'a list of f.jobs(), or an array of jobs of f.job()' : 'a job of f.job()'
    const isForm = set.isMany ? given instanceof FlowJobs : given instanceof FlowJob
    if (!isForm) throw wrong(task, `${where} must be ${form}; got ${described(given)}.`)
    const { task: theirs } = given as FlowJob | FlowJobs
    if (theirs !== set.task) throw ofOtherTask(task, set, where, theirs)
    const many = given instanceof FlowJobs ? this.#many.get(given) : undefined
    const members = (given instanceof FlowJobs ? given.jobs : [given as FlowJob]).map((job) => this.#nodes.get(job))
    if (members.includes(undefined) || (set.isMany && many === undefined))
      throw wrong(task, `${where} is of another flow: add it to this one.`)
    return { members: members as Node[], ...(many && { jobs: many }) }
  }

  /** The jobs of a list. Stores know a member by its number, so a job has the same one in every list. */
  #listed(
    task: AnyPlainTask,
    set: MemberSet,
    given: readonly unknown[],
  ): { readonly members: readonly Node[]; readonly jobs: ManyNodes } {
    const members = given.map((job, i): Node => {
      const where = `after.${set.name}[${i}]`
      if (!(job instanceof FlowJob)) throw wrong(task, `${where} must be a job of f.job(); got ${described(job)}.`)
      if (job.task !== set.task) throw ofOtherTask(task, set, where, job.task)
      const node = this.#nodes.get(job)
      if (node === undefined) throw wrong(task, `${where} is of another flow: add it to this one.`)
      if (ownIdOf(node.options) !== undefined)
        throw wrong(task, `${where} has an id of its own, and the ids of a list are made from one: give it none.`)
      return node
    })
    const first = members[0]
    const jobs = first?.among?.jobs ?? { place: first?.place ?? this.#nodes.size, nodes: [] }
    for (const [i, node] of members.entries()) {
      const where = `after.${set.name}[${i}]`
      if (queueOf(node) !== queueOf(first!))
        throw wrong(
          task,
          `${where} is in queue '${queueOf(node)}', and those before it in '${queueOf(first!)}': the jobs of a list are in one queue.`,
        )
      if (members.indexOf(node) < i) throw wrong(task, `${where} is in the list twice.`)
      if (node.among === undefined && jobs.nodes.length === i) this.#enter(jobs, node)
      if (jobs.nodes[i] !== node)
        throw wrong(
          task,
          `${where} is ${nameOf(node)}, and a list before had its jobs in another order. Lists that have a job in common must begin with the same jobs in the same order: give the same list.`,
        )
    }
    return { members, jobs }
  }

  #enter(jobs: ManyNodes, node: Node): void {
    node.among = { jobs, number: jobs.nodes.length }
    jobs.nodes.push(node)
  }

  /** The jobs, in the order in which they were added. */
  get content(): FlowContent[] {
    return [...this.#nodes.values()].map(({ task, input, options }) => ({ task, input, id: ownIdOf(options) }))
  }

  /**
   * The jobs with their ids: joins first, those that wait for other joins before these; then the rest in its order. The
   * first one names the flow: if the user gave a join its id, that is known again. `newId`: for a flow that is enqueued
   * once. `call`: a handler enqueues it, and the name of its call is the id of the first, whatever else the flow has.
   */
  graph(newId: () => string, call?: { readonly name: string; readonly origin: JobOrigin }): GraphJob[] {
    const nodes = [...this.#nodes.values()]
    const joins = nodes.filter(({ waits }) => waits !== undefined).reverse()
    if (joins.length === 0)
      throw new InvalidJobError(
        'a flow needs a job that waits for others: one of a task with `joins`. Enqueue jobs that do not by mill.enqueueMany().',
      )
    this.#life = `${call?.name ?? newId()}-`
    const isNamed = ({ options }: Node) => ownIdOf(options) !== undefined
    // The id of one in a list follows from its number.
    const canName = (one: Node) => isNamed(one) === (call === undefined) && one.among === undefined
    const first = joins.find(canName) ?? joins[0]!
    const idsOf = ({ place }: ManyNodes | Node) => `${this.#life}${place}`
    const madeId = (node: Node) =>
      node.among === undefined
        ? idsOf(node)
        : memberId({ ids: idsOf(node.among.jobs), isMany: true }, node.among.number)
    const ids = new Map(
      nodes.map((node) => [node, ownIdOf(node.options) ?? (call && node === first ? call.name : madeId(node))]),
    )
    this.#ids = new Map([...this.#nodes].map(([job, node]) => [job, ids.get(node)!]))
    const places = new Map(nodes.map((node): [Node, MemberOf[]] => [node, []]))
    const made = new Map(
      nodes.map((node): [Node, GraphJob] => {
        const { task, input, options, asked, waits } = node
        const id = ids.get(node)!
        const graph = { id, queue: queueOf(node), as: nameOf(node) }
        const join = waits && joinOf(node, waits, (member) => ids.get(member)!, idsOf, places)
        // A handler may run again: the first is remembered.
        const isIdOurs = !isNamed(node) && (call === undefined || node !== first)
        const item = { task, input, options, child: id, graph, ...(call && { origin: call.origin, asked }) }
        return [
          node,
          {
            item,
            ...(join && { join }),
            memberOf: places.get(node)!,
            isIdOurs,
            isIdNew: call === undefined && !isNamed(node),
          },
        ]
      }),
    )
    const order = [first, ...joins.filter((one) => one !== first), ...nodes.filter(({ waits }) => waits === undefined)]
    return order.map((node) => made.get(node)!)
  }

  handles<Returned>(returned: CopiedReturn<Returned>, handles: ReadonlyMap<string, JobHandle>): FlowHandles<Returned> {
    const found = (job: object) => handles.get(this.#ids.get(job) ?? '')
    if (returned.isNothing) return [...this.#nodes.keys()].map(found) as FlowHandles<Returned>
    return returned.withHandles(found)
  }
}

function ownIdOf({ id }: EnqueueItem['options']): string | undefined {
  return typeof id === 'string' ? id : undefined
}

function nameOf({ place }: Node): string {
  return `job ${place} of the flow`
}

function queueOf({ task, options }: Node): string {
  return options.queue ?? task.queue
}

/** The join, to which its members report: `places` is given their places. */
function joinOf(
  join: Node,
  { sets, ...bounds }: Waits,
  idOf: (node: Node) => string,
  idsOf: (jobs: ManyNodes) => string,
  places: ReadonlyMap<Node, MemberOf[]>,
): NewJoin {
  const home = { queue: queueOf(join), id: idOf(join) }
  return {
    sets: sets.map(({ set, members, jobs }): NewSet => {
      const { name, isMany, onDead, keepResults: keepsResults } = set
      for (const [number, member] of members.entries())
        places.get(member)!.push({ join: home, set: name, number, onDead, keepsResults })
      const ids = jobs === undefined ? idOf(members[0]!) : idsOf(jobs)
      const queue = members[0] === undefined ? set.task.queue : queueOf(members[0])
      return { name, queue, ids, isMany, onDead, keepsResults, size: members.length }
    }),
    ...bounds,
  }
}

/** A value in the place of a job of the flow. */
function described(value: unknown): string {
  return jobIn(value) ?? (Array.isArray(value) ? 'a list' : describe(value))
}

function ofOtherTask(task: AnyTask, set: MemberSet, where: string, theirs: MemberTask): Error {
  return wrong(task, `${where} must be of task '${set.task.name}'; got a job of task '${theirs.name}'.`)
}

function refuseOrdered(task: unknown, call: string): asserts task is AnyPlainTask {
  refuseNoTask(task, call)
  if (task.kind !== 'ordered') return
  throw wrong(
    task,
    'an ordered task is no part of a flow: its jobs gather payloads and have no end of their own. Let a job of the flow enqueue it.',
  )
}
