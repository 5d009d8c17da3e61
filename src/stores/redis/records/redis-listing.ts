/** Listings of a Redis store: pages of jobs in a given order, section by section of its keys. */

import type { ListQuery, Page, StoredJob } from '../../contract/job-records.js'
import { compareBytes } from '../../rules/byte-order.js'
import { comparePositions, cursorAt, type ListPosition } from '../../rules/listing-cursor.js'
import { bytesIn, listIn, rowsIn, textIn } from '../client/redis-reply.js'
import { positionAt } from '../format/position-bytes.js'
import { type JobView, readClaim } from '../format/redis-job.js'
import { viewJobs } from '../format/redis-views.js'
import { liveShards, type RedisQueue, type RedisShard } from '../layout/redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { type ListedKind, retries, type Section, sectionsOf, startIn } from './listing-sections.js'
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
    const jobs = page.map(({ job }) => job)
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
        const ids = await this.#idsIn(shard, section, from, most, isLifo)
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
  ): Promise<string[]> {
    const numbers = after?.slice(0, -1).map(Number) ?? []
    const bytes =
      after === undefined ? '' : Buffer.concat([bytesOf(numbers, isLifo), Buffer.from(String(after.at(-1)))])
    const reply = await this.#queues.run(shard, sectionScripts, [name, bytes, String(most)])
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
