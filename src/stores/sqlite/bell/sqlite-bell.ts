/**
 * The bell of a SQLite store: tells those who wait in this process that a queue was rung or that jobs ended, in whatever
 * process that happened. One watch of one directory serves all of them. A look about twice a second catches what the watch
 * missed; where there is no watch to be had, the look alone, more often, takes its place.
 */

import { type FSWatcher, watch } from 'node:fs'
import { basename } from 'node:path'
import { systemRandom } from '../../../core/platform/clock.js'
import { bellDirectory, makeBellDirectories, resultsDirectory } from './sqlite-bell-directory.js'

/** Longest time between two looks; with the waiter's grace, what is ready is noticed within a second. */
const lookMs = 800
const blindLookMs = 50

interface BellListener {
  /** A file of this name was made, written or removed. */
  rung(name: string): void
  /** Time to look; `hasChanged`: another connection has committed since the last look, or nobody can tell. */
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
  /** Grows when the last listener leaves: a look that is still under way then must not go on beside a new one. */
  #round = 0

  /** Listens for queues, or for jobs that end. `dataVersion` changes when another connection has committed. */
  constructor(file: string, of: 'queues' | 'results', dataVersion: () => Promise<number>) {
    this.#file = file
    this.#directory = of === 'queues' ? bellDirectory(file) : resultsDirectory(file)
    this.#dataVersion = dataVersion
  }

  /** From the moment this resolves, no ring escapes the listener until the function it resolves with is called. */
  async listen(listener: BellListener): Promise<() => void> {
    // Opens the store, if need be, so that nothing is put beside a file that is not ours.
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
      // What is committed while nobody listens is found by the look that comes first.
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
    // So the directory itself is named, when it was removed: what is made in its place needs a watch of its own.
    if (name === basename(this.#directory)) this.#unwatch()
  }

  #unwatch(): void {
    this.#watcher?.close()
    this.#watcher = undefined
  }

  /** No watch is to be had: the system's limit of them is reached, or the directory is not ours. */
  #goBlind(): void {
    this.#unwatch()
    this.#isBlind = true
  }

  /** Each at a moment of its own: many who wait must not all look while a job passes by. */
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
      // The listeners look for themselves then, and are told why they cannot. Where the file was replaced the directory may
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
