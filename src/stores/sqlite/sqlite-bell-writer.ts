/**
 * The bell's rope: rings those who wait in other processes, by writing one byte to a file that they watch.
 * `<file>-bell/` holds a file per queue; `<file>-bell/-results/ended` is rung when jobs end.
 */

import { closeSync, constants, lstatSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** Descriptors kept open; with more queues the oldest is closed. */
const mostOpen = 64
const byte = Buffer.from('.')
/** Never through a link, and nothing is cut: whatever lies there loses one byte at the most. */
const openFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW

export function bellDirectory(file: string): string {
  return `${file}-bell`
}

/** Begins with `-`, which no queue name does. A directory of its own: who waits for jobs is not woken by results. */
export function resultsDirectory(file: string): string {
  return join(bellDirectory(file), '-results')
}

/** Throws where the bell cannot be had, or belongs to somebody else, who could make us write where he likes. */
export function makeBellDirectories(file: string): void {
  mkdirSync(resultsDirectory(file), { recursive: true, mode: 0o700 })
  for (const directory of [bellDirectory(file), resultsDirectory(file)]) {
    const stats = lstatSync(directory)
    if (!stats.isDirectory() || stats.uid !== process.getuid?.()) throw new Error(`'${directory}' is not ours`)
  }
}

export class BellWriter {
  readonly #file: string
  readonly #open = new Map<string, number>()

  constructor(file: string) {
    this.#file = file
  }

  /** Never throws: who is not rung looks by himself within a second. */
  ring(queues: readonly string[], hasEnds: boolean): void {
    for (const queue of queues) this.#touch(join(bellDirectory(this.#file), queue))
    if (hasEnds) this.#touch(join(resultsDirectory(this.#file), 'ended'))
  }

  #touch(path: string): void {
    try {
      writeSync(this.#descriptor(path), byte, 0, 1, 0)
    } catch {
      this.#close(path)
    }
  }

  #descriptor(path: string): number {
    let descriptor = this.#open.get(path)
    if (descriptor === undefined) {
      const [oldest] = this.#open.keys()
      if (oldest !== undefined && this.#open.size >= mostOpen) this.#close(oldest)
      makeBellDirectories(this.#file)
      descriptor = openSync(path, openFlags, 0o600)
      this.#open.set(path, descriptor)
    }
    return descriptor
  }

  #close(path: string): void {
    const descriptor = this.#open.get(path)
    this.#open.delete(path)
    try {
      if (descriptor !== undefined) closeSync(descriptor)
    } catch {
      // It was closed all the same (close(2)); the next ring opens the file anew.
    }
  }

  close(): void {
    for (const path of [...this.#open.keys()]) this.#close(path)
  }
}
