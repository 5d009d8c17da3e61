/**
 * The base folder: the folder from which relative paths in a store's descriptor are resolved. It is the folder of the
 * project, so the command line and every program of it find the same file, wherever they are started.
 */

import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'

/** A global symbol, because the loaded file may have found another copy of the library. */
const key = Symbol.for('millrace.base-folder')
const known = globalThis as { [key]?: string }

/** The project of the configuration that is being loaded, or else of the main script; otherwise the working directory. */
export function baseFolder(): string {
  return known[key] ?? mainProject() ?? process.cwd()
}

/** Whether relative paths belong to a project, and not to whatever the working directory is. */
export function hasBaseFolder(): boolean {
  const given = known[key]
  return (given === undefined ? mainProject() : projectAbove(given)) !== undefined
}

/** The name of the project, as its `package.json` has it; undefined without one. */
export function projectName(): string | undefined {
  const folder = known[key] ?? mainProject()
  return folder === undefined ? undefined : nameIn(join(folder, 'package.json'))
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

/** The base folder of a configuration: its project, or the working directory without one. */
export function baseFolderOf(file: string): string {
  return projectAbove(dirname(file)) ?? process.cwd()
}

/** The project of the script that Node was started with. A tool among the dependencies runs for the project that has it. */
function mainProject(): string | undefined {
  const script = process.argv[1]
  if (script === undefined) return undefined
  const [above] = script.split(`${sep}node_modules${sep}`)
  return projectAbove(above === script ? dirname(script) : above!)
}

/**
 * The nearest folder from here up whose `package.json` has a name: one that only says of which type the built files are is
 * passed over. If none has a name, the nearest with any.
 */
function projectAbove(from: string): string | undefined {
  let nearest: string | undefined
  for (let folder = from; ; folder = dirname(folder)) {
    const file = join(folder, 'package.json')
    if (existsSync(file)) {
      if (nameIn(file) !== undefined) return folder
      nearest ??= folder
    }
    if (folder === dirname(folder)) return nearest
  }
}

function nameIn(file: string): string | undefined {
  try {
    const { name } = (JSON.parse(readFileSync(file, 'utf8')) ?? {}) as { readonly name?: unknown }
    return typeof name === 'string' ? name : undefined
  } catch {
    // A mistake in it is not ours to report: npm does.
    return undefined
  }
}
