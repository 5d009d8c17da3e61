/** The tarball: the package as `npm pack` makes it, and folders outside the repository in which it is installed. */

import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { root } from '../cli/project.js'

export interface Packed {
  readonly files: readonly { readonly path: string; readonly size: number; readonly mode: number }[]
  readonly unpackedSize: number
  /** The tarball. */
  readonly file: string
  /** Removes it. */
  readonly remove: () => void
}

const shipped = ['package.json', 'README.md', 'CHANGELOG.md', 'LICENSE', 'docs', 'dist'] as const

/** Packs a copy of what ships, as `prepack` leaves it: `dist` itself is in use while tests run. */
export function packed(): Packed {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-pack-'))
  for (const name of shipped) cpSync(join(root, name), join(folder, name), { recursive: true })
  run(folder, process.execPath, [join(root, 'scripts/slim-dist.mjs'), folder])
  const [pack] = Object.values(
    // An object by name, or, before npm 12, a list.
    JSON.parse(run(folder, 'npm', ['pack', '--json', '--ignore-scripts', '--offline'])) as Record<
      string,
      Omit<Packed, 'file' | 'remove'> & { readonly filename: string }
    >,
  )
  const { filename, ...rest } = pack!
  return { ...rest, file: join(folder, filename), remove: () => rmSync(folder, { recursive: true }) }
}

/**
 * A folder outside the repository with these files, in which the tarball is installed with its own dependencies and, linked
 * to those of the repository, these modules. No other module is found from there. Removed at the end of the test.
 */
export function installed({ file }: Packed, files: Readonly<Record<string, string>>, modules: readonly string[] = []) {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-consumer-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }))
  mkdirSync(join(folder, 'node_modules'))
  run(folder, 'tar', ['-xzf', file])
  renameSync(join(folder, 'package'), join(folder, 'node_modules', 'millrace'))
  for (const name of ['commander', 'croner', 'hono', 'jiti', 'picocolors', 'valibot', 'yaml', ...modules]) {
    mkdirSync(dirname(join(folder, 'node_modules', name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  }
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

function run(cwd: string, command: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} exited with ${status}: ${stderr}`)
  return stdout
}
