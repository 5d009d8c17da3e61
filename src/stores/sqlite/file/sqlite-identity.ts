/**
 * The identity of a SQLite store's files: device and inode of the file, its log and its index, as one connection has
 * them open.
 */

import { type BigIntStats, lstatSync, rmSync, statSync } from 'node:fs'

/** The suffixes that follow the path of the file. */
const suffixes = { file: '', log: '-wal', index: '-shm' } as const

type FileId = Pick<BigIntStats, 'dev' | 'ino'>
export type FilePart = keyof typeof suffixes
const parts: readonly FilePart[] = ['file', 'log', 'index']

export class SqliteIdentity {
  readonly #file: string
  readonly #ids: Readonly<Record<FilePart, FileId | undefined>>

  /** Taken after the connection was opened: the files at the paths are then those that it has open. */
  constructor(file: string) {
    this.#file = file
    this.#ids = { file: statsOf(file), log: statsOf(`${file}-wal`), index: statsOf(`${file}-shm`) }
  }

  /**
   * The first part that was removed or replaced. While we have a file open, no other file gets its inode. The log and
   * the index are checked only if `isThorough`.
   */
  lost(isThorough: boolean): FilePart | undefined {
    if (!isThorough) return this.#isThere('file') ? undefined : 'file'
    return parts.find((part) => !this.#isThere(part))
  }

  /** The first part that did not exist when this was made. */
  get missing(): FilePart | undefined {
    return parts.find((part) => this.#ids[part] === undefined)
  }

  /** Whether the log at its path is the one that is open. */
  get hasLog(): boolean {
    return this.#isThere('log')
  }

  /** Removes the log and the index if they are the open ones: next to another file they would damage it. */
  removeLog(): void {
    for (const part of ['log', 'index'] as const)
      if (this.#isThere(part)) rmSync(`${this.#file}${suffixes[part]}`, { force: true })
  }

  #isThere(part: FilePart): boolean {
    const [id, found] = [this.#ids[part], statsOf(`${this.#file}${suffixes[part]}`)]
    return found?.ino === id?.ino && found?.dev === id?.dev
  }
}

/** Undefined if there is no file. */
export function idOf(file: string): string | undefined {
  const id = statsOf(file)
  return id && `${id.dev} ${id.ino}`
}

/** With all digits: some file systems use all 64 bits of an inode. */
function statsOf(file: string): FileId | undefined {
  return statSync(file, { bigint: true, throwIfNoEntry: false })
}

/** The size in bytes of a regular file that is ours; 0 if there is none. */
export function sizeOf(file: string): number {
  const stats = lstatSync(file, { throwIfNoEntry: false })
  return stats?.isFile() && stats.uid === process.getuid?.() ? stats.size : 0
}
