/**
 * The enqueue of a join: a job with the jobs that it waits for, its members. If they are few, all are stored in one
 * step. Otherwise the join is stored open, its members follow in calls, and then it is sealed by their numbers.
 */

import { createHash } from 'node:crypto'
import {
  hasCode,
  isMillraceError,
  JobCancelledError,
  JobDeadError,
  QueueDrainingError,
  QueueFullError,
} from '../../core/errors.js'
import type { JobHandle } from '../../core/job/job.js'
import { ownError } from '../../core/job/job-failures.js'
import { describe } from '../../core/messages/describe.js'
import type { AnyTask } from '../../core/task/any-task.js'
import { FlowJob, FlowJobs } from '../../core/task/flow.js'
import type { MemberSet } from '../../core/task/join-sets.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import { durationForm, furthestMs, parseDuration } from '../../core/values/duration.js'
import { digestId, mostIdBytes } from '../../core/values/ids.js'
import type { StoredJob } from '../../stores/contract/job-records.js'
import type { NewJoin, NewSet } from '../../stores/contract/new-join.js'
import { lateReason, memberId, neverSealedReason } from '../../stores/rules/join-rules.js'
import { StoredJobHandle } from '../jobs/stored-job-handle.js'
import { waitsForOthers, wrong } from './draft-checks.js'
import {
  callOf,
  type GraphDraft,
  GraphEnqueue,
  type GraphJob,
  type GraphParts,
  mostGraphBytes,
  mostInGraph,
} from './graph-enqueue.js'
import type { DraftEnvironment } from './job-draft.js'

/** The most bytes of one call: the limit of stores for one message. */
const mostCallBytes = 1_048_576
/** The most members of a set. */
const mostMembers = 1_000_000
/** How long its members may take to be added, unless its enqueue says otherwise. */
const defaultSealMs = 3_600_000
/** Room in an id for the number of a member. */
const numberBytes = 8

/** A set whose members are being added, and what is known of it. */
interface FillingSet {
  readonly set: NewSet
  /** The ids of its members were made for this enqueue. */
  readonly isNew: boolean
  readonly inputs: MemberInputs
  /** The number of the next member. */
  from: number
}

/** A join to which members are being added. */
interface OpenJoin {
  readonly home: GraphJob
  /** Once its record was read: a later job of its id has another. */
  createdAt: number | undefined
}

export class JoinEnqueue {
  readonly #parts: GraphParts
  readonly #graphs: GraphEnqueue

  constructor(parts: GraphParts) {
    this.#parts = parts
    this.#graphs = new GraphEnqueue(parts)
  }

  /**
   * Enqueues a job that waits for others, as the item's `after` has them. Throws the errors of an enqueue. An input that
   * does not fit is named by its set and number: of at most 1,000 jobs nothing is stored then; of more, the members
   * before it are, and the join waits open. Throws `JobCancelledError` if the join is cancelled or deleted before all
   * members are added, and `JobDeadError` if they are all added only after the time that the join had.
   */
  async enqueue(given: EnqueueItem): Promise<JobHandle> {
    const { options, after, bounds } = askedOf(given)
    await this.#parts.sender.refuseWithoutJoins()
    const rules = await this.#parts.rules()
    const item = { ...given, options }
    const { task, child } = item
    const ownId = typeof options.id === 'string' ? options.id : undefined
    const id = ownId ?? child ?? rules.newId()
    const isIdNew = ownId === undefined && child === undefined
    const queue = options.queue ?? task.queue
    const sets = [...after.values()].map(({ set }) => newSet(set, id, isIdNew ? '' : lifeOf(rules)))
    const join: NewJoin = {
      sets,
      ...bounds,
      ...([...after.values()].some(({ set }) => set.cancelRest) && { cancelsRest: true as const }),
    }
    const home: GraphJob = {
      item: { ...item, child: id, graph: { id, queue } },
      join,
      isIdOurs: isIdNew,
      isIdNew,
    }
    const filling = sets.map((set): FillingSet => ({ set, isNew: true, inputs: after.get(set.name)!, from: 0 }))
    try {
      return await this.#enqueued(home, filling, rules)
    } finally {
      for (const { inputs } of filling) await inputs.close()
    }
  }

