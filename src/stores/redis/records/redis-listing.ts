/** Listings of a Redis store: pages of jobs in a given order, section by section of what its keys hold. */

import type { JobState } from '../../../core/job.js'
import type { ListQuery, Page, StoredJob } from '../../contract/job-records.js'
import { compareBytes } from '../../rules/byte-order.js'
import { comparePositions, cursorAt, type ListPosition } from '../../rules/listing-cursor.js'
import { bytesIn, listIn, rowsIn, textIn } from '../client/redis-reply.js'
import { numberBytes as number, positionAt } from '../format/position-bytes.js'
import { type JobView, readClaim } from '../format/redis-job.js'
import { viewJobs } from '../format/redis-views.js'
import type { RedisShard } from '../layout/redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { sectionScript } from './section-scripts.js'

type SectionName = 'running' | 'ready' | 'suspects' | 'later' | 'done' | 'dead' | 'retries'

/** A job as it is found in a section of a shard. */
interface FoundJob {
  readonly job: StoredJob
  readonly position: ListPosition
}

interface Section {
  readonly name: SectionName
  readonly states: readonly JobState[]
  /** What a position of this section begins with. */
  readonly head: readonly number[]
  positionOf(view: JobView, job: StoredJob, isLifo: boolean): readonly number[]
  /** The bytes that stand before the id in the section's key, from the parts of a position. */
  bytesOf(parts: readonly number[], isLifo: boolean): Buffer
}

const readyPosition = ({ stamp, seq }: JobView, { priority }: StoredJob, isLifo: boolean) => [
  -priority,
  isLifo ? -stamp : stamp,
  seq,
]
const readyBytes = ([priority, stamp, seq]: readonly number[], isLifo: boolean) => {
  const bytes = number(Math.abs(stamp!), 7)
  return Buffer.concat([
    number(32_767 + priority!, 2),
    isLifo ? bytes.map((byte) => 255 - byte) : bytes,
    number(seq!, 6),
  ])
}
const endPosition = ({ seq }: JobView, { finishedAt }: StoredJob) => [-finishedAt!, -seq]
const endBytes = ([finishedAt, seq]: readonly number[]) => Buffer.concat([number(-finishedAt!, 6), number(-seq!, 6)])

/** In the order of a listing by time. */
const sections: readonly Section[] = [
  {
    name: 'running',
    states: ['running'],
    head: [0],
    positionOf: ({ fence, seq }) => [fence, seq],
    bytesOf: () => Buffer.alloc(0),
  },
  { name: 'ready', states: ['ready'], head: [1, 0], positionOf: readyPosition, bytesOf: readyBytes },
  { name: 'suspects', states: ['ready'], head: [1, 1], positionOf: readyPosition, bytesOf: readyBytes },
  {
    name: 'later',
    states: ['scheduled'],
    head: [2],
    positionOf: ({ stamp, seq }) => [stamp, seq],
    bytesOf: ([stamp, seq]) => Buffer.concat([number(stamp!, 7), number(seq!, 6)]),
  },
  { name: 'done', states: ['completed'], head: [3], positionOf: endPosition, bytesOf: endBytes },
  { name: 'dead', states: ['dead'], head: [4], positionOf: endPosition, bytesOf: endBytes },
]

const retries: Section = {
  name: 'retries',
  states: ['ready', 'scheduled', 'running'],
  head: [],
  positionOf: ({ seq }, { attempt }) => [attempt, seq],
  bytesOf: ([attempt, seq]) => Buffer.concat([number(attempt!, 3), number(seq!, 6)]),
}

/** By time and by retry the last part is the shard, as jobs of two shards may have the same of everything else. */
const cursorLengths: Record<ListQuery['by'], readonly number[]> = { id: [1], time: [4, 6], retry: [3] }

/** Ids that are walked through at a time where a listing is by id. */
const stride = 5_000

export class RedisListing {
  readonly #queues: RedisQueues

  constructor(queues: RedisQueues) {
    this.#queues = queues
  }

  async list(queue: string, query: ListQuery): Promise<Page> {
    const after = query.cursor === undefined ? undefined : positionAt(query.cursor, query.by, cursorLengths)
    const [{ shards } = { shards: [] }] = await this.#queues.find([queue])
    const { order } = await this.#queues.stored(queue)
    const pages = await Promise.all(
      shards.map(async (shard, i) => {
        const page = await this.#page(shard, query, afterIn(i, query.by, after), order === 'lifo')
        return query.by === 'id' ? page : page.map(({ job, position }) => ({ job, position: [...position, i] }))
      }),
    )
    const found = pages.flat().sort((a, b) => comparePositions(a.position, b.position))
    const page = found.slice(0, query.limit)
    const jobs = page.map(({ job }) => job)
    return found.length > page.length ? { jobs, cursor: cursorAt(page.at(-1)!.position, query.by) } : { jobs }
  }

