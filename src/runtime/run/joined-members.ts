/** What the handler of a join is given of its members: read from the store, and decoded as its task declares it. */

import { CodecError, InvalidJobError } from '../../core/errors.js'
import { ownError } from '../../core/job/job-failures.js'
import { messageOf } from '../../core/messages/describe.js'
import { whyUnkept } from '../../core/packing/packing.js'
import type { Surroundings } from '../../core/surroundings.js'
import type { Joined, JoinedMany, JoinSets, MemberSet, Settled } from '../../core/task/join-sets.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { JobKey } from '../../stores/contract/job-records.js'
import type { Joins, MemberEnd, StoredSet } from '../../stores/contract/joins.js'
import { memberId } from '../../stores/rules/join-rules.js'
import { onceThere } from '../outage.js'

/** The most ends of members in one request. */
const pageSize = 1_000

type ReaderSurroundings = Pick<Surroundings, 'events' | 'random' | 'packing'>

/** The run of a join: its claim, and the signal that ends its waits. */
export interface JoinRun {
  readonly claim: Claim
  readonly signal: AbortSignal
}

/**
 * Reads counts and the results of single members; those of many are read as they are asked for, by reads that wait while
 * the store is away and reject with the reason of the run's signal once that is aborted. Throws
 * `InvalidJobError` if the join was stored with other sets than its task declares, and `CodecError` for a result that
 * this process cannot read.
 */
export async function joinedMembers(
  surroundings: ReaderSurroundings,
  joins: Joins,
  run: JoinRun,
  declared: ReadonlyMap<string, MemberSet>,
): Promise<Joined<JoinSets>> {
  const join = run.claim
  const stored = await joins.look(join)
  if (stored === undefined)
    throw new InvalidJobError(
      `job '${join.id}' in queue '${join.queue}' is no join any more, and its handler needs one.`,
    )
  const joined: Record<string, unknown> = {}
  for (const [name, set] of declared) {
    const kept = stored.sets.find((one) => one.name === name)
    if (kept === undefined || kept.isMany !== set.isMany) throw otherSets(join, stored.sets, name)
    const members = new SetReader(surroundings, joins, run, set, kept)
    joined[name] = set.isMany ? members : (await members.page(0))[0]
  }
  return joined as Joined<JoinSets>
}

function otherSets({ id }: JobKey, stored: readonly StoredSet[], name: string): InvalidJobError {
  const sets = stored.map((set) => (set.isMany ? `${set.name} (many)` : set.name)).join(', ')
  return new InvalidJobError(
    `join '${id}' was stored with the sets ${sets}, and its task now declares '${name}' otherwise. Keep the sets of a task as long as its jobs are stored, or give the task another name.`,
  )
}

/** The members of one set. */
class SetReader implements JoinedMany<unknown> {
  readonly counts: JoinedMany<unknown>['counts']
  readonly #surroundings: ReaderSurroundings
  readonly #joins: Joins
  readonly #run: JoinRun
  readonly #set: MemberSet
  readonly #stored: StoredSet

  constructor(surroundings: ReaderSurroundings, joins: Joins, run: JoinRun, set: MemberSet, stored: StoredSet) {
    this.#surroundings = surroundings
    this.#joins = joins
    this.#run = run
    this.#set = set
    this.#stored = stored
    this.counts = stored.counts
  }

  async *[Symbol.asyncIterator](): AsyncIterator<unknown> {
    const { size = 0 } = this.#stored
    for (let from = 0; from < size; from += pageSize) yield* await this.#pageOnceThere(from)
  }

  async #pageOnceThere(from: number): Promise<unknown[]> {
    const { events, random } = this.#surroundings
    const { signal } = this.#run
    const failed = (error: unknown, retryMs: number) =>
      events.emit('store.failed', { call: 'joins.ends', error, retryMs })
    const page = await onceThere(() => this.page(from), { isOver: () => signal.aborted, random, failed })
    if (page === undefined) throw signal.reason
    return page
  }

  /** The members from this number on. Throws `StoreUnavailableError`. */
  async page(from: number): Promise<unknown[]> {
    const ends = await this.#joins.ends(this.#run.claim, this.#set.name, from, pageSize)
    return ends.map((end) => this.#given(end))
  }

  #given(end: MemberEnd): unknown {
    if (this.#set.onDead !== 'go-on') return this.#completed(end)
    return end.fate === 'completed' ? { fate: end.fate, result: this.#result(end) } : unfinished(end)
  }

  /** The result of a member; others than completed ones are there only if its set was declared otherwise before. */
  #completed(end: MemberEnd): unknown {
    if (end.fate === 'completed') return this.#result(end)
    throw new InvalidJobError(
      `${this.#nameOf(end)} has not completed (${end.fate}): the join was stored when its set went on. Let it go on, or give the task another name.`,
    )
  }

  #result(end: MemberEnd): unknown {
    const { payload, codec } = end
    if (payload === undefined || payload.length === 0) return undefined
    const unkept = whyUnkept({ payload, ...(codec !== undefined && { codec }) })
    if (unkept !== undefined) throw new CodecError(`the result of ${this.#nameOf(end)} could not be kept: ${unkept}`)
    const { queue } = this.#stored
    const { name, aliases } = this.#set.task
    let problem: unknown
    // It is sealed under the name that its task had when it was enqueued.
    for (const task of [name, ...aliases])
      try {
        return this.#surroundings.packing.unpack(payload, codec, 'result', {
          queue,
          id: memberId(this.#stored, end.number),
          task,
        })
      } catch (error) {
        problem ??= error
      }
    throw new CodecError(`the result of ${this.#nameOf(end)} cannot be read: ${messageOf(problem)}`, { cause: problem })
  }

  #nameOf({ number }: MemberEnd): string {
    const { name, queue } = this.#stored
    return `member '${memberId(this.#stored, number)}' of set '${name}' in queue '${queue}'`
  }
}

function unfinished({ fate, error }: MemberEnd): Settled<unknown> {
  return { fate: fate as 'dead', ...(error !== undefined && { error: ownError(error) }) }
}
