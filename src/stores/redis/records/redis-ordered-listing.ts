/**
 * Listings of the ordered queues of a Redis store. The dead are entries of their own, behind the live job of their id, and
 * what is alike otherwise stands in the order of ids; so the positions of all shards fit together.
 */

import type { JobState } from '../../../core/job.js'
import { type ListQuery, type Page, payloadsInPage, type StoredJob } from '../../contract/job-records.js'
import { compareBytes } from '../../rules/byte-order.js'
import { comparePositions, cursorAt, type ListPosition } from '../../rules/listing-cursor.js'
import { bytesIn, listIn, rowsIn, textIn } from '../client/redis-reply.js'
import { numberBytes, positionAt } from '../format/position-bytes.js'
import { readClaim } from '../format/redis-job.js'
import { type OrderedView, viewOrdered } from '../format/redis-ordered-job.js'
import { liveShards, type RedisQueue, type RedisShard } from '../layout/redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { idsOrderedScript, sectionOrderedScript } from './section-scripts.js'

interface FoundEntry {
  readonly job: StoredJob
  readonly position: ListPosition
}

interface OrderedSection {
  readonly name: 'running' | 'ready' | 'suspects' | 'later' | 'dead' | 'retries'
  readonly states: readonly JobState[]
  /** What a position of this section begins with; behind its own parts stands the id. */
  readonly head: readonly number[]
  partsOf(view: OrderedView, isLifo: boolean): readonly number[]
  /** The bytes that stand before the id in the section's key, from the parts of a position. */
  bytesOf(parts: readonly number[], isLifo: boolean): Buffer
}

const noSequence = Buffer.alloc(6)

const readyParts = ({ stamp }: OrderedView, isLifo: boolean) => [0, isLifo ? -stamp : stamp]
const readyBytes = ([priority, stamp]: readonly number[], isLifo: boolean) => {
  const bytes = numberBytes(Math.abs(stamp!), 7)
  const inOrder = isLifo ? bytes.map((byte) => 255 - byte) : bytes
  return Buffer.concat([numberBytes(32_767 + priority!, 2), inOrder, noSequence])
}

/** In the order of a listing by time. */
const sections: readonly OrderedSection[] = [
  {
    name: 'running',
    states: ['running'],
    head: [0],
    partsOf: ({ fence }) => [fence],
    bytesOf: () => Buffer.alloc(0),
  },
  { name: 'ready', states: ['ready'], head: [1, 0], partsOf: readyParts, bytesOf: readyBytes },
  { name: 'suspects', states: ['ready'], head: [1, 1], partsOf: readyParts, bytesOf: readyBytes },
  {
    name: 'later',
    states: ['scheduled'],
    head: [2],
    partsOf: ({ stamp }) => [stamp],
    bytesOf: ([stamp]) => Buffer.concat([numberBytes(stamp!, 7), noSequence]),
  },
  {
    name: 'dead',
    states: ['dead'],
    head: [4],
    partsOf: ({ job }) => [-job.finishedAt!],
    bytesOf: ([finishedAt]) => Buffer.concat([numberBytes(-finishedAt!, 6), noSequence]),
  },
]

const retries: OrderedSection = {
  name: 'retries',
  states: ['ready', 'scheduled', 'running'],
  head: [],
  partsOf: ({ job }) => [job.attempt],
  bytesOf: ([attempt]) => Buffer.concat([numberBytes(attempt!, 3), noSequence]),
}

/** Parts of the positions of each order; of a ready job there are more than of others. */
const cursorLengths: Record<ListQuery['by'], readonly number[]> = { id: [2], time: [3, 5], retry: [2] }

export class RedisOrderedListing {
  readonly #queues: RedisQueues

  constructor(queues: RedisQueues) {
    this.#queues = queues
  }

  async list(queue: RedisQueue, isLifo: boolean, query: ListQuery): Promise<Page> {
    const after = query.cursor === undefined ? undefined : positionAt(query.cursor, query.by, cursorLengths, true)
    const pages = await Promise.all(
      liveShards(queue).map((shard) =>
        query.by === 'id' ? this.#byId(shard, query, after) : this.#bySection(shard, query, after, isLifo),
      ),
    )
    const found = pages.flat().sort((a, b) => comparePositions(a.position, b.position))
    const page = found.slice(0, query.limit)
    const jobs = page.map(({ job }) => job)
    return found.length > page.length ? { jobs, cursor: cursorAt(page.at(-1)!.position, query.by) } : { jobs }
  }

