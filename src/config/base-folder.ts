/** The base folder: what relative paths in the descriptor of a store are taken from. */

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
