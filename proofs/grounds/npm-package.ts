/** An npm package: another version of a program that tests run with, kept in `node_modules/.cache`. */

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const withinMs = 300_000

/** The folder of the program `node`. The first call for a version downloads some 50 MB. */
export async function npmNode(version: string): Promise<string> {
  return join(await npmPackage(`node-${process.platform}-${process.arch}`, version), 'bin')
}

/** The folder of the package. The first call for a version downloads it. `version`: as npm takes it, such as `24`. */
export async function npmPackage(name: string, version: string): Promise<string> {
  const folder = join(root, 'node_modules/.cache', `millrace-${name}-${version}`)
  const installed = join(folder, 'node_modules', name)
  if (!existsSync(join(installed, 'package.json'))) {
    await mkdir(folder, { recursive: true })
    const quiet = ['--no-audit', '--no-fund', '--no-save', '--ignore-scripts']
    await run('npm', ['install', '--prefix', folder, ...quiet, `${name}@${version}`], { timeout: withinMs })
  }
  return installed
}
