/** The `tsconfig.json` that a file belongs to, where it says by `paths` how imports are found. */

import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The nearest `tsconfig.json` above the file, if it has `paths` or takes them from another by `extends`; else undefined. */
export function tsconfigWithPaths(file: string): string | undefined {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const tsconfig = join(folder, 'tsconfig.json')
    if (existsSync(tsconfig)) return mayHavePaths(readFileSync(tsconfig, 'utf8')) ? tsconfig : undefined
    if (folder === dirname(folder)) return undefined
  }
}

/**
 * It has comments and may extend others: jiti reads it, this only spares the transpiler to those that have none. One that leads
 * this package elsewhere is not followed: a second copy would be loaded, from sources that no thread can run.
 */
function mayHavePaths(text: string): boolean {
  return /"(?:paths|extends)"\s*:/.test(text) && !/"millrace(?:\/[\w-]+)?"\s*:/.test(text)
}
