/** The base folder: the folder from which relative paths in a store's descriptor are resolved. */

import { existsSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'

/** A global symbol, because the loaded file may have found another copy of the library. */
const key = Symbol.for('millrace.base-folder')
const known = globalThis as { [key]?: string }

/** The base folder of the configuration that is being loaded; otherwise the working directory. */
export function baseFolder(): string {
  return known[key] ?? process.cwd()
}

/** Sets the base folder until `load` has ended. */
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
 * The base folder of a configuration that is named from `cwd`. It is the working directory if the file is in it or
 * below it, as for a program that imports the file. Otherwise it is the file's project: the nearest folder above with a
 * `package.json`, where such programs are started. Without one it is the file's own folder.
 */
export function baseFolderOf(file: string, cwd: string): string {
  const [first] = relative(cwd, file).split(sep)
  if (first !== '..') return cwd
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) return dirname(file)
  }
}
