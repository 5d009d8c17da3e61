/** The harness of the memory store, with its audit. */

import type { JobState } from '../../core/job/job.js'
import type { Clock } from '../../core/platform/clock.js'
import { MemoryData, MemoryStore } from '../../stores/memory/memory-store.js'
import type { MemoryJob } from '../../stores/memory/queue/memory-job.js'
import { MemoryOrderedQueue } from '../../stores/memory/queue/memory-ordered-queue.js'
import type { MemoryQueue } from '../../stores/memory/queue/memory-queue.js'
import { trim } from '../../stores/memory/queue/memory-retention.js'
import { dueAt } from '../../stores/rules/sequence.js'
import type { CanonicalState } from '../state/canonical-state.js'
import { memoryState } from '../state/memory-state.js'
import { ManualClock } from './manual-clock.js'
import { type AuditEntry, auditKind } from './store-audit.js'
import { defaultStartAt, type HarnessMaker, type StoreHarness } from './store-harness.js'

/**
 * `isRemote`: whether it behaves like a server, which is away while it restarts. `byClock`: whether a job is ready as soon as it is
 * due, without a trace of the change, whether what is too old or too much goes at once, and whether a server tells its start in ms.
 */
export async function memoryHarness(
  options: Parameters<HarnessMaker>[0] & { readonly isRemote?: boolean; readonly byClock?: boolean } = {},
): Promise<StoreHarness> {
  const clock = new ManualClock(options.startAt ?? defaultStartAt)
  const data = new MemoryData(options.isRemote, options.mostClaimBytes)
  if (options.byClock) data.uptimeStepMs = 1
  const stamps = new SharedStamps(() => clock.now())
  const forget = () => {
    if (!options.byClock) return
    for (const queue of data.queues.all()) trim(queue, clock.now())
    stamps.follow(data.queues.all())
  }
  const audit = new MemoryAudit(data, clock, forget)
  const handles: MemoryStore[] = []
  return {
    name: 'memory',
    async open() {
      const store = new MemoryStore(clock, data)
      handles.push(store)
      return audit.watched(store)
    },
    async advance(ms) {
      clock.advance(ms)
      if (options.byClock) promoteDue(data, clock.now())
      forget()
    },
    async step(ms) {
      clock.step(ms)
    },
    async restart() {
      data.restart(clock.now())
    },
    async dump(): Promise<CanonicalState> {
      return memoryState(data, clock.now())
    },
    async audit(): Promise<AuditEntry[]> {
      return [...audit.entries]
    },
    async close() {
      for (const store of handles) await store.close()
    },
  }
}

/**
 * The memory store for a comparison with this store: as remote as it, on a clock that starts at the same instant.
 * `options`: the options with which the subject was made.
 */
export async function modelOf(subject: StoreHarness, options: Parameters<HarnessMaker>[0] = {}): Promise<StoreHarness> {
  const { traits } = await subject.open()
  return memoryHarness({ ...options, isRemote: traits.remote, byClock: subject.byClock !== undefined })
}

function promoteDue(data: MemoryData, now: number): void {
  for (const queue of data.queues.all())
    for (const job of [...queue.scheduled]) {
      if (dueAt(job.stamp) > now) break
      const { updatedAt } = job
      queue.promote(job, now)
      job.updatedAt = updatedAt
    }
}

/**
 * One clock for all shards: of two jobs that arrive in two shards within one ms, the first has the earlier instant. What falls due
 * at a ms comes before what arrives in it.
 */
class SharedStamps {
  #latest = 0
  readonly #now: () => number
  readonly #known = new Set<MemoryQueue>()

  constructor(now: () => number) {
    this.#now = now
  }

