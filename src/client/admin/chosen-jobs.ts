/** Chosen jobs: which jobs of a queue a call means, what each verb of an operator does with them, and why some are left. */

import { InvalidArgumentError, JobElsewhereError, JobRunningError } from '../../core/errors.js'
import { jobStates } from '../../core/job/job.js'
import { describe } from '../../core/messages/describe.js'
import type { Registry } from '../../core/registry.js'
import { idMistake, isJobId, orderedIdOf } from '../../core/values/ids.js'
import { pagesOf, slicesOf } from '../../core/values/pages.js'
import type { JobKey, JobSelection, NewPlace, Records, Step, StoredJob } from '../../stores/contract/job-records.js'
import type { Joins, StoredJoin } from '../../stores/contract/joins.js'
import type { Store } from '../../stores/contract/store.js'
import { memberId } from '../../stores/rules/join-rules.js'
import { morgueOf, recordsOf } from '../store-facets.js'
import {
  type FilteredAction,
  type FilteredSteps,
  filteredSteps,
  filterOf,
  type JobFilter,
  type ShownJobs,
} from './job-filter.js'
import { isElsewhere, orderBeside, type PlaceChange, placeOf } from './job-place.js'
import { type AdminVerb, jobVerbs } from './operator-verbs.js'
import { type StepLoop, total, yieldedSteps } from './step-loop.js'

/**
 * The chosen jobs: these ids (a number is the id of an ordered job), all jobs, those that have failed before, or those
 * that a filter chooses, page by page.
 */
export type JobChoice = readonly (string | number)[] | 'all' | 'failed' | JobFilter

/** An action on chosen jobs: where it finds those of a filter, and one step of it. */
interface ChosenAction extends Pick<FilteredAction, 'states' | 'list'> {
  readonly act: (which: JobSelection) => Promise<Step>
  /** Of an action that takes ids alone: the jobs that need it. All, or those that failed, are then found page by page. */
  readonly needs?: (job: StoredJob) => boolean
}

/** The most ids in one step of an action that takes ids alone. */
const mostIds = 1_000

/** The further arguments of some verbs of an operator. */
export interface VerbOptions {
  readonly reason?: string | undefined
  readonly place?: PlaceChange | undefined
}

interface ChosenParts {
  readonly queue: string
  readonly registry: Registry
  readonly connect: () => Promise<Store>
  readonly look: () => Promise<Store>
  readonly now: () => number
  readonly view: ShownJobs
  /** Runs the steps. */
  readonly loop: StepLoop
}

export class ChosenJobs {
  readonly #parts: ChosenParts

  constructor(parts: ChosenParts) {
    this.#parts = parts
  }

  /** Takes all steps of a verb; resolves with the number of changed jobs. Throws `InvalidArgumentError`. */
  async act(where: JobChoice, verb: AdminVerb, how: VerbOptions = {}): Promise<number> {
    const { loop } = this.#parts
    if (isFilter(where)) return loop((await this.steps(where, verb, how)).step)
    const which = await this.selectionOf(where)
    const { act, needs, ...found } = await this.#action(verb, how)
    if (verb === 'revive' && typeof which === 'string') return loop(await this.#reviveEach(act, found))
    if (needs === undefined) return loop(() => act(which))
    if (typeof which === 'object') return loop(inParts(which.ids, act))
    const matches = (job: StoredJob) => needs(job) && (which === 'all' || job.attempt > 1)
    return loop(filteredSteps({ ...found, matches, act: (ids) => act({ ids }) }).step)
  }

  /**
   * Steps that revive all jobs that are dead now, each once. Those behind the first step are found page by page: a job that
   * dies again meanwhile is the latest, and steps take the latest first, so it would be revived again and again.
   */
  async #reviveEach(
    act: ChosenAction['act'],
    found: Pick<FilteredAction, 'states' | 'list'>,
  ): Promise<() => Promise<Step>> {
    const { queue, connect } = this.#parts
    const store = await connect()
    if (!store.traits.exactDepth) return () => act('all')
    const { now } = await store.depth([queue])
    const matches = ({ finishedAt = 0 }: StoredJob) => finishedAt <= now
    const others = filteredSteps({ ...found, matches, act: (ids) => act({ ids }) }).step
    let isFirst = true
    return async () => {
      if (!isFirst) return others()
      isFirst = false
      return act('all')
    }
  }

  /** Deletes them; resolves with the number. Throws `JobRunningError` or `JobElsewhereError` if that is why ids are left. */
  async delete(where: JobChoice): Promise<number> {
    if (isFilter(where)) return this.act(where, 'delete')
    const { queue, connect, loop } = this.#parts
    const which = await this.selectionOf(where)
    const records = recordsOf(await connect())
    const deleted = await loop(() => records.delete(queue, which))
    if (typeof which === 'object' && deleted < which.ids.length) await refuseLeft(queue, records, which.ids, deleted)
    return deleted
  }

