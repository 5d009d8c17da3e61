/** User modules: the files of a user, imported by Node where it can, else by a transpiler. */

import { writeSync } from 'node:fs'
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ConfigError, type ConfigIssue } from '../../core/errors.js'
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

/** A file of a user threw while it was loaded. */
export class UserModuleError extends ConfigError {
  readonly file: string

  constructor(file: string, cause: unknown) {
    super(file, [syntaxIssue(cause) ?? { path: `loading ${basename(file)}`, message: thrownText(cause) }], { cause })
    this.file = file
  }
}

/** What jiti says of a file that it cannot read, with its place; its columns begin with 0. */
function syntaxIssue(cause: unknown): ConfigIssue | undefined {
  const found = /^ParseError: (.*?)\s*\n\s*(.+):(\d+):(\d+)$/.exec(cause instanceof Error ? cause.message : '')
  if (found === null) return undefined
  const [, message, file, line, column] = found
  return { path: `${file}:${line}:${Number(column) + 1}`, message: message! }
}

function thrownText(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause)
  const mayBeCircle = /^Cannot access '.*' before initialization$|of undefined \(reading /.test(message)
  const circle = mayBeCircle ? '. Files that import each other in a circle see what is not there yet' : ''
  const frames = framesOf(cause).map((frame) => `\n    ${frame}`)
  return `${message}${circle}${frames.join('')}`
}

/** The user's file whose code made this stack; undefined if none did. */
export function userFileOf(stack: string | undefined): string | undefined {
  const place = framesIn(stack ?? '')[0]?.match(/(?:\(|^at (?:async )?)([^()]+?)(?:\?[^:]*)?:\d+:\d+\)?$/)?.[1]
  return place === undefined ? undefined : decodeURI(place)
}

let isLeaving = false

/** This process is about to end for a reason of its own: that it was still loading is then no mistake of a file. */
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

/** Nobody is left to throw to; without a word it would look as if all had gone well. */
function tellEnded(file: string): void {
  if (isLeaving) return
  process.exitCode = 2
  writeSync(
    2,
    `millrace: the process ended while ${file} was loaded: it, or what it imports, calls process.exit() or awaits what never comes.\n`,
  )
}

/** Our own files, and what loads the user's. */
const foreign = /node:|\/node_modules\/|<anonymous>/
const ownFolder = new URL('../..', import.meta.url).href
const mostFrames = 5

/** Where in the user's files it was thrown, as lines of a stack; empty if nowhere. */
function framesOf(error: unknown): string[] {
  return error instanceof Error ? framesIn(error.stack ?? '').slice(0, mostFrames) : []
}

function framesIn(stack: string): string[] {
  return stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line) && !foreign.test(line))
    .map((line) => line.replaceAll('file://', '').trim())
    .filter((line) => !line.includes(new URL(ownFolder).pathname))
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
