/** The result watcher: one watch on the store for all results this process waits for, and what tells a job that completed from one that was lost. */

import { setImmediate as endOfTick } from 'node:timers/promises'
import type { Store } from '../../stores/contract/store.js'
import { recordsOf } from '../records-facet.js'

/** Longest single watch; a new one follows. */
const roundMs = 5_000

/** How a queue stood at a moment, on the store's clock; jobs that were there after it can be told from lost ones by it. */
export interface Mark {
  readonly at: number
}

/** A look at the store, from which a mark is made and by which it is judged. */
interface Look {
  readonly now: number
  readonly lostAt: number
}

/** A mark that is older is no evidence: what was kept for a short time may be hidden and not have been counted as lost yet. */
const longestMarkMs = 60_000
/** A new mark is made so often, counted in watches that end because a job did. */
const watchesPerMark = 16

interface Watched {
  readonly queue: string
  readonly id: string
  /** The job was seen after it. */
  mark: Mark | undefined
  readonly wake: Set<(error?: unknown) => void>
}

export class ResultWatcher {
  readonly #connect: () => Promise<Store>
  readonly #watched = new Map<string, Watched>()
  #round: AbortController | undefined
  #running = false
  /** By queue looks that began in this tick, and looks that begin when it is over. */
  readonly #begun = new Map<string, Promise<Look>>()
  readonly #planned = new Map<string, Promise<Look>>()

  constructor(connect: () => Promise<Store>) {
    this.#connect = connect
  }

  /** How the queue stands now. What is asked of the store after this call finds it so or later. */
  async mark(queue: string): Promise<Mark> {
    // One that has begun is as good: it may only be older.
    const look = this.#begun.get(queue) ?? this.#lookAt(queue)
    if (!this.#begun.has(queue)) {
      this.#begun.set(queue, look)
      void endOfTick().then(() => this.#begun.delete(queue))
    }
    return { at: (await look).now }
  }

  /**
   * Whether a job that was seen after `mark` and is gone now has completed, with nothing kept of it: nothing has been removed
   * from its queue since then.
   */
  async hasLostNothing(queue: string, mark: Mark): Promise<boolean> {
    // It must begin after this call: one that has begun may not have seen what was removed.
    const look = this.#planned.get(queue) ?? endOfTick().then(() => this.#beginPlanned(queue))
    this.#planned.set(queue, look)
    const { now, lostAt } = await look
    return lostAt < mark.at && mark.at <= now && now < mark.at + longestMarkMs
  }

  /**
   * Resolves when the job has ended or is not there, or after `forMs`, with the latest mark after which it was seen: the one
   * given or a later one. Throws what the watch throws.
   */
  async ended(queue: string, id: string, forMs: number, mark?: Mark): Promise<Mark | undefined> {
    const key = `${queue}:${id}`
    const watched: Watched = this.#watched.get(key) ?? { queue, id, mark, wake: new Set() }
    if (mark !== undefined && mark.at > (watched.mark?.at ?? 0)) watched.mark = mark
    this.#watched.set(key, watched)
    await new Promise<void>((resolve, reject) => {
      const done = (error?: unknown) => {
        clearTimeout(timer)
        watched.wake.delete(done)
        if (watched.wake.size === 0) this.#watched.delete(key)
        if (error === undefined) resolve()
        else reject(error)
      }
      const timer = setTimeout(() => done(), Math.min(forMs, 0x7fffffff))
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
        const watched = [...this.#watched.values()]
        const jobs = watched.map(({ queue, id }) => ({ queue, id }))
        const marks = untilMark > 0 ? undefined : await this.#marks(new Set(jobs.map(({ queue }) => queue)))
        const ended = await recordsOf(await this.#connect()).watch(jobs, roundMs, round.signal)
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
