/** A test volume: a file system of a kind, mounted in a folder of its own. Only root may mount one. */

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { unpackedProgram } from '#src/store-testing/servers/machine-program.js'

export type VolumeKind = 'tmpfs' | 'overlay' | 'xfs' | 'btrfs'

/** The packages of Debian that bring `mkfs` of a kind. */
const formatters = { xfs: 'xfsprogs', btrfs: 'btrfs-progs' }
const imageBytes = 2 * 1024 ** 3

export class TestVolume {
  readonly folder: string
  readonly #root: string

  private constructor(root: string) {
    this.#root = root
    this.folder = join(root, 'volume')
    mkdirSync(this.folder)
  }

  /** Throws what `mount` says where it may not. */
  static async of(kind: VolumeKind): Promise<TestVolume> {
    const root = mkdtempSync(join(tmpdir(), 'millrace-volume-'))
    const volume = new TestVolume(root)
    try {
      execFileSync('mount', [...(await device(kind, root)), volume.folder], { stdio: 'pipe' })
      return volume
    } catch (error) {
      rmSync(root, { recursive: true })
      throw error
    }
  }

  close(): void {
    execFileSync('umount', ['-l', this.folder])
    rmSync(this.#root, { recursive: true, force: true })
  }
}

/** What is mounted, and how. */
async function device(kind: VolumeKind, root: string): Promise<string[]> {
  if (kind === 'tmpfs') return ['-t', kind, '-o', 'size=2g', kind]
  if (kind === 'overlay') {
    const layers = ['lower', 'upper', 'work'].map((name) => `${name}dir=${join(root, name)}`)
    for (const name of ['lower', 'upper', 'work']) mkdirSync(join(root, name))
    return ['-t', kind, '-o', layers.join(','), kind]
  }
  const image = join(root, 'image')
  writeFileSync(image, '')
  truncateSync(image, imageBytes)
  const { path, env } = await formatter(kind)
  execFileSync(path, [image], { env: { ...process.env, ...env }, stdio: 'pipe' })
  return ['-t', kind, '-o', 'loop', image]
}

/** `mkfs` of this kind, from Debian. */
function formatter(kind: keyof typeof formatters) {
  const program = 'format-volume'
  const prepare = async (tree: string) => {
    const lines = ['#!/bin/sh', '[ "$1" = --version ] && set -- -V', `exec "$(dirname "$0")/sbin/mkfs.${kind}" "$@"`]
    await writeFile(join(tree, program), `${lines.join('\n')}\n`)
    await chmod(join(tree, program), 0o755)
  }
  const debian = { packages: [formatters[kind]], program, folder: `millrace-${kind}`, prepare }
  return unpackedProgram(debian, process.env, import.meta.dirname)
}
