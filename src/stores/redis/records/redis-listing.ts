/** Listings of a Redis store: pages of jobs in a given order, section by section of its keys. */

import type { JobState } from '../../../core/job/job.js'
import type { ListQuery, Page, StoredJob } from '../../contract/job-records.js'
import type { QueueKind } from '../../contract/queue-settings.js'
import { compareBytes } from '../../rules/byte-order.js'
import { comparePositions, cursorAt, type ListPosition, positionIn } from '../../rules/listing-cursor.js'
import type { RedisReply } from '../client/redis-client.js'
import { bytesIn, listIn, rowsIn, textIn } from '../client/redis-reply.js'
import { type JobView, readClaim } from '../format/redis-job.js'
import { readNumber } from '../format/redis-record.js'
import { viewJobs } from '../format/redis-views.js'
import { liveShards, type RedisQueue, type RedisShard } from '../redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { sectionScripts } from './section-scripts.js'

/** A job found in a shard. */
interface FoundJob {
  readonly job: StoredJob
  readonly position: ListPosition
}

/** A part of a section: the places where jobs were found, and the one after which the section goes on, if it does. */
interface SectionPage {
  readonly places: readonly ListPosition[]
  readonly next: ListPosition | undefined
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
    const isBackwards = query.by === 'time' && queue.layout.kind === 'plain'
    const compare = isBackwards ? compareEndsBackwards : comparePositions
    const found = pages.flat().sort((a, b) => compare(a.position, b.position))
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
      while (from !== 'past' && found.length < most) {
        const { places, next } = await this.#pageOf(shard, section, from, most, isLifo, query.group)
        const views = await this.#view(shard, section.name === 'dead' ? 'dead' : 'live', places.map(idIn))
        for (const [i, { job }] of views.entries()) {
          // It may have moved on since it was found.
          if (job === undefined || !section.states.includes(job.state)) continue
          if (query.state === undefined || job.state === query.state)
            found.push({ job, position: [...section.head, ...places[i]!] })
        }
        from = next ?? 'past'
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
      let from: ListPosition | undefined | 'past'
      while (from !== 'past') {
        const { places, next }: SectionPage = await this.#pageOf(shard, section, from, step, isLifo)
        const beyond = places.map(idIn).filter((id) => past === undefined || compareBytes(id, past) > 0)
        first = [...new Set([...first, ...beyond])].sort(compareBytes).slice(0, count)
        from = next ?? 'past'
      }
    }
    return first
  }

  /** At most `most` places of a section, from its start on or behind the place `after`. */
  async #pageOf(
    shard: RedisShard,
    section: Section,
    after: ListPosition | undefined,
    most: number,
    isLifo: boolean,
    group = '',
  ): Promise<SectionPage> {
    const { name, idAt, numbersIn, bytesOf } = section
    const numbers = after?.slice(0, -1).map(Number) ?? []
    const bytes = after === undefined ? '' : Buffer.concat([bytesOf(numbers, isLifo), Buffer.from(idIn(after))])
    const reply = await this.#queues.run(shard, sectionScripts, [name, bytes, String(most), group])
    if (name === 'running') return pageOfClaims(reply, after, most)
    const [members, last] = listIn(reply)
    const placeIn = (member: RedisReply): ListPosition => {
      const place = bytesIn(member)
      return [...numbersIn(place, isLifo), place.toString('utf8', idAt)]
    }
    return { places: listIn(members).map(placeIn), next: last === null ? undefined : placeIn(last!) }
  }

  #view(shard: RedisShard, kind: ListedKind, ids: readonly string[]): Promise<JobView[]> {
    return viewJobs(this.#queues, shard, ids, { kind, as: 'listed' })
  }
}

function idIn(place: ListPosition): string {
  return String(place.at(-1))
}

/**
 * The order of a plain queue's listing by time. Its completed and dead jobs are read from the end of their keys: of those with
 * equal numbers, which only jobs of different shards have, the last id comes first.
 */
function compareEndsBackwards(a: ListPosition, b: ListPosition): number {
  const byNumbers = comparePositions(a.slice(0, -1), b.slice(0, -1))
  if (byNumbers !== 0) return byNumbers
  const byId = compareBytes(idIn(a), idIn(b))
  return endHeads.includes(a[0]) ? -byId : byId
}

