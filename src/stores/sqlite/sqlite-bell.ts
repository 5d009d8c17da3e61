/**
 * The bell of a SQLite store: notifies waiters in this process that a queue was rung or that jobs ended, in any
 * process. All of them share one watch of one directory. A look about twice a second catches what the watch missed. If
 * no watch can be had, more frequent looks take its place.
 */

import { type FSWatcher, watch } from 'node:fs'
import { basename } from 'node:path'
import { systemRandom } from '../../core/platform/clock.js'
import { bellDirectory, makeBellDirectories, resultsDirectory } from './sqlite-wake-token.js'

/** The longest time between two looks. With the waiter's grace, a ready job is noticed within a second. */
const lookMs = 800
const blindLookMs = 50

interface BellListener {
  /** A file of this name was made, written or removed. */
  rung(name: string): void
  /** Time to look. `hasChanged`: another connection has committed since the last look, or nobody knows. */
  look(hasChanged: boolean): void
}

export class SqliteBell {
  readonly #directory: string
  readonly #file: string
  readonly #dataVersion: () => Promise<number>
  readonly #listeners = new Set<BellListener>()
  #watcher: FSWatcher | undefined
  #isBlind = false
  #timer: NodeJS.Timeout | undefined
  #lastVersion: number | undefined
  /** Grows when the last listener leaves: a look that is still under way must then not go on next to a new one. */
  #round = 0

  /** Listens for queues, or for jobs that end. `dataVersion` changes when another connection has committed. */
  constructor(file: string, of: 'queues' | 'results', dataVersion: () => Promise<number>) {
    this.#file = file
    this.#directory = of === 'queues' ? bellDirectory(file) : resultsDirectory(file)
    this.#dataVersion = dataVersion
  }

  /** From the moment this resolves, the listener misses no ring until the function that it resolves with is called. */
  async listen(listener: BellListener): Promise<() => void> {
    // Opens the store if need be, so that nothing is made next to a file that is not ours.
    if (this.#watcher === undefined) await this.#dataVersion()
    this.#listeners.add(listener)
    this.#watch()
    this.#lookLater()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      clearTimeout(this.#timer)
      this.#timer = undefined
      this.#round += 1
      // The first look finds what is committed while nobody listens.
      this.#lastVersion = undefined
    }
  }

  ring(name: string): void {
    for (const listener of [...this.#listeners]) listener.rung(name)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#watcher?.close()
    this.#watcher = undefined
    this.#tellToLook(true)
  }

  #tellToLook(hasChanged: boolean): void {
    for (const listener of [...this.#listeners]) listener.look(hasChanged)
  }

  /** The watch stays when nobody listens: it costs nothing, and keeps no process alive. */
  #watch(): void {
    if (this.#watcher !== undefined || this.#isBlind) return
    try {
      makeBellDirectories(this.#file)
      this.#watcher = watch(this.#directory, { persistent: false }, (_, name) => this.#hear(name))
      this.#watcher.on('error', () => this.#goBlind())
    } catch {
      this.#goBlind()
    }
  }

  #hear(name: string | null): void {
    if (name === null) return
    this.ring(name)
    // The event names the directory itself when that was removed. A directory made in its place needs a watch of its
    // own.
    if (name === basename(this.#directory)) this.#unwatch()
  }

  #unwatch(): void {
    this.#watcher?.close()
    this.#watcher = undefined
  }

  /** No watch can be had: the system's limit of watches is reached, or the directory is not ours. */
  #goBlind(): void {
    this.#unwatch()
    this.#isBlind = true
  }

  /** Each at a random moment, so that many waiters do not all look at a job that is about to be taken. */
  #lookLater(): void {
    const ms = (this.#isBlind ? blindLookMs : lookMs) * (1 - systemRandom() / 2)
    this.#timer ??= setTimeout(() => this.#look(), ms).unref()
  }

  async #look(): Promise<void> {
    const round = this.#round
    let version: number | undefined
    try {
      version = await this.#dataVersion()
    } catch {
      // The listeners then look for themselves, and learn why they cannot. If the file was replaced, the directory may
      // have been too.
      this.#unwatch()
    }
    if (round !== this.#round) return
    this.#watch()
    this.#tellToLook(version === undefined || version !== this.#lastVersion)
    this.#lastVersion = version
    this.#timer = undefined
    if (this.#listeners.size > 0) this.#lookLater()
  }
}
