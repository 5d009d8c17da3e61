/** Loading: from the files a user wrote (a configuration, a module with tasks or handlers) to a mill. */

import { existsSync, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ConfigError } from '../core/errors.js'
import { type AnyTask, isTask } from '../core/task/any-task.js'
import { millrace } from './assemble.js'
import { baseFolderOf, withBaseFolder } from './base-folder.js'
import { Mill } from './mill.js'

/** Looked for in this order. */
const configNames = ['ts', 'mts', 'js', 'mjs'].map((extension) => `millrace.config.${extension}`)

const defaultStore = 'sqlite:.millrace/jobs.db'

interface LoadRequest {
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Path of the configuration; without it `MILLRACE_CONFIG`, then a `millrace.config.*` in `cwd`. */
  readonly config?: string | undefined
  /** Path of a module that exports tasks, attaches handlers to the configuration's, or default-exports a mill. */
  readonly module?: string | undefined
}

export interface Loaded {
  readonly mill: Mill
  /** The file the mill comes from. */
  readonly file: string
  /** All that was loaded, in that order: another process that loads the same knows the same. */
  readonly files: readonly string[]
  /** Tasks that the module exports and the mill does not know: nobody will serve them. */
  readonly unknownTasks: readonly AnyTask[]
}

type Exports = Readonly<Record<string, unknown>>

/** Throws `ConfigError` where there is nothing to load, or what there is cannot be loaded or makes no mill. Opens no store. */
export async function loadMill({ cwd, env, config, module }: LoadRequest): Promise<Loaded> {
  const given = config ?? (env['MILLRACE_CONFIG'] || undefined)
  const moduleFile = module === undefined ? undefined : existing(resolve(cwd, module))
  const configFile = given === undefined ? foundIn(cwd) : existing(resolve(cwd, given))
  if (moduleFile === undefined && configFile === undefined) throw nothingFound(cwd)
  // The module first: it may attach handlers to the tasks of the configuration.
  const files = [moduleFile, configFile].filter((file) => file !== undefined)
  // Whoever names the configuration from another folder means the same store.
  const base = configFile === undefined ? cwd : baseFolderOf(configFile, cwd)
  const [first, second] = await withBaseFolder(base, () => importAll(files))
  const [exported, configured] = moduleFile === undefined ? [{}, first!] : [first!, second]
  if (isMill(exported['default']) && given === undefined)
    return { mill: exported['default'], file: moduleFile!, files, unknownTasks: [] }
  const tasks = [...new Set(Object.values(exported).filter(isTask))]
  if (configured === undefined)
    return { mill: millOf(tasks, moduleFile!, env), file: moduleFile!, files, unknownTasks: [] }
  const mill = configured['default']
  if (!isMill(mill)) throw noMill(configFile!, mill)
  return { mill, file: configFile!, files, unknownTasks: tasks.filter(({ name }) => !mill.tasks.has(name)) }
}

/** A mill made by this copy of the library, or by another that the user's files have found. */
export function isMill(value: unknown): value is Mill {
  if (value instanceof Mill) return true
  if (typeof value !== 'object' || value === null) return false
  const { enqueue, worker, queue, close, queues, tasks } = value as Record<keyof Mill, unknown>
  return (
    [enqueue, worker, queue, close].every((method) => typeof method === 'function') &&
    queues instanceof Map &&
    tasks instanceof Map
  )
}

/** No configuration: the exported tasks and the store of the environment make a mill. */
function millOf(tasks: readonly AnyTask[], file: string, env: LoadRequest['env']): Mill {
  if (tasks.length > 0) return millrace({ store: env['MILLRACE_STORE'] || defaultStore, tasks })
  throw new ConfigError(file, [
    {
      path: 'exports',
      message:
        'must hold a task made by defineTask() or defineOrderedTask(), or a mill made by millrace() as default; there is neither',
    },
  ])
}

function foundIn(folder: string): string | undefined {
  return configNames.map((name) => join(folder, name)).find((file) => existsSync(file))
}

function existing(file: string): string {
  if (statSync(file, { throwIfNoEntry: false })?.isFile()) return file
  throw new ConfigError(file, [{ path: 'path', message: 'must be a TypeScript or JavaScript file; there is none' }])
}

function nothingFound(folder: string): ConfigError {
  return new ConfigError('the configuration', [
    {
      path: folder,
      message: `must hold a configuration; looked for ${configNames.join(', ')}. Write one, or name it with --config or MILLRACE_CONFIG`,
    },
  ])
}

function noMill(file: string, value: unknown): ConfigError {
  const got = value === undefined ? 'there is none' : `got ${Object.prototype.toString.call(value)}`
  return new ConfigError(file, [
    {
      path: 'default export',
      message: `must be a mill, as in \`export default millrace({ store: '${defaultStore}', tasks: [sendEmail] })\`; ${got}`,
    },
  ])
}

/** All by one loader: two would make two copies of what the files import in common. Node's own where it can, else jiti. */
export async function importAll(files: readonly string[]): Promise<Exports[]> {
  try {
    return await inTurn(files, (file) => import(pathToFileURL(file).href))
  } catch (error) {
    if (!isForTranspiler((error as Error).cause)) throw error
    const { createJiti } = await import('jiti')
    const jiti = createJiti(import.meta.url, { interopDefault: false })
    return inTurn(files, (file) => jiti.import(file))
  }
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
const ownFolder = new URL('..', import.meta.url).href
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
