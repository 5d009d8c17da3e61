/** The version of this package, as its own package.json has it; undefined where the package lies in a bundle. */

import { readFileSync } from 'node:fs'

export function packageVersion(): string | undefined {
  try {
    const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')
    const { name, version } = JSON.parse(text) as { name?: unknown; version?: unknown }
    // In a bundle that is the package of somebody else.
    return name === 'millrace' && typeof version === 'string' ? version : undefined
  } catch {
    return undefined
  }
}
