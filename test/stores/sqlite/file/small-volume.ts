/** A small volume: a memory file system of a few megabytes, which can really be filled. Only root may mount one. */

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export class SmallVolume {
  readonly folder: string

  /** Undefined where none can be mounted: `SmallVolume.why` tells the reason. */
  static of(megabytes: number): SmallVolume | undefined {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-volume-'))
    const { status, stderr, error } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder], {
      encoding: 'utf8',
    })
    if (status === 0) return new SmallVolume(folder)
    rmdirSync(folder)
    SmallVolume.why = String(error?.message ?? stderr).trim()
    return undefined
  }

  static why = ''

  private constructor(folder: string) {
    this.folder = folder
  }

  /** Takes all that is left, to the last byte. */
  fill(name = 'foreign'): void {
    for (const bytes of [65_536, 4_096, 1])
      for (let i = 0; ; i += 1) {
        const file = join(this.folder, `${name}-${bytes}-${i}`)
        try {
          writeFileSync(file, Buffer.alloc(bytes))
        } catch {
          rmSync(file, { force: true })
          break
        }
      }
  }

  /** Throws while anybody has a file open for writing. */
  remount(as: 'ro' | 'rw'): void {
    const { status, stderr } = spawnSync('mount', ['-o', `remount,${as}`, this.folder], { encoding: 'utf8' })
    if (status !== 0) throw new Error(stderr)
  }

  close(): void {
    spawnSync('umount', ['-l', this.folder])
    rmSync(this.folder, { recursive: true, force: true })
  }
}
