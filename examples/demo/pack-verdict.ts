/** The verdict on an archive: unpacked by `tar`, it has the files of the tree, each as it was, and nothing else. */

import { execFile } from 'node:child_process'
import { mkdir, readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { checksumIn, type Tree } from './tree.js'

const run = promisify(execFile)
const mostProblems = 10

/** Unpacks the archive into a new folder. Resolves with how many entries it has; throws where `tar` finds fault with it. */
export async function unpack(archive: string, into: string): Promise<number> {
  await mkdir(into)
  await run('tar', ['-xzf', archive, '-C', into])
  const { stdout } = await run('tar', ['-tzf', archive], { maxBuffer: Number.POSITIVE_INFINITY })
  return stdout.split('\n').length - 1
}

export interface PackVerdict {
  readonly problems: string[]
  /** Files that are no longer as they were when the tree was read: of these nothing can be said. */
  readonly changed: number
}

/** `count`: how many entries the archive has, of which the later ones replace the earlier ones of their name. */
export async function verdictOn({ folder, checksums }: Tree, unpacked: string, count: number): Promise<PackVerdict> {
  const entries = await readdir(unpacked, { recursive: true, withFileTypes: true })
  const found = entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(unpacked, join(entry.parentPath, entry.name)))
  const problems = found.filter((path) => !checksums.has(path)).map((path) => `${path}: a file that nobody packed`)
  if (count !== found.length) problems.push(`${count} entries in the archive for ${found.length} files`)
  let changed = 0
  for (const [path, before] of checksums) {
    if (problems.length >= mostProblems) break
    const packed = await checksumIn(unpacked, path)
    if (packed === before) continue
    if ((await checksumIn(folder, path)) !== before) changed += 1
    else problems.push(`${path}: ${packed === undefined ? 'is missing' : 'is another file'} in the archive`)
  }
  return { problems, changed }
}
