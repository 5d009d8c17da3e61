/**
 * The wake tokens of a SQLite store, and the directories in which they lie. A token is a file in the bell's directory: it says
 * that a queue was rung and that nobody has answered yet. Of all waiters, in all processes, the one that removes the file is rung.
 *
 * A ring that finds the token there adds nothing: the waiter that takes it looks afterwards, and then sees what was
 * committed before the ring. So a waiter that takes a token must look or claim, or put it back.
 */

import { closeSync, constants, existsSync, openSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { isTrustedFolder, makeFolder } from './file/sqlite-sharing.js'

/** Only a new file, and never through a link. */
const openFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/**
 * The name of a queue's token. It is never a path, and has no capitals, which some file systems do not tell from small
 * letters.
 */
export function tokenName(queue: string): string {
  return queue.replace(/[^a-z0-9._-]/g, (letter) =>
    letter >= 'A' && letter <= 'Z' ? `+${letter.toLowerCase()}` : `%${letter.charCodeAt(0).toString(16)}`,
  )
}

/**
 * The name that is rung, in place of a queue's, when a schedule is written. Begins with `-`, which no queue name does.
 */
export const scheduleBell = '-schedules'

export class SqliteWakeTokens {
  readonly #file: string
  readonly #paths = new Map<string, string>()
  /** Whether the directory is known to exist and to be ours. */
  #isReady = false

  constructor(file: string) {
    this.#file = file
  }

  /** Never throws: a waiter that is not rung looks by itself within a second. */
  put(queue: string): void {
    // A second time if the directory was removed.
    for (let i = 0; i < 2; i += 1) {
      try {
        this.#makeReady()
        const path = this.#path(queue)
        // Mostly it is there when nobody waits, and an error would cost more than the look.
        if (existsSync(path)) return
        closeSync(openSync(path, openFlags, 0o600))
        return
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return
        this.#isReady = false
      }
    }
  }

  /** True for one of all that try. Never throws. */
  take(queue: string): boolean {
    try {
      this.#makeReady()
      unlinkSync(this.#path(queue))
      return true
    } catch {
      return false
    }
  }

  #path(queue: string): string {
    const known = this.#paths.get(queue)
    if (known !== undefined) return known
    const path = join(bellDirectory(this.#file), tokenName(queue))
    this.#paths.set(queue, path)
    return path
  }

  #makeReady(): void {
    if (!this.#isReady) makeBellDirectories(this.#file)
    this.#isReady = true
  }
}

/** The directory of a bell: for queues. `-results/` in it is for jobs that end. */
export function bellDirectory(file: string): string {
  return `${file}-bell`
}

/**
 * Begins with `-`, which no queue name does. A directory of its own, so that results do not wake those that wait for
 * jobs.
 */
export function resultsDirectory(file: string): string {
  return join(bellDirectory(file), '-results')
}

/**
 * Throws if the directories cannot be made, or if one belongs to another user with whom the store is not shared, who
 * could make us write anywhere. Each is checked before anything is made in it.
 */
export function makeBellDirectories(file: string): void {
  for (const directory of [bellDirectory(file), resultsDirectory(file)]) {
    try {
      makeFolder(directory)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    if (!isTrustedFolder(directory)) throw new Error(`'${directory}' is not ours`)
  }
}