  async #enqueued(home: GraphJob, filling: readonly FillingSet[], rules: DraftEnvironment): Promise<JobHandle> {
    const { item } = home
    if (item.isDone) return (await this.#graphs.drafted([home], rules, async () => 'duplicate'))[0]!
    const isWhole = await areFew(filling)
    const join: OpenJoin = { home, createdAt: undefined }
    const first = filling.flatMap((one) =>
      isWhole || !one.set.isMany ? membersOf(home, one, one.inputs.take(mostInGraph)) : [],
    )
    const [handle] = await this.#graphs.drafted([home, ...first], rules, async (drafts) => {
      const bytes = drafts.reduce((sum, draft) => sum + draft.bytes, 0)
      if (isWhole && bytes <= mostGraphBytes)
        return this.#graphs.sent(
          sized(drafts, filling, () => true),
          rules,
        )
      // What is one member goes with the join in any case.
      const isFirst = ({ job }: GraphDraft, i: number) =>
        i === 0 || job.memberOf!.some(({ set }) => isOne(set, filling))
      const outcome = await this.#graphs.sent(
        sized(drafts.filter(isFirst), filling, ({ isMany }) => !isMany),
        rules,
      )
      const rest = drafts.filter((draft, i) => !isFirst(draft, i))
      if (outcome === 'added' && isWhole)
        await this.#addAndSeal(join, filling, () => this.#sendInOrder(join, rest, rules))
      return outcome
    })
    const isAdded = handle!.outcome === 'added'
    if (isAdded && isWhole) return handle!
    const open = isAdded ? filling.filter(({ set }) => set.isMany) : await this.#leftOpen(home, filling)
    if (open.length > 0) await this.#fill(join, open, rules)
    else await this.#graphs.reportIfDead(home)
    return handle!
  }

  /** The sets of a join that was there before, as far as its producer did not come to their ends. */
  async #leftOpen({ item: { graph } }: GraphJob, filling: readonly FillingSet[]): Promise<FillingSet[]> {
    const stored = await this.#parts.sender.lookAt(graph)
    return (stored?.sets ?? []).flatMap(({ size, added, ...set }) => {
      const one = filling.find((each) => each.set.name === set.name)
      return size !== undefined || one === undefined
        ? []
        : [{ set, isNew: false, inputs: one.inputs.again(), from: added }]
    })
  }

  async #fill(join: OpenJoin, open: readonly FillingSet[], rules: DraftEnvironment): Promise<void> {
    const { home } = join
    await this.#addAndSeal(join, open, async () => {
      let isOpen = true
      for (const one of open) {
        if (isOpen) await one.inputs.skip(one.from)
        while (isOpen) {
          await one.inputs.read(rules.traits.maxBatch)
          const inputs = one.inputs.take(rules.traits.maxBatch)
          if (inputs.length === 0) break
          if (one.from + inputs.length > mostMembers)
            throw wrong(home.item.task, `set '${one.set.name}' has more than ${mostMembers} members, the most of one.`)
          const jobs = membersOf(home, one, inputs)
          await this.#graphs.drafted(jobs, rules, async (drafts) => {
            isOpen = await this.#sendInOrder(join, drafts, rules)
            return isOpen ? 'added' : 'duplicate'
          })
        }
      }
      return isOpen
    })
  }

  /** `add` returns false if the join waits for no more members. An error says what is left of the join. */
  async #addAndSeal(join: OpenJoin, filled: readonly FillingSet[], add: () => Promise<boolean>): Promise<void> {
    let isSealing = false
    try {
      if (!(await add())) return
      isSealing = true
      await this.#seal(join, filled)
    } catch (error) {
      throw isMillraceError(error) ? leftAt(error, join, filled, isSealing) : error
    }
  }

  /**
   * One call after the other: the store takes the members of a set in the order of their numbers. Another producer of a
   * join whose id may come again may be adding the same ones. Returns false if that one has added all, and the join
   * waits no more.
   */
  async #sendInOrder(
    join: OpenJoin,
    drafts: readonly GraphDraft[],
    { traits, newId }: DraftEnvironment,
  ): Promise<boolean> {
    for (let at = 0; at < drafts.length; ) {
      const { queue } = drafts[at]!
      const some: GraphDraft[] = []
      let bytes = 0
      for (; at < drafts.length && some.length < traits.maxBatch; at += 1) {
        const draft = drafts[at]!
        bytes += draft.bytes
        if (draft.queue !== queue || (some.length > 0 && bytes > mostCallBytes)) break
        some.push(draft)
      }
      // Producers may be slow. A store takes members of a join that is gone for jobs like any other.
      if (!(await this.#isOpen(join))) return false
      const call = { ...callOf(queue, some, newId()), hasNewIds: join.home.isIdNew }
      const answers = await this.#parts.sender.send(call)
      if (answers.includes('full')) throw new QueueFullError(queue)
      if (answers.includes('draining')) throw new QueueDrainingError(queue)
    }
    return true
  }

  async #seal(join: OpenJoin, filled: readonly FillingSet[]): Promise<void> {
    const sizes = filled.map(({ set, from }) => [set.name, from])
    const { answer, isResent } = await this.#parts.sender.seal(join.home.item.graph, Object.fromEntries(sizes))
    if (answer === 'sealed') return
    const record = await this.#recordOf(join)
    if (record?.state === 'dead' && wasTooSlow(record)) {
      const { queue, id, reason, error } = record
      throw new JobDeadError(queue, id, reason, error && ownError(error))
    }
    // The answer to a seal was lost, and the join has run since.
    if (record === undefined && isResent) return
    // Another producer may have sealed it, and it runs.
    refuseGone(join, record)
  }

  /** Whether the join waits for members, or would if it was revived. Throws `JobCancelledError` if it is gone. */
  async #isOpen(join: OpenJoin): Promise<boolean> {
    const record = await this.#recordOf(join)
    refuseGone(join, record)
    return record.state === 'waiting' || record.state === 'dead'
  }

  /** The record of the join; undefined if nothing is kept of it, or only of a later job of its id. */
  async #recordOf(join: OpenJoin): Promise<StoredJob | undefined> {
    const record = await this.#parts.sender.recordOf(join.home.item.graph)
    join.createdAt ??= record?.createdAt
    return record?.createdAt === join.createdAt ? record : undefined
  }
}

