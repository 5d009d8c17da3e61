/** The memory store: for tests, and the executable specification of the contract. It lives and dies with its process. */

import { setMaxListeners } from 'node:events'
import { ClosedError } from '../../core/errors.js'
import { type Clock, systemClock } from '../../core/platform/clock.js'
import type { Claimed, Claimer, ClaimFrom } from '../contract/claim.js'
import type { History, HistoryStep } from '../contract/history.js'
import type { Deaths, Records } from '../contract/job-records.js'
import type { Joins } from '../contract/joins.js'
import type { LiveMessages } from '../contract/live-messages.js'
import type { EnqueueCall, Enqueued } from '../contract/new-job.js'
import type { QueueDepth } from '../contract/queue-depth.js'
import type { QueueSettings, StoredQueue } from '../contract/queue-settings.js'
import type { Schedules } from '../contract/schedules.js'
import type { ExtendAnswer, ExtendItem, SettleAnswer, SettleItem } from '../contract/settle.js'
import type { Steps } from '../contract/steps.js'
import type { Store, StoreTraits } from '../contract/store.js'
import type { Throttles } from '../contract/throttles.js'
import type { WorkerRegistry } from '../contract/worker-registry.js'
import { type ClaimLoad, isLoaded, mostClaimBytes } from '../rules/claim-weight.js'
import {
  countNumbers,
  countsLength,
  gaugeNumbers,
  historySteps,
  oldestSlotAt,
  pointOf,
  slotAt,
} from '../rules/history-slots.js'
import { shardOf } from '../rules/payloads.js'
import type { MemoryAdmin } from './memory-admin.js'
import { MemoryBell } from './memory-bell.js'
import { depth, MemoryQueues, oldestAgeMs } from './memory-queues.js'
import { memoryTraits } from './memory-traits.js'
import { MemoryJoins } from './queue/memory-joins.js'
import { MemoryOrderedQueue } from './queue/memory-ordered-queue.js'
import type { MemoryQueue } from './queue/memory-queue.js'
import { trim } from './queue/memory-retention.js'
import { memoryJoins } from './records/memory-join-facet.js'
import { memoryDeaths, memoryRecords } from './records/memory-records.js'
import { type MemoryWorker, memoryRegistry } from './records/memory-registry.js'
import { MemorySchedules, memorySchedules } from './records/memory-schedules.js'
import { memorySteps } from './records/memory-steps.js'
import { memoryThrottles } from './records/memory-throttles.js'
import { claimFrom, type QueueAnswer } from './work/memory-claim.js'
import { enqueue } from './work/memory-enqueue.js'
import { extend, settle } from './work/memory-settle.js'

/** The data that the handles of one memory store share, as processes share a file. */
export class MemoryData {
  readonly joins = new MemoryJoins((queue, id, now) => {
    const job = this.queues.holding(queue, id)
    if (!job.isStopped && job.isCalling(id, now)) this.bell.ring(queue)
    this.bell.tellEnds()
  })
  readonly queues = new MemoryQueues(this.joins)
  readonly workers = new Map<string, MemoryWorker>()
  readonly schedules = new MemorySchedules()
  readonly bell = new MemoryBell()
  readonly watchers: MemoryWatchers = new Map()
  readonly history: MemoryHistory = new Map()
  /** Whether it behaves like a server. */
  readonly isRemote: boolean
  /** A claim of this weight, in bytes, is full. */
  readonly mostClaimBytes: number
  /** Another value means: restarted, and perhaps forgetful. */
  run = 'first'
  /** The start of the present run, for leases. */
  startedAt = Number.NEGATIVE_INFINITY
  /** How exactly a server tells its uptime: most do in whole seconds. */
  uptimeStepMs = 1_000

  constructor(isRemote = false, mostBytes = mostClaimBytes) {
    this.isRemote = isRemote
    this.mostClaimBytes = mostBytes
  }

  restart(now: number): void {
    this.run += ' again'
    if (this.isRemote) this.startedAt = now
  }

  /** The start of the present run as the server tells it. */
  toldStart(now: number): number {
    return now - Math.floor((now - this.startedAt) / this.uptimeStepMs) * this.uptimeStepMs
  }
}

export class MemoryStore implements Store {
  readonly traits: StoreTraits
  readonly records: Records
  readonly workers: WorkerRegistry
  readonly throttles: Throttles
  readonly schedules: Schedules
  readonly live: LiveMessages
  readonly history: History
  readonly joins: Joins
  readonly steps: Steps
  readonly deaths: Deaths
  readonly #clock: Clock
  readonly #data: MemoryData
  readonly #closing = new AbortController()