  follow(queues: Iterable<MemoryQueue>): void {
    for (const queue of queues) {
      if (this.#known.has(queue)) continue
      this.#known.add(queue)
      Object.defineProperty(queue, 'lastStamp', {
        get: () => Math.max(this.#latest, this.#now() * 1_000),
        set: (stamp: number) => {
          this.#latest = Math.max(this.#latest, stamp)
        },
      })
    }
  }
}

interface SeenJob {
  readonly job: MemoryJob
  readonly state: JobState
  readonly fence: number
  readonly worker: string | null
}

/**
 * The memory store's audit: it finds changes by comparing all jobs before and after each call. A call does its work
 * before it returns its promise. If a settle makes a result or dead job and also trims it, only `leave` is recorded.
 */
class MemoryAudit {
  readonly entries: AuditEntry[] = []
  readonly #data: MemoryData
  readonly #clock: Clock
  readonly #forget: () => void
  /** By queue, then by id. */
  #seen = new Map<string, Map<string, SeenJob>>()

  /** `forget`: what a call removes after it has done its work. */
  constructor(data: MemoryData, clock: Clock, forget: () => void) {
    this.#data = data
    this.#clock = clock
    this.#forget = forget
  }

  /** The same object, with a look at the jobs after each call of one of its methods or of its facets' methods. */
  watched<T extends object>(target: T): T {
    const facets = new Map<PropertyKey, object>()
    return new Proxy(target, {
      get: (_, key) => {
        const value: unknown = Reflect.get(target, key, target)
        if (typeof value === 'object' && value !== null) {
          if (!facets.has(key)) facets.set(key, this.watched(value))
          return facets.get(key)
        }
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          const answer: unknown = Reflect.apply(value, target, args)
          this.#forget()
          this.#look()
          return answer
        }
      },
    })
  }

  #look(): void {
    const before = this.#seen
    this.#seen = new Map()
    for (const queue of this.#data.queues.all()) {
      const { name } = queue.settings
      const shard = queue instanceof MemoryOrderedQueue ? queue.shard : undefined
      const key = JSON.stringify([name, shard])
      const seenBefore = before.get(key)
      const seen = new Map<string, SeenJob>()
      // A queue that a call asks twice gives two fences.
      for (const job of [...queue.jobs.values()].sort((a, b) => a.fence - b.fence)) {
        const { id } = job.spec
        const now = { job, state: job.state, fence: job.fence, worker: job.worker ?? null }
        seen.set(id, now)
        this.#compare({ queue: name, shard }, id, seenBefore?.get(id), now)
      }
      for (const [id, old] of seenBefore ?? [])
        if (!seen.has(id)) this.#compare({ queue: name, shard }, id, old, undefined)
      this.#seen.set(key, seen)
    }
  }

  #compare(
    at: { readonly queue: string; readonly shard: number | undefined },
    id: string,
    before: SeenJob | undefined,
    after: SeenJob | undefined,
  ): void {
    if (before !== undefined && after !== undefined && before.job !== after.job) {
      this.#compare(at, id, before, undefined)
      before = undefined
    }
    const isTakenOver = before?.state === 'running' && after?.state === 'running' && before.fence !== after.fence
    const steps: (JobState | null)[] = [before?.state ?? null]
    // A job whose lease expired or that fell due is recovered and taken in one call; so are payloads that waited behind
    // a claim.
    const isFound = before?.state === 'scheduled' || before === undefined
    if (isTakenOver || (isFound && after?.state === 'running')) steps.push('ready')
    steps.push(after?.state ?? null)
    for (const [i, to] of steps.slice(1).entries()) {
      const from = steps[i]!
      const kind = auditKind(from, to)
      const claim = to === 'running' ? after : from === 'running' ? before : undefined
      if (kind !== undefined)
        this.entries.push({
          at: this.#clock.now(),
          queue: at.queue,
          ...(at.shard === undefined ? {} : { shard: at.shard }),
          id,
          kind,
          from,
          to,
          fence: claim?.fence ?? 0,
          worker: claim?.worker ?? null,
        })
    }
  }
}
