/** The Python of this machine: `python3` on the PATH, or Debian's, unpacked once without touching the system. */

import { type MachineProgram, onPath, unpackedProgram } from '#src/store-testing/servers/machine-program.js'
import { root } from '../../cli/project.js'

/** The whole of it: the smallest package has neither json nor urllib. */
const debian = { packages: ['python3'], program: 'usr/bin/python3', folder: 'millrace-python' }

/** Throws an error that says what to install. `directory`: in a package whose `node_modules` would keep it. */
export async function pythonProgram(env = process.env, directory = root): Promise<MachineProgram> {
  const path = await onPath('python3', env)
  if (path !== undefined) return { path, env: {} }
  return unpackedProgram(debian, env, directory).catch((error: Error) => {
    throw new Error(`no Python to send a job with: ${error.message}; install python3`)
  })
}