/** Whether the join died because its producer took too long. Of what else it died its result says, as that of any job. */
function wasTooSlow({ reason }: StoredJob): boolean {
  return reason === neverSealedReason || reason === lateReason
}

/** Throws `JobCancelledError`. */
function refuseGone({ home }: OpenJoin, record: StoredJob | undefined): asserts record is StoredJob {
  const { queue, id } = home.item.graph
  if (record === undefined || record.state === 'cancelled') throw new JobCancelledError(queue, id, record?.reason)
}

interface Asked {
  /** The options of the job itself. */
  readonly options: EnqueueItem['options']
  /** By name of the set. */
  readonly after: ReadonlyMap<string, MemberInputs>
  readonly bounds: Pick<NewJoin, 'withinMs' | 'sealWithinMs'>
}

/** The `after` and the options of an enqueue, checked. Throws `InvalidJobError`. */
function askedOf({ task, options: given }: EnqueueItem): Asked {
  const joins = task.joins!
  if (typeof given !== 'object' || given === null)
    throw wrong(task, `options must be an object; got ${describe(given)}.`)
  const { after, within, sealWithin, ...options } = given as EnqueueItem['options'] & { readonly after?: unknown }
  if (after === undefined) throw waitsForOthers(task, joins)
  refuseReplacing(task, options)
  refuseJobs(task, 'after', after)
  if (typeof after !== 'object' || after === null || Array.isArray(after))
    throw wrong(
      task,
      `after must be an object with the inputs of ${[...joins.keys()].join(', ')}; got ${describe(after)}.`,
    )
  refuseOtherSets(task, joins, after)
  const inputs = new Map<string, MemberInputs>()
  for (const [name, set] of joins) inputs.set(name, inputsOf(task, set, (after as Record<string, unknown>)[name]))
  return { options, after: inputs, bounds: waitBounds(task, { within, sealWithin }) }
}

/** Throws `InvalidJobError`. */
export function refuseReplacing(task: AnyTask, { ifWaiting, atMost }: EnqueueItem['options']): void {
  if (ifWaiting === undefined && atMost === undefined) return
  throw wrong(task, 'ifWaiting and atMost are not for a job that waits for others: nothing takes its place.')
}

/** Refuses sets that the task does not have, and those that are missing. */
export function refuseOtherSets(task: AnyTask, joins: ReadonlyMap<string, MemberSet>, after: object): void {
  const known = [...joins.keys()].join(', ')
  for (const name of Object.keys(after))
    if (!joins.has(name)) throw wrong(task, `after.${name} is no set of its joins, which are ${known}.`)
  for (const name of joins.keys())
    if (!Object.hasOwn(after, name))
      throw wrong(task, `after.${name} is missing: give what its set waits for. Its joins are ${known}.`)
}