  constructor(clock: Clock = systemClock, data = new MemoryData()) {
    this.#clock = clock
    this.#data = data
    this.traits = { ...memoryTraits, remote: data.isRemote }
    // Each wait under way has a listener, and their number is not limited.
    setMaxListeners(0, this.#closing.signal)
    const whileOpen = <Part>(part: Part) => {
      return () => {
        this.#refuseClosed()
        return part
      }
    }
    const admin: MemoryAdmin = {
      queues: whileOpen(data.queues),
      now: () => clock.now(),
      ring: (queue) => this.#ring(queue),
      enqueue: (call) => this.#enqueueAll([call])[0]!,
      tellSchedules: () => data.bell.tellSchedules(),
      nextSchedule: (forMs, signal) => data.bell.scheduled(forMs, [signal, this.#closing.signal]),
      tellEnds: () => data.bell.tellEnds(),
      gatherEnds: (step) => data.joins.gatherEnds(step),
      nextEnd: (forMs, signal) => data.bell.ended(forMs, [signal, this.#closing.signal]),
    }
    this.records = memoryRecords(admin)
    this.throttles = memoryThrottles(admin)
    this.schedules = memorySchedules(admin, whileOpen(data.schedules))
    this.live = memoryLive(data.watchers, this.#closing.signal, () => this.#refuseClosed())
    this.history = memoryHistory(admin.now, whileOpen(data.history))
    this.joins = memoryJoins(admin, whileOpen(data.joins))
    this.steps = memorySteps(admin)
    this.deaths = memoryDeaths(admin)
    this.workers = memoryRegistry(admin, whileOpen(data.workers))
  }

  async open(queues: readonly QueueSettings[], { follows } = { follows: false }): Promise<StoredQueue[]> {
    this.#refuseClosed()
    this.#data.queues.refuseOthers(queues, follows)
    return queues.map((settings) => this.#data.queues.open(settings, follows))
  }

  async enqueue(calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    this.#refuseClosed()
    return this.#enqueueAll(calls)
  }

  async claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    this.#refuseClosed()
    // What it finds to have ended is reported when it is over.
    return this.#data.joins.gatherEnds(() => this.#claim(from, by))
  }

  #claim(from: readonly ClaimFrom[], by: Claimer): Claimed {
    const now = this.#clock.now()
    const candidates = from.flatMap((one) => this.#candidatesOf(one))
    const asked: QueueAnswer[] = []
    const load: ClaimLoad = { bytes: 0, most: this.#data.mostClaimBytes }
    for (const candidate of candidates) {
      const taken = asked.flatMap((one) => one.claims)
      const limit = candidate.from.limit - taken.length
      const goesOn =
        taken.length === 0 || (isNext(candidate, taken[0]!.queue) && by.alone !== true && limit > 0 && !isLoaded(load))
      if (!goesOn || (taken.length > 0 && candidate.queue?.settings.exclusive === 'shard')) break
      const answer = ask(candidate, limit, by, now, load, this.#data)
      asked.push(answer)
      if (answer.rings) this.#ring(candidate.from.queue)
    }
    const claims = asked.flatMap((one) => one.claims)
    const crashed = asked.flatMap((one) => one.crashed)
    const expired = asked.flatMap((one) => one.expired)
    if (crashed.length + expired.length > 0) this.#data.bell.tellEnds()
    return {
      now,
      ...(claims.length > 0 ? { queue: claims[0]!.queue } : {}),
      claims,
      crashed,
      buried: asked.flatMap((one) => one.buried),
      ...(expired.length > 0 ? { expired } : {}),
      waits: asked.flatMap((one) => one.waits),
      ...(by.heads ? { heads: candidates.map((candidate) => headOf(candidate, now)) } : {}),
      more: asked.some((one) => one.more),
    }
  }

  async settle(items: readonly SettleItem[]): Promise<SettleAnswer[]> {
    this.#refuseClosed()
    const now = this.#clock.now()
    const queues = this.#queuesOf(items)
    const answers = items.map((item, i) => settle(queues[i]!, item, now))
    const settled = items.filter((_, i) => answers[i] === 'ok')
    for (const queue of new Set(this.#queuesOf(settled))) trim(queue, now)
    this.#ringFor(settled, now)
    this.#ringFreed(settled, now)
    if (settled.length > 0) this.#data.bell.tellEnds()
    return answers
  }

  async extend(items: readonly ExtendItem[]): Promise<ExtendAnswer[]> {
    this.#refuseClosed()
    const now = this.#clock.now()
    const queues = this.#queuesOf(items)
    return items.map((item, i) => extend(queues[i]!, item, now))
  }

  async depth(queues: readonly string[]): Promise<{ now: number; depths: QueueDepth[] }> {
    this.#refuseClosed()
    const now = this.#clock.now()
    return { now, depths: queues.map((name) => depth(this.#data.queues.shardsOf(name), now)) }
  }

  async wait(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    this.#refuseClosed()
    const now = this.#clock.now()
    const asked = queues.flatMap((name) => this.#data.queues.shardsOf(name))
    // Nobody waited when a scheduled job was announced; without a lead it would be noticed late.
    const unheard = signal.aborted ? [] : this.#data.bell.unheard(queues)
    const found = asked
      .filter((queue) => queue.needsClaimer(now) || (unheard.includes(queue.settings.name) && queue.needsLead(now)))
      .map((queue) => queue.settings.name)
    if (found.length > 0) return [...new Set(found)]
    const rung = await this.#data.bell.rung(queues, forMs, [signal, this.#closing.signal])
    return rung === undefined ? [] : [rung]
  }

  async close(): Promise<void> {
    this.#closing.abort()
  }

  #refuseClosed(): void {
    if (this.#closing.signal.aborted) throw new ClosedError('the memory store')
  }

  #enqueueAll(calls: readonly EnqueueCall[]): Enqueued[][] {
    const now = this.#clock.now()
    // Look up all before changing the first: an unknown one must change nothing.
    for (const { queue } of calls) this.#data.queues.shardsOf(queue)
    const added: { queue: string; id: string }[] = []
    const answers = calls.map((call) => this.#enqueue(call, now, (id) => added.push({ queue: call.queue, id })))
    this.#ringFor(added, now)
    return answers
  }

  /** `came` is called with each job that this call added. A call that is sent again adds none. */
  #enqueue({ callId, queue, jobs }: EnqueueCall, now: number, came: (id: string) => void): Enqueued[] {
    const [first, ...others] = this.#data.queues.shardsOf(queue)
    if (others.length === 0) return enqueue(first!, { callId, jobs }, now, came)
    const answers = new Array<Enqueued>(jobs.length)
    for (const [i, shard] of [first!, ...others].entries()) {
      const places = [...jobs.keys()].filter((n) => shardOf(jobs[n]!.id, others.length + 1) === i)
      if (places.length === 0) continue
      const part = { callId, jobs: places.map((n) => jobs[n]!), places }
      const answered = enqueue(shard, part, now, came)
      for (const [n, place] of places.entries()) answers[place] = answered[n]!
    }
    return answers
  }

  #candidatesOf(from: ClaimFrom): MemoryCandidate[] {
    const shards = this.#data.queues.shardsOf(from.queue)
    if (!(shards[0] instanceof MemoryOrderedQueue)) return [{ from, queue: shards[0]! }]
    if (from.shard !== undefined) return [{ from, queue: shards[from.shard] }]
    return shards.map((queue, shard) => ({ from: { ...from, shard }, queue }))
  }

  /** Look up all before changing the first: an unknown one must change nothing. */
  #queuesOf(items: readonly { readonly queue: string; readonly id: string }[]): MemoryQueue[] {
    return items.map(({ queue, id }) => this.#data.queues.holding(queue, id))
  }

  #ring(name: string): void {
    const shards = this.#data.queues.shardsOf(name)
    if (!shards.every((shard) => shard.isStopped)) this.#data.bell.ring(name)
  }

  /** Rings the queues in which the end of these claims made room for more. */
  #ringFreed(items: readonly { readonly queue: string; readonly id: string }[], now: number): void {
    const freed = items.filter(({ queue, id }) => {
      const { settings, limits } = this.#data.queues.holding(queue, id)
      if (settings.exclusive !== 'shard' && limits.maxRunning === undefined) return false
      return this.#data.queues.shardsOf(queue).some((shard) => shard.claimable(now) > 0 || shard.isOpenForSuspects(now))
    })
    for (const queue of new Set(freed.map((item) => item.queue))) this.#ring(queue)
  }

  /** Rings each queue once if one of these jobs is a reason to. */
  #ringFor(jobs: readonly { readonly queue: string; readonly id: string }[], now: number): void {
    const calling = jobs.filter(({ queue, id }) => this.#data.queues.holding(queue, id).isCalling(id, now))
    for (const queue of new Set(calling.map((job) => job.queue))) this.#ring(queue)
  }
}

/** The target of one entry of a claim: a queue, or a shard of an ordered one, which may not exist. */
interface MemoryCandidate {
  readonly from: ClaimFrom
  readonly queue: MemoryQueue | undefined
}

/** Whether it is another shard of the ordered queue that has granted. A plain queue grants by one entry. */
function isNext({ from, queue }: MemoryCandidate, granted: string): boolean {
  return from.queue === granted && (queue === undefined || queue instanceof MemoryOrderedQueue)
}

function ask(
  { from, queue }: MemoryCandidate,
  limit: number,
  by: Claimer,
  now: number,
  load: ClaimLoad,
  data: MemoryData,
): QueueAnswer {
  if (queue !== undefined)
    return claimFrom(queue, { ...from, limit }, by, { now, run: data.run, startedAt: data.toldStart(now) }, load)
  const empty = { queue: from.queue, shard: from.shard!, reason: 'empty' as const }
  return { claims: [], crashed: [], buried: [], expired: [], waits: [empty], more: false, rings: false }
}

function headOf({ from, queue }: MemoryCandidate, now: number): { queue: string; shard?: number; ageMs?: number } {
  const ageMs = queue === undefined ? undefined : oldestAgeMs(queue.ready, now)
  return {
    queue: from.queue,
    ...(from.shard === undefined ? {} : { shard: from.shard }),
    ...(ageMs === undefined ? {} : { ageMs }),
  }
}

type MessageEar = (message: string | undefined) => void

/** The watchers of each queue, from all handles. */
type MemoryWatchers = Map<string, Set<MessageEar>>

/**
 * Live messages: all watchers are in this process. `closing`: aborts when the handle closes. `refuseClosed` throws
 * `ClosedError`.
 */
function memoryLive(watchers: MemoryWatchers, closing: AbortSignal, refuseClosed: () => void): LiveMessages {
  return {
    async publish(queue, message) {
      refuseClosed()
      const heard = [...(watchers.get(queue) ?? [])]
      if (message !== undefined) for (const hear of heard) hear(message)
      return heard.length > 0
    },

    async watch(queue, heard, signal) {
      refuseClosed()
      if (signal.aborted) return
      // One function may watch twice: each watch is separate.
      const ear: MessageEar = (message) => heard(message)
      const ears = watchers.get(queue) ?? new Set()
      watchers.set(queue, ears.add(ear))
      const over = AbortSignal.any([signal, closing])
      over.addEventListener('abort', () => {
        ears.delete(ear)
        if (ears.size === 0 && watchers.get(queue) === ears) watchers.delete(queue)
      })
    },
  }
}

type HistorySlots = Map<number, number[]>

/** By queue. */
type MemoryHistory = Map<string, Readonly<Record<HistoryStep, HistorySlots>>>

/** The history: the slots of each queue, by their beginning. `history` throws `ClosedError` on a closed handle. */
function memoryHistory(now: () => number, history: () => MemoryHistory): History {
  return {
    async add(entries) {
      const known = history()
      for (const { queue, agoMs, counts, gauges } of entries) {
        const of = known.get(queue) ?? { minute: new Map(), hour: new Map() }
        known.set(queue, of)
        const numbers = countNumbers(counts)
        for (const step of historySteps) addTo(of[step], slotAt(step, now() - agoMs), numbers, gaugeNumbers(gauges))
      }
      for (const of of known.values()) for (const step of historySteps) forget(of[step], oldestSlotAt(step, now()))
    },

    async read(queues, { step, fromAt, toAt }) {
      const known = history()
      const oldest = Math.max(fromAt, oldestSlotAt(step, now()))
      return queues.map((queue) =>
        [...(known.get(queue)?.[step] ?? [])]
          .filter(([at]) => at >= oldest && at < toAt)
          .sort(([a], [b]) => a - b)
          .map(([at, numbers]) => pointOf(at, numbers)),
      )
    },
  }
}

function addTo(slots: HistorySlots, at: number, counts: readonly number[], gauges: readonly number[]): void {
  const before = slots.get(at) ?? []
  const sums = counts.map((count, i) => count + (before[i] ?? 0))
  slots.set(at, [...sums, ...(gauges.length > 0 ? gauges : before.slice(countsLength))])
}

function forget(slots: HistorySlots, before: number): void {
  for (const at of slots.keys()) if (at < before) slots.delete(at)
}
