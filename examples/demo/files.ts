/** The files of a directory: its regular, readable ones, in a fixed order. */

import { constants } from 'node:fs'
import { access, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

export interface Files {
  readonly paths: readonly string[]
  readonly bytes: number
  /** Whether there were more than asked for. */
  readonly more: boolean
}

/** At most `most` of them. Links and special files are skipped, and caches, whose files may change while the demo runs. */
export async function filesOf(root: string, most: number): Promise<Files> {
  const paths: string[] = []
  let bytes = 0
  const folders = [root]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
    entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    for (const entry of entries) {
      const path = join(folder, entry.name)
      if (entry.isDirectory() && !['.cache', '.vite', '.git'].includes(entry.name)) folders.push(path)
      if (!entry.isFile() || !(await isReadable(path))) continue
      if (paths.length === most) return { paths, bytes, more: true }
      paths.push(path)
      bytes += (await stat(path)).size
    }
  }
  return { paths, bytes, more: false }
}

function isReadable(path: string): Promise<boolean> {
  return access(path, constants.R_OK).then(
    () => true,
    () => false,
  )
}