/** How long it waits, and for how long its members may be added. Throws `InvalidJobError`. */
export function waitBounds(
  task: AnyTask,
  { within, sealWithin }: Pick<EnqueueItem['options'], 'within' | 'sealWithin'>,
): Asked['bounds'] {
  const withinMs = boundOf(task, 'within', within)
  const holding = [...task.joins!.values()].find(({ onDead }) => onDead === 'hold')
  if (withinMs === undefined && holding !== undefined)
    throw wrong(
      task,
      `set '${holding.name}' holds, so a dead member that nobody revives would make it wait for ever: give \`within\`, the longest that it waits.`,
    )
  return {
    ...(withinMs !== undefined && { withinMs }),
    sealWithinMs: boundOf(task, 'sealWithin', sealWithin) ?? defaultSealMs,
  }
}

function boundOf(task: AnyTask, name: string, given: unknown): number | undefined {
  if (given === undefined) return undefined
  const ms = parseDuration(given)
  if (ms === undefined || ms === 0)
    throw wrong(task, `${name} must be ${durationForm}, above 0; got ${describe(given)}.`)
  if (ms > furthestMs) throw wrong(task, `${name} of ${ms} ms is longer than ${furthestMs} ms, the longest possible.`)
  return ms
}

function inputsOf(task: AnyTask, set: MemberSet, given: unknown): MemberInputs {
  if ((set.task as AnyTask).joins !== undefined)
    throw wrong(
      task,
      `set '${set.name}' is of task '${set.task.name}', which waits for jobs itself: enqueue all of them by mill.flow().`,
    )
  refuseJobs(task, `after.${set.name}`, given)
  if (!set.isMany) return new MemberInputs(set, [given])
  const isText = typeof given === 'string'
  if (
    !isText &&
    typeof given === 'object' &&
    given !== null &&
    (Symbol.iterator in given || Symbol.asyncIterator in given)
  )
    return new MemberInputs(set, given as Iterable<unknown> | AsyncIterable<unknown>)
  throw wrong(
    task,
    `after.${set.name} must be a list, an iterable or an async iterable of inputs; got ${describe(given)}.`,
  )
}

/** Refuses jobs in the place of inputs. Throws `InvalidJobError`. */
function refuseJobs(task: AnyTask, where: string, given: unknown): void {
  const what = jobIn(given)
  if (what === undefined) return
  throw wrong(
    task,
    `${where} takes what new jobs are given as input; got ${what}. Nobody can wait for a job that was there before: give its input, or build a graph of new jobs by mill.flow().`,
  )
}

/** The kind of job, in words; undefined if the value is no job. */
export function jobIn(value: unknown): string | undefined {
  if (value instanceof StoredJobHandle) return 'the handle of a stored job'
  if (value instanceof FlowJob) return 'a job of a flow'
  return value instanceof FlowJobs ? 'a list of f.jobs()' : undefined
}

/** Part of the ids of the members of a join whose id may come again: those of its next life are others. */
function lifeOf({ newId }: DraftEnvironment): string {
  return `.${newId().slice(-6)}`
}

function newSet({ name, task, isMany, onDead, keepResults }: MemberSet, joinId: string, life: string): NewSet {
  const ids = `${joinId}${life}.${name}`
  const isLong = Buffer.byteLength(ids) > mostIdBytes - numberBytes
  return {
    ...{ name, queue: task.queue, isMany, onDead, keepsResults: keepResults },
    ids: isLong ? digestId(createHash('sha256').update(ids).digest()) : ids,
  }
}

/** Whether all members fit into one step with the join. Reads at most one more. */
async function areFew(filling: readonly FillingSet[]): Promise<boolean> {
  let room = mostInGraph - filling.filter(({ set }) => !set.isMany).length
  for (const { set, inputs } of filling) {
    await inputs.read(set.isMany ? room + 1 : 1)
    if (!set.isMany) continue
    if (inputs.buffered > room) return false
    room -= inputs.buffered
  }
  return true
}

