/** The tree that the demo packs: files of a folder, as many as take some seconds, and what was in each of them before. */

import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { isNameable } from './archive.js'

const mostBytes = 64e6
/** A larger file would be most of the work. */
const mostBytesOfOne = 4e6

export interface Tree {
  readonly folder: string
  /** SHA-256 by path below the folder, in the order in which they are packed. */
  readonly checksums: ReadonlyMap<string, string>
  readonly bytes: number
  /** How many of the files are not taken. */
  readonly leftOut: number
}

/** Of these files of the folder those that fit. */
export async function treeOf(folder: string, files: readonly string[]): Promise<Tree> {
  const checksums = new Map<string, string>()
  let bytes = 0
  for (const file of files) {
    const path = relative(folder, file)
    const size = await sizeOf(file)
    if (size > mostBytesOfOne || bytes + size > mostBytes || !isNameable(path)) continue
    const checksum = await checksumIn(folder, path)
    if (checksum === undefined) continue
    checksums.set(path, checksum)
    bytes += size
  }
  return { folder, checksums, bytes, leftOut: files.length - checksums.size }
}

/** Infinite where it is gone. */
function sizeOf(file: string): Promise<number> {
  return stat(file).then(
    ({ size }) => size,
    () => Number.POSITIVE_INFINITY,
  )
}

/** What is there now; undefined where it cannot be read. */
export async function checksumIn(folder: string, path: string): Promise<string | undefined> {
  const content = await readFile(join(folder, path)).catch(() => undefined)
  return content && createHash('sha256').update(content).digest('hex')
}
