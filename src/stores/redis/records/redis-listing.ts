/** Listings of a Redis store: pages of jobs in a given order, section by section of its keys. */

import type { JobState } from '../../../core/job/job.js'
import type { ListQuery, Page, StoredJob } from '../../contract/job-records.js'
import type { QueueKind } from '../../contract/queue-settings.js'
import { compareBytes } from '../../rules/byte-order.js'
import { comparePositions, cursorAt, type ListPosition, positionIn } from '../../rules/listing-cursor.js'
import { bytesIn, listIn, rowsIn, textIn } from '../client/redis-reply.js'
import { type JobView, readClaim } from '../format/redis-job.js'
import { viewJobs } from '../format/redis-views.js'
import { liveShards, type RedisQueue, type RedisShard } from '../redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { sectionScripts } from './section-scripts.js'

/** A job found in a shard. */
interface FoundJob {
  readonly job: StoredJob
  readonly position: ListPosition
}

/** The number of ids to walk through at a time in a listing by id. */
const step = 5_000

export class RedisListing {
  readonly #queues: RedisQueues

  constructor(queues: RedisQueues) {
    this.#queues = queues
  }

  async list(queue: RedisQueue, isLifo: boolean, query: ListQuery): Promise<Page> {
    const after = query.cursor === undefined ? undefined : positionAt(query.cursor, query.by)
    const pages = await Promise.all(
      liveShards(queue).map((shard) =>
        query.by === 'id' ? this.#byId(shard, query, after, isLifo) : this.#bySection(shard, query, after, isLifo),
      ),
    )
    const found = pages.flat().sort((a, b) => comparePositions(a.position, b.position))
    const page = found.slice(0, query.limit)
    const jobs = page.flatMap(({ job }) => (query.group === undefined || job.group === query.group ? [job] : []))
    return found.length > page.length ? { jobs, cursor: cursorAt(page.at(-1)!.position, query.by) } : { jobs }
  }

