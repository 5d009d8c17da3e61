/** An entry file: what a thread or process of the package is started with. A bundle leaves it behind. */

import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { PackageBundledError } from '../errors.js'

/**
 * Its URL, given as `() => new URL('./name.js', import.meta.url)`. Throws `PackageBundledError` if no such file is there, or
 * if it cannot be said where it would be: a bundle in the form of CommonJS has no `import.meta.url`.
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
 * The error of a thread that ended before it said anything: `PackageBundledError` if a file that it imports is missing. That is
 * how it ends if a bundler has copied its entry alone.
 */
export function startFailure(entry: URL, error: unknown): unknown {
  const { code } = error as { code?: unknown }
  const isMissing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
  if (!isMissing) return error
  return new PackageBundledError(basename(entry.pathname), `does not find what it imports from ${entry.href}`, {
    cause: error,
  })
}
