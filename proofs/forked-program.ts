/** The forked program: a TypeScript file of a proof in a process of its own. */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
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

/** What the program sends when it is done. Resolves once it has ended. */
export async function outcomeOf<Outcome>(child: ChildProcess): Promise<Outcome> {
  const told = once(child, 'message') as Promise<[Outcome]>
  const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`the run ended with ${code}`)))
  const [outcome] = await Promise.race([told, ended])
  await ended.catch(() => {})
  return outcome
}

/** The clock that all processes of the machine share, in ms. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

export async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}
