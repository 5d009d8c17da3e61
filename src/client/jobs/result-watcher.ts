/**
 * The result watcher: one watch on the store for all results that this process waits for, and the distinction between
 * completed and lost jobs.
 */

import { randomBytes } from 'node:crypto'
import { setImmediate as endOfTick } from 'node:timers/promises'
import type { JobKey, Records } from '../../stores/contract/job-records.js'
import type { Store } from '../../stores/contract/store.js'
import { recordsOf } from '../store-facets.js'
import type { ResultWait, UnservedQueues } from './unserved-queues.js'

/** The longest single watch; a new one follows. */
const roundMs = 5_000

/**
 * The state of a queue at a moment, on the store's clock. It shows whether a job that was there later has completed or
 * was lost.
 */
export interface Mark {
  readonly at: number
}

/** A look at the store, from which a mark is made and against which it is compared. */
interface Look {
  readonly now: number
  readonly lostAt: number
}

/**
 * An older mark is no evidence: by then the store may have dropped the result of a job that this process, stopped for so
 * long, had said that it waits for.
 */
const longestMarkMs = 30_000
/** For how long one call keeps results for this process. They are kept on before that is over. */
const expectedMs = 60_000
const againMs = 20_000
/** Jobs that are no longer waited for are told of together. */
const leaveAfterMs = 100
/** The number of watches ended by a job after which a new mark is made. */
const watchesPerMark = 16

interface Watched extends ResultWait {
  /** The job was seen after this mark. */
  mark: Mark | undefined
  readonly wake: Set<(error?: unknown) => void>
}

/** How the end of a job is waited for. */
interface EndWait {
  /** The job was seen after this mark. */
  readonly mark?: Mark | undefined
  /** Ends the wait. */
  readonly signal?: AbortSignal
  /** Since when the caller has waited for its result, on the clock of `UnservedQueues`. */
  readonly since?: number
}

/** The store has been sent the jobs that are waited for; `told`: it has answered. */
export interface SentWaits {
  readonly told: Promise<void>
}

/** A job whose result the store keeps for this process, and for how many waits. */
interface Expected {
  readonly key: JobKey
  waits: number
  /** When the store was told last. */
  toldAt: number
}

export class ResultWatcher {
  readonly #connect: () => Promise<Store>
  readonly #unserved: UnservedQueues
  readonly #watched = new Map<string, Watched>()
  #round: AbortController | undefined
  #running = false
  /** By queue: looks that began in this tick, and looks that begin when it is over. */
  readonly #begun = new Map<string, Promise<Look>>()
  readonly #planned = new Map<string, Promise<Look>>()

  /** The name of this process among those that wait. */
  readonly #name = randomBytes(4).toString('hex')
  readonly #expected = new Map<string, Expected>()
  /** By queue: jobs of which the store is to be told at once. */
  readonly #toTell = new Map<string, { readonly jobs: JobKey[]; readonly sent: Promise<SentWaits> }>()
  /** Those that are no longer waited for. */
  readonly #left = new Map<string, JobKey>()
  #leaving: NodeJS.Timeout | undefined

  constructor(connect: () => Promise<Store>, unserved: UnservedQueues) {
    this.#connect = connect
    this.#unserved = unserved
  }

  /**
   * Says to the store that this process waits for the job, until `leave`: retention then leaves its result. Resolves when
   * that is sent, with the promise of the answer, so that a look at the job can follow without waiting.
   */
  expect(queue: string, id: string): Promise<SentWaits> {
    const name = `${queue}:${id}`
    const key = { queue, id }
    const expected = this.#expected.get(name) ?? { key, waits: 0, toldAt: 0 }
    expected.waits += 1
    this.#expected.set(name, expected)
    this.#left.delete(name)
    // One call for all jobs of a queue that are asked for in one go.
    const batch = this.#toTell.get(queue) ?? { jobs: [], sent: Promise.resolve().then(() => this.#send(queue)) }
    batch.jobs.push(key)
    this.#toTell.set(queue, batch)
    return batch.sent
  }

  /** Each `expect` has one. */
  leave(queue: string, id: string): void {
    const name = `${queue}:${id}`
    const expected = this.#expected.get(name)!
    expected.waits -= 1
    if (expected.waits > 0) return
    this.#expected.delete(name)
    this.#left.set(name, expected.key)
    this.#leaving ??= setTimeout(() => {
      const jobs = [...this.#left.values()]
      this.#left.clear()
      this.#leaving = undefined
      // If this fails, the store forgets them by itself.
      void this.#connect()
        .then((store) => recordsOf(store).expect(jobs, this.#name, 0))
        .catch(() => {})
    }, leaveAfterMs).unref()
  }

  async #send(queue: string): Promise<SentWaits> {
    const { jobs } = this.#toTell.get(queue)!
    this.#toTell.delete(queue)
    return { told: this.#tell(recordsOf(await this.#connect()), jobs) }
  }

  async #tell(records: Records, jobs: readonly JobKey[]): Promise<void> {
    const toldAt = performance.now()
    await records.expect(jobs, this.#name, expectedMs)
    for (const { queue, id } of jobs) {
      const expected = this.#expected.get(`${queue}:${id}`)
      if (expected !== undefined) expected.toldAt = toldAt
    }
  }

  /** Tells the store again of those of which it was told long ago. */
  async #tellAgain(records: Records): Promise<void> {
    const now = performance.now()
    const due = [...this.#expected.values()].filter(({ toldAt }) => toldAt > 0 && toldAt <= now - againMs)
    if (due.length > 0)
      await this.#tell(
        records,
        due.map(({ key }) => key),
      )
  }

