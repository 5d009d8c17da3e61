/** The forked program: a TypeScript file of a proof in a process of its own. */

import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'

/** The program that runs TypeScript files. */
export const jiti = join(import.meta.dirname, '../node_modules/jiti/lib/jiti-cli.mjs')

interface ForkOptions {
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>
  /** Options of Node. */
  readonly flags?: readonly string[]
}

/** Starts the file at this absolute path. */
export function forkedProgram(
  path: string,
  args: readonly string[] = [],
  { env = {}, flags = [] }: ForkOptions = {},
): ChildProcess {
  return fork(path, [...args], { execArgv: [...flags, jiti], env: { ...process.env, ...env } })
}
