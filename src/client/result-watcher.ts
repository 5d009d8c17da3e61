/** The result watcher: one watch on the store for all results this process waits for. */

import type { Store } from '../stores/store.js'
import { recordsOf } from './records-facet.js'

/** Longest single watch; a new one follows. */
const roundMs = 5_000

interface Watched {
  readonly queue: string
  readonly id: string
  readonly wake: Set<(error?: unknown) => void>
}

export class ResultWatcher {
  readonly #connect: () => Promise<Store>
  readonly #watched = new Map<string, Watched>()
  #round: AbortController | undefined
  #running = false

  constructor(connect: () => Promise<Store>) {
    this.#connect = connect
  }

  /** Resolves when the job has ended or is not there, or after `forMs`. Throws what the watch throws. */
  async ended(queue: string, id: string, forMs: number): Promise<void> {
    const key = `${queue}:${id}`
    const watched = this.#watched.get(key) ?? { queue, id, wake: new Set() }
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
  }

  async #run(): Promise<void> {
    this.#running = true
    while (this.#watched.size > 0) {
      const round = new AbortController()
      this.#round = round
      try {
        const jobs = [...this.#watched.values()].map(({ queue, id }) => ({ queue, id }))
        const ended = await recordsOf(await this.#connect()).watch(jobs, roundMs, round.signal)
        for (const { queue, id } of ended) this.#wake(`${queue}:${id}`)
      } catch (error) {
        for (const key of [...this.#watched.keys()]) this.#wake(key, error)
      }
    }
    this.#running = false
  }

  #wake(key: string, error?: unknown): void {
    for (const done of [...(this.#watched.get(key)?.wake ?? [])]) done(error)
  }
}
