/** The `tsconfig.json` of a file, if its `paths` say where imports are found. */

import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * The nearest `tsconfig.json` above the file, if it has `paths` or may inherit them by `extends`; otherwise undefined.
 */
export function tsconfigWithPaths(file: string): string | undefined {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const tsconfig = join(folder, 'tsconfig.json')
    if (existsSync(tsconfig)) return mayHavePaths(readFileSync(tsconfig, 'utf8')) ? tsconfig : undefined
    if (folder === dirname(folder)) return undefined
  }
}

/**
 * A cheap check, which spares the transpiler if there are no `paths`; jiti reads the file itself. It ignores a file
 * that maps this package elsewhere: that would load a second copy, from sources that no thread can run.
 */
function mayHavePaths(text: string): boolean {
  return /"(?:paths|extends)"\s*:/.test(text) && !/"millrace(?:\/[\w-]+)?"\s*:/.test(text)
}
