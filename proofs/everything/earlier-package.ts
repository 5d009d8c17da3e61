/** The package as an earlier commit has it, built in a folder of its own with what is installed here. */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

export class EarlierPackage {
  readonly folder: string

  private constructor(folder: string) {
    this.folder = folder
  }

  /** Throws where the commit is not in the history of this checkout, or does not build. */
  static at(commit: string): EarlierPackage {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-earlier-'))
    const archive = execFileSync('git', ['archive', commit], { cwd: root, maxBuffer: 1_024 ** 3 })
    execFileSync('tar', ['-x', '-C', folder], { input: archive })
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.build.json'], { cwd: folder })
    return new EarlierPackage(folder)
  }

  close(): void {
    rmSync(this.folder, { recursive: true })
  }
}