  /**
   * Revives dead jobs. `members`: of a join first the dead jobs that it waited for, so that it waits for them again. Resolves with
   * the number of all. Throws `InvalidArgumentError`.
   */
  async revive(where: JobChoice, members: boolean): Promise<number> {
    if (!members) return this.act(where, 'revive')
    if (isFilter(where))
      throw new InvalidArgumentError("revive({ members }) takes ids or 'all', and no filter. Nothing was changed.")
    const { queue, connect, loop } = this.#parts
    const store = await connect()
    if (store.joins === undefined) return this.act(where, 'revive')
    const joins = deadJoins(store, queue, await this.selectionOf(where))
    const { step, isOver } = yieldedSteps(revivedMembers(store, store.joins, joins))
    const revived = await loop(step)
    // A join that is revived before its members runs without them, if its set goes on.
    return isOver() ? revived + (await this.act(where, 'revive')) : revived
  }

  /** The steps of a verb on the jobs that a filter chooses, from a cursor on. Throws `InvalidArgumentError`. */
  steps(where: JobFilter, verb: AdminVerb, how: VerbOptions = {}, cursor?: string): Promise<FilteredSteps> {
    return this.#steps(where, () => this.#action(verb, how), cursor)
  }

  /** Steps that count the jobs that a filter chooses, and change nothing. */
  countSteps(where: JobFilter, cursor?: string): Promise<FilteredSteps> {
    const { queue, connect } = this.#parts
    const open = async (): Promise<ChosenAction> => {
      const records = recordsOf(await connect())
      const act = async (which: JobSelection) => ({ changed: (which as { ids: string[] }).ids.length, more: false })
      return { states: jobStates, list: (query) => records.list(queue, query), act }
    }
    return this.#steps(where, open, cursor)
  }

  async #steps(where: JobFilter, open: () => Promise<ChosenAction>, cursor?: string): Promise<FilteredSteps> {
    const { state, matches, ...stored } = filterOf(where, this.#parts.view)
    const { states, list, act, needs } = await open()
    const chosen = states.filter((one) => state === undefined || one === state)
    const all = (job: StoredJob) => matches(job) && (needs?.(job) ?? true)
    return filteredSteps({ ...stored, states: chosen, matches: all, list, act: (ids) => act({ ids }) }, cursor)
  }