  /** One more than fit, to know whether there is one. */
  async #page(
    shard: RedisShard,
    query: ListQuery,
    after: ListPosition | undefined,
    isLifo: boolean,
  ): Promise<FoundJob[]> {
    const most = query.limit + 1
    if (query.by === 'id') return this.#byId(shard, query, after, most, isLifo)
    const found: FoundJob[] = []
    for (const section of query.by === 'retry' ? [retries] : sections) {
      if (query.state !== undefined && !section.states.includes(query.state)) continue
      const from = startIn(section, after)
      if (from === 'past') continue
      let parts = from
      for (let isMore = true; isMore && found.length < most; ) {
        const ids = await this.#ids(shard, section, parts, most, isLifo)
        const views = await viewJobs(this.#queues, shard, ids, 'listed')
        for (const view of views) {
          if (view.stored === undefined) continue
          const own = section.positionOf(view, view.stored, isLifo)
          parts = own
          if (view.job === undefined || !section.states.includes(view.job.state)) continue
          if (query.state !== undefined && view.job.state !== query.state) continue
          found.push({ job: view.job, position: [...section.head, ...own] })
        }
        isMore = ids.length === most && views.some(({ stored }) => stored !== undefined)
      }
    }
    return found.slice(0, most)
  }

  /**
   * No key is ordered by id: all ids of the states asked for are walked through, a stride at a time, and of them the first
   * are looked at. It takes as long as the queue is deep; what it finds was there all the while.
   */
  async #byId(
    shard: RedisShard,
    query: ListQuery,
    after: ListPosition | undefined,
    most: number,
    isLifo: boolean,
  ): Promise<FoundJob[]> {
    const found: FoundJob[] = []
    let past = after === undefined ? undefined : String(after[0])
    // The first may all have expired; each walk looks at twice as many as the one before.
    for (let count = most * 2; ; count *= 2) {
      const ids = await this.#firstIds(shard, query, past, count, isLifo)
      const views = await viewJobs(this.#queues, shard, ids, 'listed')
      for (const { job } of views)
        if (job !== undefined && (query.state === undefined || job.state === query.state))
          found.push({ job, position: [job.id] })
      if (found.length >= most || ids.length < count) return found.slice(0, most)
      past = ids.at(-1)
    }
  }

  /** The first ids behind `past` of jobs in the state asked for, be they expired or not. */
  async #firstIds(
    shard: RedisShard,
    query: ListQuery,
    past: string | undefined,
    count: number,
    isLifo: boolean,
  ): Promise<string[]> {
    let first: string[] = []
    for (const section of sections) {
      if (query.state !== undefined && !section.states.includes(query.state)) continue
      let parts: readonly number[] | undefined
      for (;;) {
        const ids = await this.#ids(shard, section, parts, stride, isLifo)
        const beyond = ids.filter((id) => past === undefined || compareBytes(id, past) > 0)
        first = [...new Set([...first, ...beyond])].sort(compareBytes).slice(0, count)
        if (ids.length < stride || section.name === 'running') break
        const [last] = await viewJobs(this.#queues, shard, ids.slice(-1), 'listed')
        if (last?.stored === undefined) break
        parts = section.positionOf(last, last.stored, isLifo)
      }
    }
    return first
  }

  async #ids(
    shard: RedisShard,
    section: Section,
    after: readonly number[] | undefined,
    most: number,
    isLifo: boolean,
  ): Promise<string[]> {
    const bytes = after === undefined ? '' : section.bytesOf(after, isLifo)
    const reply = await this.#queues.run(shard, sectionScript, [section.name, bytes, String(most)])
    if (section.name !== 'running') return listIn(reply).map(textIn)
    const running = rowsIn(reply, 2).map(([id, claim]) => ({ id: textIn(id), ...readClaim(bytesIn(claim)) }))
    return running
      .filter(({ fence, seq }) => after === undefined || comparePositions([fence, seq], after) > 0)
      .sort((a, b) => comparePositions([a.fence, a.seq], [b.fence, b.seq]))
      .slice(0, most)
      .map(({ id }) => id)
  }
}

/** The position as shard `i` knows it: those behind the shard where the page ended still have their job with the same position to show. */
function afterIn(i: number, by: ListQuery['by'], after: ListPosition | undefined): ListPosition | undefined {
  if (after === undefined || by === 'id') return after
  const position = after.slice(0, -1)
  if (i <= Number(after.at(-1))) return position
  return [...position.slice(0, -1), Number(position.at(-1)) - 1]
}

/** Where a listing that goes on after a position begins in a section: at its start (undefined), after so many parts, or not at all. */
function startIn(section: Section, after: ListPosition | undefined): readonly number[] | undefined | 'past' {
  if (after === undefined) return undefined
  for (const [i, part] of section.head.entries()) {
    if (part < Number(after[i])) return 'past'
    if (part > Number(after[i])) return undefined
  }
  return after.slice(section.head.length).map(Number)
}
