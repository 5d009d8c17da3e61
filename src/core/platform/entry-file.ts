/** An entry file: the file that a thread or process of the package starts with. A bundler leaves it out. */

import { existsSync } from 'node:fs'
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
