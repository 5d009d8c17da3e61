/** The directories of a SQLite store's bell: `<file>-bell/` for queues, and `-results/` in it for jobs that end. */

import { join } from 'node:path'
import { isTrustedFolder, makeFolder } from '../file/sqlite-sharing.js'

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
