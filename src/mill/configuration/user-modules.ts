/** User modules: the files of a user, imported by Node if possible, otherwise by a transpiler. */

import { existsSync, readFileSync, writeSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ConfigError, type ConfigIssue } from '../../core/errors.js'
import { codeFolder } from '../../core/package-files.js'

export type Exports = Readonly<Record<string, unknown>>

/**
 * Imports all files by one loader, because two would make two copies of shared imports. It is Node's own if possible,
 * otherwise jiti. jiti also knows the `paths` of the `tsconfig.json` nearest to the last file, the configuration.
 */
export async function importAll(files: readonly string[]): Promise<Exports[]> {
  const tsconfig = tsconfigWithPaths(files.at(-1)!)
  try {
    // Node ignores `paths`, and might find a package of that name.
    if (tsconfig === undefined) return await inTurn(files, (file) => import(pathToFileURL(file).href))
  } catch (error) {
    if (!isForTranspiler((error as Error).cause)) throw error
  }
  const { createJiti } = await import('jiti')
  const jiti = createJiti(import.meta.url, { interopDefault: false, tsconfigPaths: tsconfig ?? false })
  return inTurn(files, (file) => jiti.import(file))
}

/** A file of a user threw while it was loaded. */
export class UserModuleError extends ConfigError {
  readonly file: string

  constructor(file: string, cause: unknown) {
    super(file, [syntaxIssue(cause) ?? { path: `loading ${basename(file)}`, message: thrownText(cause) }], { cause })
    this.file = file
  }
}

/** jiti's message about a file that it cannot read, with its place; jiti's columns begin with 0. */
function syntaxIssue(cause: unknown): ConfigIssue | undefined {
  const found = /^ParseError: (.*?)\s*\n\s*(.+):(\d+):(\d+)$/.exec(cause instanceof Error ? cause.message : '')
  if (found === null) return undefined
  const [, message, file, line, column] = found
  return { path: `${file}:${line}:${Number(column) + 1}`, message: message! }
}

function thrownText(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause)
  const mayBeCircle = /^Cannot access '.*' before initialization$|of undefined \(reading /.test(message)
  const circle = mayBeCircle ? '. Files that import each other in a circle see values that are not set yet' : ''
  const frames = framesOf(cause).map((frame) => `\n    ${frame}`)
  return `${message}${circle}${frames.join('')}`
}

/** The user's file whose code made this stack; undefined if there is none. */
export function userFileOf(stack: string | undefined): string | undefined {
  const place = framesIn(stack ?? '')[0]?.match(/(?:\(|^at (?:async )?)([^()]+?)(?:\?[^:]*)?:\d+:\d+\)?$/)?.[1]
  return place === undefined ? undefined : decodeURI(place)
}

let isLeaving = false

/** Declares that this process is about to end on purpose, so the file that is being loaded is not at fault. */
export function leaveLoading(): void {
  isLeaving = true
}

async function inTurn(files: readonly string[], load: (file: string) => Promise<unknown>): Promise<Exports[]> {
  const loaded: Exports[] = []
  for (const file of files) {
    const ended = () => tellEnded(file)
    process.once('exit', ended)
    try {
      loaded.push((await load(file)) as Exports)
    } catch (error) {
      throw new UserModuleError(file, error)
    } finally {
      process.off('exit', ended)
    }
  }
  return loaded
}

/**
 * Reports that a file ended the process. There is no caller left to throw to, and without a message it would look like
 * success.
 */
function tellEnded(file: string): void {
  if (isLeaving) return
  process.exitCode = 2
  writeSync(
    2,
    `millrace: the process ended while ${file} was loaded: the file, or one that it imports, calls process.exit() or awaits something that never comes.\n`,
  )
}

/** Files that are not the user's: our own, and the loaders. */
const foreign = /node:|\/node_modules\/|<anonymous>/
const mostFrames = 5

/** The stack lines within the user's files; empty if there are none. */
function framesOf(error: unknown): string[] {
  return error instanceof Error ? framesIn(error.stack ?? '').slice(0, mostFrames) : []
}

function framesIn(stack: string): string[] {
  const own = codeFolder().pathname
  return stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line) && !foreign.test(line))
    .map((line) => line.replaceAll('file://', '').trim())
    .filter((line) => !line.includes(own))
}

/**
 * The errors of Node's loader for a file that a TypeScript transpiler may still load: syntax it cannot strip, or a
 * `./tasks.js` that is really `tasks.ts`.
 */
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

/**
 * The nearest `tsconfig.json` above the file, if it has `paths` or may inherit them by `extends`; otherwise undefined.
 */
function tsconfigWithPaths(file: string): string | undefined {
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
