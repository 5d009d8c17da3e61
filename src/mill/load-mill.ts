/** Loading: from the files of a user (configurations, a module with tasks or handlers) to a mill. */

import { existsSync, statSync } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { ConfigError, hasCode } from '../core/errors.js'
import { type AnyTask, isTask } from '../core/task/any-task.js'
import { baseFolderOf, withBaseFolder } from './base-folder.js'
import {
  type Environment,
  type EnvironmentOptions,
  environmentOptions,
  refuseUnheard,
} from './configuration/environment.js'
import { OptionMistakes, withLocatedMistakes } from './configuration/located-mistakes.js'
import { type GivenOptions, isOptions, mergedOptions } from './configuration/merged-options.js'
import { type Exports, importAll } from './configuration/user-modules.js'
import { Mill } from './mill.js'
import { millrace } from './millrace.js'
import type { MillOptions } from './options/mill-options.js'
import { readQueueFile } from './options/queue-file.js'

const defaultStore = 'sqlite:.millrace/jobs.db'

interface LoadRequest {
  readonly cwd: string
  readonly env: Environment
  /**
   * Paths of configurations, merged from left to right. Without any: those of `MILLRACE_CONFIG`, then a
   * `millrace.config.*` in `cwd`.
   */
  readonly configs?: readonly string[] | undefined
  /**
   * Path of a module that exports tasks, attaches handlers to the configuration's tasks, or exports a mill by default.
   */
  readonly module?: string | undefined
}

/** A file that exports options. */
export interface ConfigFile {
  readonly file: string
  readonly options: GivenOptions
}

export interface Loaded {
  readonly mill: Mill
  /** The file of the mill; for merged files their names, as messages show them. */
  readonly file: string
  /** All loaded files in order: another process that loads the same files gets the same tasks. */
  readonly files: readonly string[]
  /** Tasks that the module exports and the mill does not know: nobody will serve them. */
  readonly unknownTasks: readonly AnyTask[]
}

/**
 * Loads a mill. Throws `ConfigError` if there is nothing to load, or if the files cannot be loaded or do not make a
 * mill. It lists every mistake, with file, line and column. Opens no store.
 */
export function loadMill(request: LoadRequest): Promise<Loaded> {
  return withLocatedMistakes(request.cwd, () => loadedMill(request))
}

async function loadedMill({ cwd, env, configs = [], module }: LoadRequest): Promise<Loaded> {
  const said = environmentOptions(env)
  const moduleFile = module === undefined ? undefined : existing(resolve(cwd, module))
  const named = namedConfigs(cwd, configs, env['MILLRACE_CONFIG'])
  const found = named.length > 0 ? undefined : foundConfig(cwd)
  const configFiles = found === undefined ? named : [found]
  const [firstConfig] = configFiles
  if (moduleFile === undefined && firstConfig === undefined) throw nothingFound(cwd)
  // The module comes first: it may attach handlers to the tasks of the configuration.
  const files = [...(moduleFile === undefined ? [] : [moduleFile]), ...configFiles]
  // Wherever it is named from, it leads to the same store.
  const base = baseFolderOf(firstConfig ?? moduleFile!)
  const all = await withBaseFolder(base, () => importAll(files))
  const exported = moduleFile === undefined ? {} : all[0]!
  const configured = all.slice(files.length - configFiles.length)
  if (isMill(exported['default']) && named.length === 0) {
    refuseUnheard(moduleFile!, exported['default'], said)
    return { mill: exported['default'], file: moduleFile!, files, unknownTasks: [] }
  }
  const tasks = [...new Set(Object.values(exported).filter(isTask))]
  if (firstConfig === undefined)
    return withBaseFolder(base, async () => ({
      ...{ mill: millOf(tasks, moduleFile!, said), file: moduleFile!, files, unknownTasks: [] },
    }))
  const mill = await configuredMill(configFiles, configured, said)
  const unknownTasks = tasks.filter(({ name }) => !mill.tasks.has(name))
  return { mill, file: configFiles.join(' and '), files, unknownTasks }
}

/** The names to look for, in this order. */
const configNames = ['ts', 'mts', 'js', 'mjs'].map((extension) => `millrace.config.${extension}`)

/**
 * The configurations named by flags, otherwise by `MILLRACE_CONFIG`; empty if none is named. Throws `ConfigError` for a
 * missing file.
 */
