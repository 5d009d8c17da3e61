/** Prometheus' own tool: `promtool` on the PATH, or Debian's, unpacked once without touching the system. */

import { spawnSync } from 'node:child_process'
import { onPath, unpackedProgram } from '#src/store-testing/servers/machine-program.js'
import { root } from '../cli/project.js'

const debian = { packageName: 'prometheus', program: 'promtool', folder: 'millrace-prometheus' }

/** What it says and its exit code, as a function of its arguments. Throws an error that says what to install. */
export async function promtool(): Promise<
  (args: readonly string[], input?: string) => { code: number | null; said: string }
> {
  const path = await onPath('promtool', process.env)
  const { path: program, env } =
    path === undefined
      ? await unpackedProgram(debian, process.env, root).catch((error: Error) => {
          throw new Error(`no promtool to check metrics with: ${error.message}; install prometheus`)
        })
      : { path, env: {} }
  return (args, input = '') => {
    const options = { cwd: root, input, encoding: 'utf8', timeout: 20_000, env: { ...process.env, ...env } } as const
    const { status, stdout, stderr } = spawnSync(program, args, options)
    return { code: status, said: `${stdout}${stderr}` }
  }
}