/** The claims come in no order. */
function pageOfClaims(reply: RedisReply, after: ListPosition | undefined, most: number): SectionPage {
  const left = rowsIn(reply, 2)
    .map(([id, claim]): ListPosition => {
      const { fence, seq } = readClaim(bytesIn(claim))
      return [fence, seq, textIn(id)]
    })
    .filter((place) => after === undefined || comparePositions(place, after) > 0)
    .sort(comparePositions)
  const places = left.slice(0, most)
  return { places, next: left.length > most ? places.at(-1) : undefined }
}

function wanted(views: readonly JobView[], { state }: ListQuery, number: number): FoundJob[] {
  return views.flatMap(({ job }) =>
    job === undefined || (state !== undefined && job.state !== state) ? [] : [{ job, position: [job.id, number] }],
  )
}

/** The sections of a shard: its keys in the order of a listing by time, and the place of a job in each. Pure. */
interface Section extends PlaceForm {
  readonly name: 'running' | 'ready' | 'suspects' | 'scheduled' | 'joining' | 'completed' | 'dead' | 'retries'
  readonly states: readonly JobState[]
  /** The beginning of a position of this section. Its own numbers and the id follow. */
  readonly head: readonly number[]
}

/** The form of the places in a section's key: some numbers, then the id. */
interface PlaceForm {
  /** How many bytes precede the id. */
  readonly idAt: number
  /** The numbers that a position has for them. */
  numbersIn(place: Buffer, isLifo: boolean): readonly number[]
  bytesOf(numbers: readonly number[], isLifo: boolean): Buffer
}

/** Claims are in no order, and have their numbers elsewhere. */
const claimed: PlaceForm = { idAt: 0, numbersIn: () => [], bytesOf: () => Buffer.alloc(0) }
const inLine: PlaceForm = {
  idAt: 15,
  numbersIn(place, isLifo) {
    const bytes = place.subarray(2, 9)
    const stamp = readNumber(isLifo ? inverted(bytes) : bytes, 0, 7)
    return [place.readUInt16BE(0) - 32_767, isLifo ? -stamp : stamp, readNumber(place, 9, 6)]
  },
  bytesOf([priority, stamp, seq], isLifo) {
    const bytes = numberBytes(Math.abs(stamp!), 7)
    return Buffer.concat([numberBytes(32_767 + priority!, 2), isLifo ? inverted(bytes) : bytes, numberBytes(seq!, 6)])
  },
}
const byDue: PlaceForm = {
  idAt: 13,
  numbersIn: (place) => [readNumber(place, 0, 7), readNumber(place, 7, 6)],
  bytesOf: ([stamp, seq]) => Buffer.concat([numberBytes(stamp!, 7), numberBytes(seq!, 6)]),
}
const byEnd: PlaceForm = {
  idAt: 12,
  numbersIn: (place) => [-readNumber(place, 0, 6), -readNumber(place, 6, 6)],
  bytesOf: ([finishedAt, seq]) => Buffer.concat([numberBytes(-finishedAt!, 6), numberBytes(-seq!, 6)]),
}

function inverted(bytes: Buffer): Buffer {
  return Buffer.from(bytes.map((byte) => 255 - byte))
}

/** Ordered queues have no `completed` and no `joining`, and all sequence numbers are 0: otherwise equal jobs are in the order of ids. */
const sections: readonly Section[] = [
  { name: 'running', states: ['running'], head: [0], ...claimed },
  { name: 'ready', states: ['ready'], head: [1, 0], ...inLine },
  { name: 'suspects', states: ['ready'], head: [1, 1], ...inLine },
  { name: 'scheduled', states: ['scheduled'], head: [2], ...byDue },
  { name: 'joining', states: ['waiting'], head: [3], ...byDue },
  { name: 'completed', states: ['completed'], head: [4], ...byEnd },
  { name: 'dead', states: ['dead'], head: [5], ...byEnd },
]

/** The first characters of the positions of completed and dead jobs. */
const endHeads: readonly unknown[] = sections.flatMap(({ name, head }) =>
  name === 'completed' || name === 'dead' ? head : [],
)

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
  idAt: 9,
  numbersIn: (place) => [readNumber(place, 0, 3), readNumber(place, 3, 6)],
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
