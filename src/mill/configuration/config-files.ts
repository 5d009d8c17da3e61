/** Configuration files: the files that hold the requested configuration. */

import { existsSync, statSync } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { ConfigError } from '../../core/errors.js'

/** The names to look for, in this order. */
const configNames = ['ts', 'mts', 'js', 'mjs'].map((extension) => `millrace.config.${extension}`)

/**
 * The configurations named by flags, otherwise by `MILLRACE_CONFIG`; empty if none is named. Throws `ConfigError` for a
 * missing file.
 */
export function namedConfigs(cwd: string, flags: readonly string[], variable: string | undefined): string[] {
  const names = flags.length > 0 ? flags : (variable ?? '').split(delimiter).filter((name) => name !== '')
  const files = names.map((name) => existing(resolve(cwd, name)))
  const twice = files.find((file, i) => files.indexOf(file) !== i)
  if (twice === undefined) return files
  throw new ConfigError('the configuration', [{ path: twice, message: 'is named twice; name each file once' }])
}

export function foundConfig(folder: string): string | undefined {
  return configNames.map((name) => join(folder, name)).find((file) => existsSync(file))
}

export function existing(file: string): string {
  if (statSync(file, { throwIfNoEntry: false })?.isFile()) return file
  throw new ConfigError(file, [{ path: 'path', message: 'must be a TypeScript or JavaScript file; there is none' }])
}

/** The configuration in this folder or the nearest folder above it. */
function foundAbove(folder: string): string | undefined {
  const above = dirname(folder)
  return above === folder ? undefined : (foundConfig(above) ?? foundAbove(above))
}

export function nothingFound(folder: string): ConfigError {
  const above = foundAbove(folder)
  const there = above === undefined ? '' : `. There is ${above}`
  const message = `must hold a configuration; looked for ${configNames.join(', ')}. Write one (\`millrace init\` does), or name it with --config or MILLRACE_CONFIG${there}`
  return new ConfigError('the configuration', [{ path: folder, message }])
}
