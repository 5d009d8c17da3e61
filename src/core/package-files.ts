/**
 * The files of the package that it looks for while it runs: those that a thread or process starts with, and its
 * package.json. A bundler leaves them out.
 */

import { existsSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { PackageBundledError } from '../errors.js'

/**
 * The URL of an entry file, given as `() => new URL('./name.js', import.meta.url)`. Throws `PackageBundledError` if the
 * file is missing, or if its URL cannot be built: a CommonJS bundle has no `import.meta.url`.
 */
export function entryFile(name: string, locate: () => URL): URL {
  let url: URL
  try {
    url = locate()
  } catch (error) {
    throw new PackageBundledError(name, 'cannot be found from the bundle', { cause: error })
  }
  if (!existsSync(url)) throw new PackageBundledError(name, `is not at ${url.href}`)
  return url
}

/**
 * The error of a thread that ended before its first message: `PackageBundledError` if a file that it imports is
 * missing. That happens if a bundler copied only its entry.
 */
export function startFailure(entry: URL, error: unknown): unknown {
  const { code } = error as { code?: unknown }
  const isMissing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
  if (!isMissing) return error
  return new PackageBundledError(basename(entry.pathname), `does not find a file that it imports, from ${entry.href}`, {
    cause: error,
  })
}

/** The version of this package, from its own package.json; undefined if the package was bundled. */
export function packageVersion(): string | undefined {
  try {
    const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')
    const { name, version } = JSON.parse(text) as { name?: unknown; version?: unknown }
    // In a bundle this is the package.json of the application.
    return name === 'millrace' && typeof version === 'string' ? version : undefined
  } catch {
    return undefined
  }
}
