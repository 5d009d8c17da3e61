/** The issues of the ConfigError that is thrown, or none. */

import { expect } from 'vitest'
import { ConfigError } from '#src/core/errors.js'

export function issuesOf(make: () => unknown): string[] {
  try {
    make()
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as ConfigError).issues.map((issue) => `${issue.path}: ${issue.message}`)
  }
  return []
}
