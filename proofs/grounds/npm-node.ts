/** An npm Node: the Node of another version, as a package of npm brings it, kept in `node_modules/.cache`. */

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const withinMs = 300_000

/** The folder of its program `node`. The first call for a version downloads some 50 MB. */
export async function npmNode(version: string): Promise<string> {
  const name = `node-${process.platform}-${process.arch}`
  const folder = join(root, 'node_modules/.cache', `millrace-node-${version}`)
  const programs = join(folder, 'node_modules', name, 'bin')
  if (!existsSync(join(programs, 'node'))) {
    await mkdir(folder, { recursive: true })
    const quiet = ['--no-audit', '--no-fund', '--no-save', '--ignore-scripts']
    await run('npm', ['install', '--prefix', folder, ...quiet, `${name}@${version}`], { timeout: withinMs })
  }
  return programs
}