  /** One more than fit, to know whether there is one. */
  async #bySection(
    shard: RedisShard,
    query: ListQuery,
    after: ListPosition | undefined,
    isLifo: boolean,
  ): Promise<FoundEntry[]> {
    const most = query.limit + 1
    const found: FoundEntry[] = []
    for (const section of query.by === 'retry' ? [retries] : sections) {
      if (query.state !== undefined && !section.states.includes(query.state)) continue
      let from = startIn(section, after)
      if (from === 'past') continue
      for (let isMore = true; isMore && found.length < most; ) {
        const ids = await this.#idsIn(shard, section, from, most, isLifo)
        const views = await this.#view(shard, section.name === 'dead' ? 'dead' : 'live', ids)
        isMore = false
        for (const view of views) {
          if (view === undefined) continue
          const { job } = view
          from = [...section.partsOf(view, isLifo), job.id]
          isMore = ids.length === most
          if (view.isHidden || !section.states.includes(job.state)) continue
          if (query.state !== undefined && job.state !== query.state) continue
          found.push({ job, position: [...section.head, ...from] })
        }
      }
    }
    return found.slice(0, most)
  }

  /** The sets of payloads stand in the order of ids; those of running jobs are few. */
  async #byId(shard: RedisShard, query: ListQuery, after: ListPosition | undefined): Promise<FoundEntry[]> {
    const most = query.limit + 1
    const found: FoundEntry[] = []
    const [afterId, afterKind] = after === undefined ? [undefined, -1] : [String(after[0]), Number(after[1])]
    for (const [kind, of] of (['live', 'dead'] as const).entries()) {
      if (query.state !== undefined && (query.state === 'dead') !== (of === 'dead')) continue
      // The entry in the morgue stands behind the live job of its id.
      const isThere = afterId !== undefined && kind > afterKind
      if (isThere) found.push(...this.#wanted(await this.#view(shard, of, [afterId]), query, kind))
      let past = afterId ?? ''
      // The first may all be in other states; each look takes twice as many as the one before.
      for (let count = most, taken = 0; taken < most; count = Math.min(count * 2, 5_000)) {
        const reply = await this.#queues.run(shard, idsOrderedScript, [of, past, String(count)])
        const ids = listIn(reply).map(textIn)
        const wanted = this.#wanted(await this.#view(shard, of, ids), query, kind)
        found.push(...wanted)
        taken += wanted.length
        if (ids.length < count) break
        past = ids.at(-1)!
      }
    }
    return found
  }

  #wanted(views: readonly (OrderedView | undefined)[], { state }: ListQuery, kind: number): FoundEntry[] {
    return views.flatMap((view) => {
      if (view === undefined || view.isHidden) return []
      if (state !== undefined && view.job.state !== state) return []
      return [{ job: view.job, position: [view.job.id, kind] }]
    })
  }

  #view(shard: RedisShard, of: 'live' | 'dead', ids: readonly string[]): Promise<(OrderedView | undefined)[]> {
    return viewOrdered(this.#queues, shard, of, ids, payloadsInPage)
  }

  async #idsIn(
    shard: RedisShard,
    { name, bytesOf }: OrderedSection,
    after: ListPosition | undefined,
    most: number,
    isLifo: boolean,
  ): Promise<string[]> {
    const parts = after?.slice(0, -1).map(Number) ?? []
    const bytes = after === undefined ? '' : Buffer.concat([bytesOf(parts, isLifo), Buffer.from(String(after.at(-1)))])
    const reply = await this.#queues.run(shard, sectionOrderedScript, [name, bytes, String(most)])
    if (name !== 'running') return listIn(reply).map(textIn)
    const running = rowsIn(reply, 2).map(([id, claim]) => ({ id: textIn(id), ...readClaim(bytesIn(claim)) }))
    return running
      .filter(({ fence, id }) => after === undefined || comparePositions([fence, id], after) > 0)
      .sort((a, b) => a.fence - b.fence || compareBytes(a.id, b.id))
      .slice(0, most)
      .map(({ id }) => id)
  }
}

/** Where a listing that goes on after a position begins in a section: at its start (undefined), after so many parts, or not at all. */
function startIn(section: OrderedSection, after: ListPosition | undefined): ListPosition | undefined | 'past' {
  if (after === undefined) return undefined
  for (const [i, part] of section.head.entries()) {
    if (part < Number(after[i])) return 'past'
    if (part > Number(after[i])) return undefined
  }
  return after.slice(section.head.length)
}