function namedConfigs(cwd: string, flags: readonly string[], variable: string | undefined): string[] {
  const names = flags.length > 0 ? flags : (variable ?? '').split(delimiter).filter((name) => name !== '')
  const files = names.map((name) => existing(resolve(cwd, name)))
  const twice = files.find((file, i) => files.indexOf(file) !== i)
  if (twice === undefined) return files
  throw new ConfigError('the configuration', [{ path: twice, message: 'is named twice; name each file once' }])
}

/** The configuration in this folder. */
function foundConfig(folder: string): string | undefined {
  return configNames.map((name) => join(folder, name)).find((file) => existsSync(file))
}

function existing(file: string): string {
  if (statSync(file, { throwIfNoEntry: false })?.isFile()) return file
  throw new ConfigError(file, [{ path: 'path', message: 'must be a TypeScript or JavaScript file; there is none' }])
}

/** The configuration in this folder or the nearest folder above it. */
function foundAbove(folder: string): string | undefined {
  const above = dirname(folder)
  return above === folder ? undefined : (foundConfig(above) ?? foundAbove(above))
}

function nothingFound(folder: string): ConfigError {
  const above = foundAbove(folder)
  const there = above === undefined ? '' : `. There is ${above}`
  const message = `must hold a configuration; looked for ${configNames.join(', ')}. Write one (\`millrace init\` does), or name it with --config or MILLRACE_CONFIG${there}`
  return new ConfigError('the configuration', [{ path: folder, message }])
}

/** Whether a value is a mill, made by this copy of the library or by another that the user's files have found. */
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

/** The mill that the only file exports, or a mill of the options that the files export. */
async function configuredMill(
  files: readonly string[],
  exports: readonly Exports[],
  said: EnvironmentOptions,
): Promise<Mill> {
  const defaults = exports.map((all) => all['default'])
  const [first] = defaults
  if (isMill(first) && files.length === 1) {
    refuseUnheard(files[0]!, first, said)
    return first
  }
  const unfit = defaults.findIndex((value) => !isOptions(value))
  if (unfit !== -1) throw isMill(defaults[unfit]) ? unmergeable(files[unfit]!) : noMill(files[unfit]!, defaults[unfit])
  const configs = files.map((file, i) => ({ file, options: defaults[i] as GivenOptions }))
  return optionsMill(configs, said)
}

/**
 * The mill of exported options. Relative paths in them are resolved from the base folder of each file. Throws
 * `OptionMistakes` for options that `millrace` refuses.
 */
export async function optionsMill(configs: readonly ConfigFile[], said: EnvironmentOptions): Promise<Mill> {
  const parts: GivenOptions[] = []
  for (const { file, options } of configs) {
    const { queues } = options
    if (typeof queues !== 'string') parts.push(options)
    else
      parts.push({
        ...options,
        queues: await withBaseFolder(baseFolderOf(file), async () => readQueueFile(queues)),
      })
  }
  const merged = mergedOptions([...parts, said as GivenOptions])
  const storedBy = said.store === undefined ? configs.findLast(({ options }) => 'store' in options) : undefined
  const { file } = storedBy ?? configs.at(-1)!
  try {
    return await withBaseFolder(baseFolderOf(file), async () => millrace(merged as unknown as MillOptions))
  } catch (error) {
    if (!hasCode(error, 'config-invalid')) throw error
    throw new OptionMistakes(
      error,
      configs.map((config) => ({ file: config.file, root: 'default' })),
    )
  }
}

/** The mill without a configuration: the exported tasks with the store of the environment. */
function millOf(tasks: readonly AnyTask[], file: string, said: EnvironmentOptions): Mill {
  if (tasks.length > 0) return millrace({ store: defaultStore, ...said, tasks })
  throw new ConfigError(file, [
    {
      path: 'exports',
      message:
        'must hold a task made by defineTask() or defineOrderedTask(), or a mill made by millrace() as default; there is neither',
    },
  ])
}

function unmergeable(file: string): ConfigError {
  const message =
    'is a mill, which is put together already: only options can be merged. Export them instead, as in `export default { tasks: [sendEmail] } satisfies Partial<MillOptions>`'
  return new ConfigError(file, [{ path: 'default export', message }])
}

function noMill(file: string, value: unknown): ConfigError {
  const got = value === undefined ? 'there is none' : `got ${Object.prototype.toString.call(value)}`
  return new ConfigError(file, [
    {
      path: 'default export',
      message: `must be a mill, as in \`export default millrace({ store: '${defaultStore}', tasks: [sendEmail] })\`, or its options; ${got}`,
    },
  ])
}