  /** Reads one job more than fits, to know whether there is one. */
  async #bySection(
    shard: RedisShard,
    query: ListQuery,
    after: ListPosition | undefined,
    isLifo: boolean,
  ): Promise<FoundJob[]> {
    const most = query.limit + 1
    const found: FoundJob[] = []
    for (const section of query.by === 'retry' ? [retries] : sectionsOf(shard.kind)) {
      if (query.state !== undefined && !section.states.includes(query.state)) continue
      let from = startIn(section, after)
      if (from === 'past') continue
      for (let isMore = true; isMore && found.length < most; ) {
        const ids = await this.#idsIn(shard, section, from, most, isLifo, query.group)
        const views = await this.#view(shard, section.name === 'dead' ? 'dead' : 'live', ids)
        isMore = false
        for (const view of views) {
          const { stored, job } = view
          if (stored === undefined) continue
          from = [...section.numbersOf(view, isLifo), stored.id]
          isMore = ids.length === most
          if (job === undefined || !section.states.includes(job.state)) continue
          if (query.state === undefined || job.state === query.state)
            found.push({ job, position: [...section.head, ...from] })
        }
      }
    }
    return found.slice(0, most)
  }

  async #byId(
    shard: RedisShard,
    query: ListQuery,
    after: ListPosition | undefined,
    isLifo: boolean,
  ): Promise<FoundJob[]> {
    const most = query.limit + 1
    const found: FoundJob[] = []
    const [afterId, afterKind] = after === undefined ? [undefined, -1] : [String(after[0]), Number(after[1])]
    const kinds: readonly ListedKind[] = shard.kind === 'plain' ? ['live'] : ['live', 'dead']
    for (const [number, kind] of kinds.entries()) {
      if (shard.kind === 'ordered' && query.state !== undefined && (query.state === 'dead') !== (kind === 'dead'))
        continue
      // The entry in the morgue comes after the live job of the same id.
      const isThere = afterId !== undefined && number > afterKind
      if (isThere) found.push(...wanted(await this.#view(shard, kind, [afterId]), query, number))
      let past = afterId
      // The first ids may all be in other states. Each look takes twice as many as the one before.
      for (let count = most, taken = 0; taken < most; count = Math.min(count * 2, step)) {
        const ids = await this.#firstIds(shard, kind, query, past, count, isLifo)
        const some = wanted(await this.#view(shard, kind, ids), query, number)
        found.push(...some)
        taken += some.length
        if (ids.length < count) break
        past = ids.at(-1)!
      }
    }
    return found
  }

  /**
   * The first ids after `past` of jobs in the wanted state, expired or not. No key is ordered by id, so this walks
   * through all ids, a step at a time. The time grows with the depth of the queue. The jobs found were there during the
   * whole walk.
   */
  async #firstIds(
    shard: RedisShard,
    kind: ListedKind,
    query: ListQuery,
    past: string | undefined,
    count: number,
    isLifo: boolean,
  ): Promise<string[]> {
    let first: string[] = []
    for (const section of sectionsOf(shard.kind, kind)) {
      if (query.state !== undefined && !section.states.includes(query.state)) continue
      let from: ListPosition | undefined
      for (;;) {
        const ids = await this.#idsIn(shard, section, from, step, isLifo)
        const beyond = ids.filter((id) => past === undefined || compareBytes(id, past) > 0)
        first = [...new Set([...first, ...beyond])].sort(compareBytes).slice(0, count)
        if (ids.length < step || section.name === 'running') break
        const [last] = await this.#view(shard, kind, ids.slice(-1))
        if (last?.stored === undefined) break
        from = [...section.numbersOf(last, isLifo), last.stored.id]
      }
    }
    return first
  }

  async #idsIn(
    shard: RedisShard,
    { name, bytesOf }: Section,
    after: ListPosition | undefined,
    most: number,
    isLifo: boolean,
    group = '',
  ): Promise<string[]> {
    const numbers = after?.slice(0, -1).map(Number) ?? []
    const bytes =
      after === undefined ? '' : Buffer.concat([bytesOf(numbers, isLifo), Buffer.from(String(after.at(-1)))])
    const reply = await this.#queues.run(shard, sectionScripts, [name, bytes, String(most), group])
    if (name !== 'running') return listIn(reply).map(textIn)
    return rowsIn(reply, 2)
      .map(([id, claim]) => ({ id: textIn(id), ...readClaim(bytesIn(claim)) }))
      .map(({ id, fence, seq }) => ({ id, position: [fence, seq, id] }))
      .filter(({ position }) => after === undefined || comparePositions(position, after) > 0)
      .sort((a, b) => comparePositions(a.position, b.position))
      .slice(0, most)
      .map(({ id }) => id)
  }

  #view(shard: RedisShard, kind: ListedKind, ids: readonly string[]): Promise<JobView[]> {
    return viewJobs(this.#queues, shard, ids, { kind, as: 'listed' })
  }
}

function wanted(views: readonly JobView[], { state }: ListQuery, number: number): FoundJob[] {
  return views.flatMap(({ job }) =>
    job === undefined || (state !== undefined && job.state !== state) ? [] : [{ job, position: [job.id, number] }],
  )
}

/** The sections of a shard: its keys in the order of a listing by time, and the place of a job in each. Pure. */
interface Section {
  readonly name: 'running' | 'ready' | 'suspects' | 'scheduled' | 'joining' | 'completed' | 'dead' | 'retries'
  readonly states: readonly JobState[]
  /** The beginning of a position of this section. Its own numbers and the id follow. */
  readonly head: readonly number[]
  numbersOf(view: JobView, isLifo: boolean): readonly number[]
  /** The bytes before the id in the section's key. */
  bytesOf(numbers: readonly number[], isLifo: boolean): Buffer
}

const readyNumbers = ({ stamp, seq, stored }: JobView, isLifo: boolean) => [
  -stored!.priority,
  isLifo ? -stamp : stamp,
  seq,
]
const readyBytes = ([priority, stamp, seq]: readonly number[], isLifo: boolean) => {
  const bytes = numberBytes(Math.abs(stamp!), 7)
  const inOrder = isLifo ? bytes.map((byte) => 255 - byte) : bytes
  return Buffer.concat([numberBytes(32_767 + priority!, 2), inOrder, numberBytes(seq!, 6)])
}
const dueNumbers = ({ stamp, seq }: JobView) => [stamp, seq]
const dueBytes = ([stamp, seq]: readonly number[]) => Buffer.concat([numberBytes(stamp!, 7), numberBytes(seq!, 6)])
const endNumbers = ({ seq, stored }: JobView) => [-stored!.finishedAt!, -seq]
const endBytes = ([finishedAt, seq]: readonly number[]) =>
  Buffer.concat([numberBytes(-finishedAt!, 6), numberBytes(-seq!, 6)])