  /** What an operator's verb does, and where it finds the jobs. */
  async #action(verb: AdminVerb, { reason, place }: VerbOptions): Promise<ChosenAction> {
    const { queue, connect, now } = this.#parts
    if (verb === 'reschedule') return this.#placing(placeOf(place!, now()))
    if (verb === 'revive' || verb === 'delete-dead') {
      const morgue = morgueOf(await connect())
      return {
        states: ['dead'],
        list: ({ state: _, ...query }) => morgue.list(queue, query),
        act: (which) => (verb === 'revive' ? morgue.revive(queue, which) : morgue.delete(queue, which)),
      }
    }
    const records = recordsOf(await connect())
    const { method, takes } = jobVerbs[verb]
    return {
      states: takes,
      list: (query) => records.list(queue, query),
      act: (which) => (method === 'cancel' ? records.cancel(queue, which, reason) : records[method](queue, which)),
    }
  }

  async #placing(to: NewPlace): Promise<ChosenAction> {
    const { queue, connect, now } = this.#parts
    const records = recordsOf(await connect())
    return {
      states: ['scheduled', 'ready'],
      needs: isElsewhere(to, now()),
      list: (query) => records.list(queue, { ...query, by: orderBeside(to, query.state) }),
      act: async (which) => ({
        changed: await records.reschedule(queue, (which as { readonly ids: readonly string[] }).ids, to),
        more: false,
      }),
    }
  }

  /** The jobs as a store takes them. Throws `InvalidArgumentError`. */
  async selectionOf(where: JobChoice): Promise<JobSelection> {
    if (where === 'all' || where === 'failed') return where
    if (!Array.isArray(where))
      throw new InvalidArgumentError(
        `which jobs must be a list of ids, 'all', 'failed' or a filter such as { group: 'acme' }; got ${describe(where)}.`,
      )
    const isOrdered = where.some(Number.isFinite) && (await this.#isOrdered())
    return { ids: where.map((id) => checkedId(id, isOrdered)) }
  }

  /** The id in its stored form. Throws `InvalidArgumentError`. */
  async idOf(id: string | number): Promise<string> {
    return checkedId(id, Number.isFinite(id) && (await this.#isOrdered()))
  }

  /** Decided by the store if the mill does not know its task. Asked only if an id is a number. */
  async #isOrdered(): Promise<boolean> {
    const { queue, registry, look } = this.#parts
    if (registry.orderedTask(queue) !== undefined) return true
    const stored = (await recordsOf(await look()).queues()).find(({ name }) => name === queue)
    return stored?.kind === 'ordered'
  }
}

/** The steps of an action on these ids, part by part. */
function inParts(ids: readonly string[], act: ChosenAction['act']): () => Promise<Step> {
  let at = 0
  return async () => {
    const { changed } = await act({ ids: ids.slice(at, at + mostIds) })
    at += mostIds
    return { changed, more: at < ids.length }
  }
}

function isFilter(where: JobChoice): where is JobFilter {
  return typeof where === 'object' && where !== null && !Array.isArray(where)
}

/** The id in its stored form. Only ordered jobs may have a number. Throws `InvalidArgumentError`. */
function checkedId(given: unknown, isOrdered: boolean): string {
  const id = isOrdered ? orderedIdOf(given) : given
  if (isJobId(id)) return id
  throw new InvalidArgumentError(`a job id ${idMistake(given, isOrdered)}`)
}

/** The number of ids in one look-up. */
const idsPerLook = 200

/**
 * After a delete that did not delete all of these ids: throws `JobRunningError` if one of them runs, and
 * `JobElsewhereError` if nothing was deleted and another queue has one of them.
 */
async function refuseLeft(queue: string, records: Records, ids: readonly string[], deleted: number): Promise<void> {
  const running = new Set<string>()
  const absent = new Set<string>()
  for (const some of slicesOf(ids, idsPerLook)) {
    const jobs = await Promise.all(some.map((id) => records.get(queue, id)))
    for (const [i, job] of jobs.entries())
      if (job === undefined) absent.add(some[i]!)
      else if (job.state === 'running') running.add(job.id)
  }
  if (running.size > 0) throw new JobRunningError(queue, [...running], deleted)
  // Nothing is known of the deleted jobs: other queues may well have jobs of the same ids.
  if (deleted > 0) return
  const elsewhere = await foundElsewhere(queue, records, [...absent].slice(0, idsPerLook))
  if (elsewhere.length > 0) throw new JobElsewhereError(queue, elsewhere)
}

/** The ids that other queues of the store have. */
async function foundElsewhere(
  queue: string,
  records: Records,
  ids: readonly string[],
): Promise<{ id: string; queue: string }[]> {
  if (ids.length === 0) return []
  const others = (await records.queues()).map(({ name }) => name).filter((name) => name !== queue)
  const found: { id: string; queue: string }[] = []
  for (const other of others) {
    const jobs = await Promise.all(ids.map((id) => records.get(other, id)))
    for (const job of jobs) if (job !== undefined) found.push({ id: job.id, queue: other })
  }
  return found
}

/** The most ends of members in one request. */
const endsPerRequest = 1_000

/** The most members that are looked up at once. */
const mostLooks = 100

/** The chosen dead joins of a queue; of given ids it is not known whether they are joins. */
async function* deadJoins(store: Store, queue: string, where: JobSelection): AsyncGenerator<JobKey, void, undefined> {
  if (typeof where === 'object') {
    yield* where.ids.map((id) => ({ queue, id }))
    return
  }
  for await (const { jobs } of pagesOf((from) => morgueOf(store).list(queue, { by: 'id', limit: 200, ...from })))
    for (const { id, isJoin } of jobs) if (isJoin) yield { queue, id }
}

/**
 * Revives the dead members of these joins, and theirs, in bounded steps: yields how many each step has revived, never 0. A key
 * may be of a job that is no join. Begun anew it goes on where it was left, as what was revived is not dead any more.
 */
async function* revivedMembers(
  store: Store,
  joins: Joins,
  keys: Iterable<JobKey> | AsyncIterable<JobKey>,
): AsyncGenerator<number, void, undefined> {
  for await (const key of keys) yield* revivedOf(store, joins, key, await joins.look(key))
}

async function* revivedOf(
  store: Store,
  joins: Joins,
  join: JobKey,
  stored: StoredJoin | undefined,
): AsyncGenerator<number, void, undefined> {
  for (const set of stored?.sets ?? []) {
    const { name, queue, added, counts } = set
    if (counts.dead === 0) continue
    for (let from = 0; from < added; from += endsPerRequest) {
      const ends = await joins.ends(join, name, from, endsPerRequest)
      const ids = ends.flatMap(({ number, fate }) => (fate === 'dead' ? memberId(set, number) : []))
      if (ids.length === 0) continue
      // Each is looked up: of those that were deleted since, the store no longer knows whether they were joins.
      for (const some of slicesOf(ids, mostLooks)) {
        const keys = some.map((id) => ({ queue, id }))
        const looks = await Promise.all(keys.map((key) => joins.look(key)))
        for (const [i, key] of keys.entries()) yield* revivedOf(store, joins, key, looks[i])
      }
      const revived = await total(() => morgueOf(store).revive(queue, { ids }))
      if (revived > 0) yield revived
    }
  }
}