/** The next members of the set, as jobs of the graph. Counts them. */
function membersOf({ item }: GraphJob, one: FillingSet, inputs: readonly unknown[]): GraphJob[] {
  const { set } = one
  const { name, onDead, keepsResults, queue } = set
  const { id } = item.graph
  const join = { queue: item.graph.queue, id }
  const { task } = item.task.joins!.get(name)!
  return inputs.map((input): GraphJob => {
    const number = one.from++
    if (set.isMany) refuseJobs(item.task, `after.${name}[${number}]`, input)
    const child = memberId(set, number)
    const as = set.isMany ? `member ${number} of set '${name}'` : `the member of set '${name}'`
    return {
      item: {
        ...{ task: task as AnyTask, input, options: {}, child, graph: { id: child, queue, as } },
        ...(item.origin && { origin: item.origin }),
      },
      memberOf: [{ join, set: name, number, onDead, keepsResults }],
      isIdOurs: true,
      isIdNew: one.isNew,
    }
  })
}

function isOne(name: string, filling: readonly FillingSet[]): boolean {
  return filling.some(({ set }) => set.name === name && !set.isMany)
}

/** The drafts, in which the join knows the sizes of these sets: all their members go with it. */
function sized(
  [join, ...members]: readonly GraphDraft[],
  filling: readonly FillingSet[],
  isSealed: (set: NewSet) => boolean,
): GraphDraft[] {
  const sets = filling.map(({ set, from }) => (isSealed(set) ? { ...set, size: from } : set))
  return [{ ...join!, job: { ...join!.job, join: { ...join!.job.join!, sets } } }, ...members]
}

/** The same error, which says what is left of the join. */
function leftAt<E extends Error>(error: E, join: OpenJoin, filled: readonly FillingSet[], isSealing: boolean): E {
  const { id, queue } = join.home.item.graph
  const stored = filled.reduce((sum, { from }) => sum + from, 0)
  if (hasCode(error, 'job-cancelled'))
    error.message += `\nIt was cancelled or deleted while its members were added: at most ${stored} of its members are stored, and run although nothing waits for them. Cancel those that are not wanted.`
  else if (hasCode(error, 'job-dead'))
    error.message += `\nIt died before its ${stored} members were all added; now they are, and run. Revive it, and it waits for those that have not ended: \`millrace morgue revive ${queue} ${id}\`. To enqueue it anew, give another id, and a longer \`sealWithin\`, or \`within\` if it died as join-late.`
  else if (isSealing && hasCode(error, 'store-unavailable') && error.inDoubt)
    error.message += `\nThe join '${id}' in queue '${queue}' is stored with all its members, and only its seal is in doubt: it runs when they have ended, or is dead as join-never-sealed after its sealWithin. Enqueue it again under the same id of your own, which seals it; if it has none, look what becomes of it first.`
  else
    error.message += `\nThe join is stored, with at most ${stored} of its members, and is open: enqueue it again under the same id of your own to go on, or cancel it. Otherwise it is dead as join-never-sealed after its sealWithin.`
  return error
}

/** The inputs of the members of a set, which are read as they are needed. */
class MemberInputs {
  readonly set: MemberSet
  readonly #next: () => IteratorResult<unknown> | Promise<IteratorResult<unknown>>
  readonly #leave: () => unknown
  #buffer: unknown[] = []
  /** What was taken, as long as it may be wanted again. */
  #taken: unknown[] = []
  #isOver = false

  constructor(set: MemberSet, inputs: Iterable<unknown> | AsyncIterable<unknown>) {
    this.set = set
    const iterator = Symbol.asyncIterator in inputs ? inputs[Symbol.asyncIterator]() : inputs[Symbol.iterator]()
    this.#next = () => iterator.next()
    this.#leave = () => iterator.return?.()
  }

  get buffered(): number {
    return this.#buffer.length
  }

  /** Reads until there are so many, or no more. */
  async read(count: number): Promise<void> {
    while (!this.#isOver && this.#buffer.length < count) {
      const next = this.#next()
      const step = 'then' in next ? await next : next
      if (step.done === true) this.#isOver = true
      else this.#buffer.push(step.value)
    }
  }

  /** The next inputs that were read, at most so many. */
  take(count: number): unknown[] {
    this.#taken = this.#buffer.splice(0, count)
    return this.#taken
  }

  /** The same inputs, with those that were taken last. */
  again(): this {
    this.#buffer.unshift(...this.#taken.splice(0))
    return this
  }

  async skip(count: number): Promise<void> {
    for (let left = count; left > 0; ) {
      await this.read(Math.min(left, mostInGraph))
      const skipped = this.take(Math.min(left, mostInGraph)).length
      if (skipped === 0) return
      left -= skipped
    }
  }

  /** No more will be read. */
  async close(): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    await this.#leave()
  }
}
