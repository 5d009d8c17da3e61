/** The base folder: what relative paths in the descriptor of a store are taken from. */

import { existsSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'

/** Known to every copy of the library in this process: the file that is loaded may have found another one. */
const key = Symbol.for('millrace.base-folder')
const known = globalThis as { [key]?: string }

/** That of the configuration which is being loaded, else the working directory. */
export function baseFolder(): string {
  return known[key] ?? process.cwd()
}

/** For as long as `load` takes. */
export async function withBaseFolder<T>(folder: string, load: () => Promise<T>): Promise<T> {
  const before = known[key]
  known[key] = folder
  try {
    return await load()
  } finally {
    if (before === undefined) delete known[key]
    else known[key] = before
  }
}

/**
 * The base folder of a configuration that is named from `cwd`. The working directory if the file is in it or below it, as for
 * a program that imports the file. Else its project: the nearest folder above with a `package.json`, where such programs
 * are started, or its own folder if there is none.
 */
export function baseFolderOf(file: string, cwd: string): string {
  const [first] = relative(cwd, file).split(sep)
  if (first !== '..') return cwd
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) return dirname(file)
  }
}
