/**
 * The bell of a SQLite store: tells those who wait in this process that a queue was rung or that jobs ended, in whatever
 * process that happened. One watch of one directory serves all of them. A look at `PRAGMA data_version` once a second
 * catches what the watch missed; where there is no watch to be had, the look alone, more often, takes its place.
 */

import { type FSWatcher, watch } from 'node:fs'
import { bellDirectory, makeBellDirectories, resultsDirectory } from './sqlite-bell-writer.js'

const lookMs = 1_000
const blindLookMs = 50

/** `names`: the queues that were rung, in lower case as some file systems have it; undefined: something changed, look. */
export type Listener = (names: ReadonlySet<string> | undefined) => void

export class SqliteBell {
  readonly #directory: string
  readonly #file: string
  readonly #dataVersion: () => Promise<number>
  readonly #listeners = new Set<Listener>()
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
  async listen(listener: Listener): Promise<() => void> {
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

  ring(names: ReadonlySet<string> | undefined): void {
    for (const listener of [...this.#listeners]) listener(names)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#watcher?.close()
    this.#watcher = undefined
    this.ring(undefined)
  }

  /** The watch stays when nobody listens: it costs nothing, and keeps no process alive. */
  #watch(): void {
    if (this.#watcher !== undefined || this.#isBlind) return
    try {
      makeBellDirectories(this.#file)
      this.#watcher = watch(this.#directory, { persistent: false }, (_, name) => {
        if (name !== null) this.ring(new Set([name.toLowerCase()]))
      })
      this.#watcher.on('error', () => this.#goBlind())
    } catch {
      this.#goBlind()
    }
  }

  /** No watch is to be had: the system's limit of them is reached, or the directory is gone. */
  #goBlind(): void {
    this.#watcher?.close()
    this.#watcher = undefined
    this.#isBlind = true
  }

  #lookLater(): void {
    this.#timer ??= setTimeout(() => this.#look(), this.#isBlind ? blindLookMs : lookMs).unref()
  }

  async #look(): Promise<void> {
    const round = this.#round
    let version: number | undefined
    try {
      version = await this.#dataVersion()
    } catch {
      // The listeners look for themselves then, and are told why they cannot.
    }
    if (round !== this.#round) return
    if (version === undefined || version !== this.#lastVersion) this.ring(undefined)
    this.#lastVersion = version
    this.#timer = undefined
    if (this.#listeners.size > 0) this.#lookLater()
  }
}