  /** The present state of the queue. Later questions to the store find this state or a newer one. */
  async mark(queue: string): Promise<Mark> {
    // A look that has begun serves as well; it can only be older.
    const look = this.#begun.get(queue) ?? this.#lookAt(queue)
    if (!this.#begun.has(queue)) {
      this.#begun.set(queue, look)
      void endOfTick().then(() => this.#begun.delete(queue))
    }
    return { at: (await look).now }
  }

  /**
   * Whether a job that was seen after `mark` and is gone now has completed without a kept result. That is so if nothing
   * has been removed from its queue since then.
   */
  async hasLostNothing(queue: string, mark: Mark): Promise<boolean> {
    // The look must begin after this call: an earlier one may have missed a removal.
    const look = this.#planned.get(queue) ?? endOfTick().then(() => this.#beginPlanned(queue))
    this.#planned.set(queue, look)
    const { now, lostAt } = await look
    return lostAt < mark.at && mark.at <= now && now < mark.at + longestMarkMs
  }

  /**
   * Resolves when the job has ended or is not there, after `forMs`, or when `signal` aborts. Returns the latest mark after
   * which it was seen: the given one or a later one. Throws the errors of the watch.
   */
  async ended(
    queue: string,
    id: string,
    forMs: number,
    { mark, signal, since }: EndWait = {},
  ): Promise<Mark | undefined> {
    if (signal?.aborted) return mark
    const key = `${queue}:${id}`
    const watched: Watched = this.#watched.get(key) ?? { queue, id, mark, since, wake: new Set() }
    watched.since ??= since
    if (mark !== undefined && mark.at > (watched.mark?.at ?? 0)) watched.mark = mark
    this.#watched.set(key, watched)
    await new Promise<void>((resolve, reject) => {
      const done = (error?: unknown) => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', left)
        watched.wake.delete(done)
        if (watched.wake.size === 0) this.#watched.delete(key)
        if (error === undefined) resolve()
        else reject(error)
      }
      const left = () => {
        done()
        // The round need not last for nobody.
        if (this.#watched.size === 0) this.#round?.abort()
      }
      const timer = setTimeout(() => done(), Math.min(forMs, 0x7fffffff))
      signal?.addEventListener('abort', left)
      watched.wake.add(done)
      if (this.#running) this.#round?.abort()
      else void this.#run()
    })
    return watched.mark
  }

  #beginPlanned(queue: string): Promise<Look> {
    this.#planned.delete(queue)
    return this.#lookAt(queue)
  }

  async #lookAt(queue: string): Promise<Look> {
    const { now, depths } = await (await this.#connect()).depth([queue])
    return { now, lostAt: depths[0]!.lostAt ?? 0 }
  }

  async #run(): Promise<void> {
    this.#running = true
    let untilMark = watchesPerMark
    while (this.#watched.size > 0) {
      const round = new AbortController()
      this.#round = round
      try {
        const store = await this.#connect()
        const records = recordsOf(store)
        await this.#tellAgain(records)
        await this.#unserved.report(store, this.#watched.values())
        const watched = [...this.#watched.values()]
        const jobs = watched.map(({ queue, id }) => ({ queue, id }))
        const marks = untilMark > 0 ? undefined : await this.#marks(new Set(jobs.map(({ queue }) => queue)))
        const ended = await records.watch(jobs, roundMs, round.signal)
        untilMark = marks === undefined && ended.length > 0 ? untilMark - 1 : ended.length === 0 ? 0 : watchesPerMark
        if (marks !== undefined && !round.signal.aborted) {
          const gone = new Set(ended.map(({ queue, id }) => `${queue}:${id}`))
          for (const one of watched) if (!gone.has(`${one.queue}:${one.id}`)) one.mark = marks.get(one.queue)
        }
        for (const { queue, id } of ended) this.#wake(`${queue}:${id}`)
      } catch (error) {
        for (const key of [...this.#watched.keys()]) this.#wake(key, error)
      }
    }
    this.#running = false
  }

  async #marks(queues: ReadonlySet<string>): Promise<Map<string, Mark>> {
    return new Map(await Promise.all([...queues].map(async (queue) => [queue, await this.mark(queue)] as const)))
  }

  #wake(key: string, error?: unknown): void {
    for (const done of [...(this.#watched.get(key)?.wake ?? [])]) done(error)
  }
}