/** Ordered queues have no `completed` and no `joining`, and all sequence numbers are 0: otherwise equal jobs are in the order of ids. */
const sections: readonly Section[] = [
  {
    name: 'running',
    states: ['running'],
    head: [0],
    numbersOf: ({ fence, seq }) => [fence, seq],
    bytesOf: () => Buffer.alloc(0),
  },
  { name: 'ready', states: ['ready'], head: [1, 0], numbersOf: readyNumbers, bytesOf: readyBytes },
  { name: 'suspects', states: ['ready'], head: [1, 1], numbersOf: readyNumbers, bytesOf: readyBytes },
  { name: 'scheduled', states: ['scheduled'], head: [2], numbersOf: dueNumbers, bytesOf: dueBytes },
  { name: 'joining', states: ['waiting'], head: [3], numbersOf: dueNumbers, bytesOf: dueBytes },
  { name: 'completed', states: ['completed'], head: [4], numbersOf: endNumbers, bytesOf: endBytes },
  { name: 'dead', states: ['dead'], head: [5], numbersOf: endNumbers, bytesOf: endBytes },
]

/** A live job, or the entry in the morgue, which comes after it. A plain queue has its dead jobs among the live. */
type ListedKind = 'live' | 'dead'

/** The sections in the order of a listing by time. `listed`: only those with jobs of this kind. */
function sectionsOf(kind: QueueKind, listed?: ListedKind): readonly Section[] {
  if (kind === 'plain') return sections
  return sections.filter(
    ({ name }) =>
      name !== 'completed' && name !== 'joining' && (listed ?? name) !== (name === 'dead' ? 'live' : 'dead'),
  )
}

/** The only section of a listing by retry. */
const retries: Section = {
  name: 'retries',
  states: ['ready', 'scheduled', 'running'],
  head: [],
  numbersOf: ({ seq, stored }) => [stored!.attempt, seq],
  bytesOf: ([attempt, seq]) => Buffer.concat([numberBytes(attempt!, 3), numberBytes(seq!, 6)]),
}

/**
 * The point where a listing that continues after a position begins in a section: its start (undefined), after these
 * numbers and the id, or not at all (`'past'`).
 */
function startIn({ head }: Section, after: ListPosition | undefined): ListPosition | undefined | 'past' {
  if (after === undefined) return undefined
  for (const [i, part] of head.entries()) {
    if (part < Number(after[i])) return 'past'
    if (part > Number(after[i])) return undefined
  }
  return after.slice(head.length)
}

/** A big-endian number of this many bytes. A number that does not fit, from an invented cursor, becomes the limit. */
function numberBytes(given: number, length: number): Buffer {
  const value = Math.min(Math.max(0, given), 2 ** (8 * length) - 1)
  const bytes = Buffer.alloc(length)
  if (length <= 6) bytes.writeUIntBE(value, 0, length)
  else {
    bytes[0] = Math.floor(value / 2 ** 48)
    bytes.writeUIntBE(value % 2 ** 48, 1, 6)
  }
  return bytes
}

/** The possible numbers of parts of a position in each order. A ready job has more parts than others. */
const lengths: Record<ListQuery['by'], readonly number[]> = { id: [2], time: [4, 6], retry: [3] }

/**
 * The position that a cursor names: whole numbers and the id, which is last, or first in a listing by id. Throws
 * `InvalidArgumentError` for an invalid cursor.
 */
function positionAt(cursor: string, by: ListQuery['by']): ListPosition {
  return positionIn(cursor, by, (parts) => {
    const idAt = by === 'id' ? 0 : parts.length - 1
    const fits = (part: unknown, i: number) => (i === idAt ? typeof part === 'string' : Number.isInteger(part))
    return lengths[by].includes(parts.length) && parts.every(fits)
  })
}
