/** Chosen jobs: which jobs of a queue a call means, and the steps of an action on them. */

import { InvalidArgumentError } from '../../core/errors.js'
import { describe } from '../../core/messages/describe.js'
import type { Registry } from '../../core/registry.js'
import { idMistake, isJobId, orderedIdOf } from '../../core/values/ids.js'
import type { JobSelection, Step, StoredJob } from '../../stores/contract/job-records.js'
import type { Store } from '../../stores/contract/store.js'
import { recordsOf } from '../store-facets.js'
import {
  type FilteredAction,
  type FilteredSteps,
  filteredSteps,
  filterOf,
  type JobFilter,
  type ShownRecord,
} from './job-filter.js'
import type { StepLoop } from './step-loop.js'

/**
 * The chosen jobs: these ids (a number is the id of an ordered job), all jobs, those that have failed before, or those
 * that a filter chooses, page by page.
 */
export type JobChoice = readonly (string | number)[] | 'all' | 'failed' | JobFilter

/** An action on chosen jobs: where it finds those of a filter, and one step of it. */
export interface ChosenAction extends Pick<FilteredAction, 'states' | 'list'> {
  readonly act: (which: JobSelection) => Promise<Step>
  /** Of an action that takes ids alone: the jobs that need it. All, or those that failed, are then found page by page. */
  readonly needs?: (job: StoredJob) => boolean
}

/** The most ids in one step of an action that takes ids alone. */
const mostIds = 1_000

interface ChosenParts {
  readonly queue: string
  readonly registry: Registry | undefined
  readonly look: () => Promise<Store>
  readonly shown: ShownRecord
  /** Runs the steps. */
  readonly loop: StepLoop
}

export class ChosenJobs {
  readonly #parts: ChosenParts

  constructor(parts: ChosenParts) {
    this.#parts = parts
  }

  /** Takes all steps of an action; resolves with the number of changed jobs. Throws `InvalidArgumentError`. */
  async act(where: JobChoice, open: () => Promise<ChosenAction>): Promise<number> {
    const { loop } = this.#parts
    if (isFilter(where)) return loop((await this.steps(where, open)).step)
    const which = await this.selectionOf(where)
    const { act, needs, ...found } = await open()
    if (needs === undefined) return loop(() => act(which))
    if (typeof which === 'object') return loop(inParts(which.ids, act))
    const matches = (job: StoredJob) => needs(job) && (which === 'all' || job.attempt > 1)
    return loop(filteredSteps({ ...found, matches, act: (ids) => act({ ids }) }).step)
  }

  /** The steps of an action on the jobs that a filter chooses, from a cursor on. Throws `InvalidArgumentError`. */
  async steps(where: JobFilter, open: () => Promise<ChosenAction>, cursor?: string): Promise<FilteredSteps> {
    const { state, matches } = filterOf(where, this.#parts.shown)
    const { states, list, act, needs } = await open()
    const chosen = states.filter((one) => state === undefined || one === state)
    const all = (job: StoredJob) => matches(job) && (needs?.(job) ?? true)
    return filteredSteps({ states: chosen, matches: all, list, act: (ids) => act({ ids }) }, cursor)
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
    if (registry?.orderedTask(queue) !== undefined) return true
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

export function isFilter(where: JobChoice): where is JobFilter {
  return typeof where === 'object' && where !== null && !Array.isArray(where)
}

/** The id in its stored form. Only ordered jobs may have a number. Throws `InvalidArgumentError`. */
function checkedId(given: unknown, isOrdered: boolean): string {
  const id = isOrdered ? orderedIdOf(given) : given
  if (isJobId(id)) return id
  throw new InvalidArgumentError(`a job id ${idMistake(given, isOrdered)}`)
}
