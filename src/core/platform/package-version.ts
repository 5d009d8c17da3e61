/** The version of this package, from its own package.json; undefined if the package was bundled. */

import { readFileSync } from 'node:fs'

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
