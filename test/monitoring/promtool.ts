/** Prometheus and its own tool: those on the PATH, or Debian's, unpacked once without touching the system. */

import { spawnSync } from 'node:child_process'
import { type MachineProgram, onPath, unpackedProgram } from '#src/store-testing/servers/machine-program.js'
import { root } from '../cli/project.js'

/** Throws an error that says what to install. */
export async function prometheusProgram(program: 'prometheus' | 'promtool'): Promise<MachineProgram> {
  const path = await onPath(program, process.env)
  if (path !== undefined) return { path, env: {} }
  const debian = { packages: ['prometheus'], program: `usr/bin/${program}`, folder: 'millrace-prometheus' }
  return unpackedProgram(debian, process.env, root).catch((error: Error) => {
    throw new Error(`no ${program} to check metrics with: ${error.message}; install prometheus`)
  })
}

/** What it says and its exit code, as a function of its arguments. Throws as `prometheusProgram`. */
export async function promtool(): Promise<
  (args: readonly string[], input?: string) => { code: number | null; said: string }
> {
  const { path, env } = await prometheusProgram('promtool')
  return (args, input = '') => {
    const options = { cwd: root, input, encoding: 'utf8', timeout: 20_000, env: { ...process.env, ...env } } as const
    const { status, stdout, stderr } = spawnSync(path, args, options)
    return { code: status, said: `${stdout}${stderr}` }
  }
}
