/**
 * The files of the package that it looks for while it runs: those that a thread or process starts with, its pages and its
 * package.json. Their places are said here, by their way from this file: it lies one folder below `dist`, as does each part
 * of the published bundle. Another bundler leaves these files out.
 */

import { existsSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { PackageBundledError } from './errors.js'

/** Each written out, because tools that copy what a program needs look for this form. */
const entries = {
  'lease-thread-entry.js': () => new URL('../mill/lease-thread-entry.js', import.meta.url),
  'main.js': () => new URL('../cli/main.js', import.meta.url),
  'process-child-entry.js': () => new URL('../mill/process-child-entry.js', import.meta.url),
  'process-guard-entry.js': () => new URL('../mill/process-guard-entry.js', import.meta.url),
  'sqlite-thread.js': () => new URL('../stores/sqlite/thread/sqlite-thread.js', import.meta.url),
}

/**
 * The URL of the file with which a thread or process starts. Throws `PackageBundledError` if the file is missing, or if its
 * URL cannot be built: a CommonJS bundle has no `import.meta.url`.
 */
export function entryFile(name: keyof typeof entries): URL {
  let url: URL
  try {
    url = entries[name]()
  } catch (error) {
    throw new PackageBundledError(name, 'cannot be found from the bundle', { cause: error })
  }
  if (!existsSync(url)) throw new PackageBundledError(name, `is not at ${url.href}`)
  return url
}

/**
 * The error of a thread that ended before its first message: `PackageBundledError` if a bundler copied only its entry. Then a
 * file that it imports is missing, or the copy lies where it is not a module, as Turbopack puts it.
 */
export function startFailure(entry: URL, error: unknown): unknown {
  const { code, name } = error as { code?: unknown; name?: unknown }
  const isMissing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
  if (!isMissing && name !== 'SyntaxError') return error
  const problem = isMissing ? 'does not find a file that it imports, from' : 'is taken for a CommonJS file, as'
  return new PackageBundledError(basename(entry.pathname), `${problem} ${entry.href}`, { cause: error })
}

/** What this file reads of package.json. */
interface PackageManifest {
  readonly version: string
  readonly peerDependencies: Readonly<Record<string, string>>
}

/** The package.json of this package; undefined if the package was bundled. */
export function packageManifest(): PackageManifest | undefined {
  try {
    const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
    const manifest = JSON.parse(text) as Partial<PackageManifest> & { readonly name?: unknown }
    // In a bundle this is the package.json of the application.
    return manifest.name === 'millrace' && typeof manifest.version === 'string'
      ? (manifest as PackageManifest)
      : undefined
  } catch {
    return undefined
  }
}

/** The version of this package; undefined if the package was bundled. */
export function packageVersion(): string | undefined {
  return packageManifest()?.version
}

/** The page of the documentation that explains the errors of this code. */
export function errorPage(code: string): URL {
  return new URL(`../../docs/troubleshooting/${code}.md`, import.meta.url)
}

/** The folder of all code of this package. */
export function codeFolder(): URL {
  return new URL('..', import.meta.url)
}
