/** The identity of a SQLite store's files: device and inode of the file, its log and its index, as one connection has them open. */

import { type BigIntStats, lstatSync, rmSync, statSync } from 'node:fs'

/** Of what is appended to the path of the file. */
const suffixes = { file: '', log: '-wal', index: '-shm' } as const

export type FilePart = keyof typeof suffixes
const parts: readonly FilePart[] = ['file', 'log', 'index']

export class SqliteIdentity {
  readonly #file: string
  readonly #ids: Readonly<Record<FilePart, string | undefined>>

  /** Taken after the connection was opened: what lies there then is what it has open. */
  constructor(file: string) {
    this.#file = file
    this.#ids = { file: idOf(file), log: idOf(`${file}-wal`), index: idOf(`${file}-shm`) }
  }

  /**
   * The first part that was removed or replaced; while one of ours is open its inode is given to nobody else. The log and the
   * index are looked at if `isThorough`.
   */
  lost(isThorough: boolean): FilePart | undefined {
    return (isThorough ? parts : parts.slice(0, 1)).find((part) => !this.#isThere(part))
  }

  /** What was not there when this was made. */
  get missing(): FilePart | undefined {
    return parts.find((part) => this.#ids[part] === undefined)
  }

  /** Whether the log at its path is the one that is open. */
  get hasLog(): boolean {
    return this.#isThere('log')
  }

  /** Removes log and index if they are those that are open: next to another file they would damage it. */
  removeLog(): void {
    for (const part of ['log', 'index'] as const)
      if (this.#isThere(part)) rmSync(`${this.#file}${suffixes[part]}`, { force: true })
  }

  #isThere(part: FilePart): boolean {
    return idOf(`${this.#file}${suffixes[part]}`) === this.#ids[part]
  }
}

/** Undefined where there is none. In full: some file systems use all 64 bits of an inode. */
export function idOf(file: string): string | undefined {
  const stats: BigIntStats | undefined = statSync(file, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev} ${stats.ino}`
}

/** Size in bytes of a regular file that is ours; 0 where there is none. */
export function sizeOf(file: string): number {
  const stats = lstatSync(file, { throwIfNoEntry: false })
  return stats?.isFile() && stats.uid === process.getuid?.() ? stats.size : 0
}
