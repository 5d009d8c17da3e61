/** User modules: the files of a user, imported by Node where it can, else by a transpiler. */

import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ConfigError } from '../../core/errors.js'
import { tsconfigWithPaths } from './tsconfig-paths.js'

export type Exports = Readonly<Record<string, unknown>>

/**
 * All by one loader: two would make two copies of what the files import in common. Node's own where it can, else jiti, which also
 * knows the `paths` of the `tsconfig.json` that is nearest to the last file, the configuration.
 */
export async function importAll(files: readonly string[]): Promise<Exports[]> {
  const tsconfig = tsconfigWithPaths(files.at(-1)!)
  try {
    // Node knows no `paths`, and might find a package of that name.
    if (tsconfig === undefined) return await inTurn(files, (file) => import(pathToFileURL(file).href))
  } catch (error) {
    if (!isForTranspiler((error as Error).cause)) throw error
  }
  const { createJiti } = await import('jiti')
  const jiti = createJiti(import.meta.url, { interopDefault: false, tsconfigPaths: tsconfig ?? false })
  return inTurn(files, (file) => jiti.import(file))
}

async function inTurn(files: readonly string[], load: (file: string) => Promise<unknown>): Promise<Exports[]> {
  const loaded: Exports[] = []
  for (const file of files) {
    try {
      loaded.push((await load(file)) as Exports)
    } catch (error) {
      const message = `${error instanceof Error ? error.message : String(error)}${framesOf(error)}`
      throw new ConfigError(file, [{ path: `loading ${basename(file)}`, message }], { cause: error })
    }
  }
  return loaded
}

/** Our own files, and what loads the user's. */
const foreign = /node:|\/node_modules\/|<anonymous>/
const ownFolder = new URL('../..', import.meta.url).href
const mostFrames = 5

/** Where in the user's files it was thrown, as lines of a stack; empty if nowhere. */
function framesOf(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const frames = stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line) && !foreign.test(line))
    .map((line) => line.replaceAll('file://', ''))
    .filter((line) => !line.includes(new URL(ownFolder).pathname))
  return frames
    .slice(0, mostFrames)
    .map((line) => `\n    ${line.trim()}`)
    .join('')
}

/** What Node's loader says of a file that a TypeScript transpiler may still load: syntax it cannot strip, or `./tasks.js` that is a `tasks.ts`. */
const transpilerCodes = new Set([
  'ERR_UNKNOWN_FILE_EXTENSION',
  'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX',
  'ERR_INVALID_TYPESCRIPT_SYNTAX',
  'ERR_MODULE_NOT_FOUND',
  'ERR_UNSUPPORTED_DIR_IMPORT',
])

function isForTranspiler(error: unknown): boolean {
  return error instanceof SyntaxError || transpilerCodes.has((error as { code?: string } | null)?.code ?? '')
}
