/**
 * Proof of the drills: tests that run for long, or once more on other servers, which `npm test` therefore leaves out.
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Report, Summary } from './report.js'

/** Each drill has a seed of its own. */
export const seed = 0

const root = join(import.meta.dirname, '..')
const vitest = join(root, 'node_modules/vitest/vitest.mjs')

interface Result {
  readonly testResults: readonly {
    readonly name: string
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

export async function prove(report: Report): Promise<Summary> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-drills-'))
  try {
    const file = join(folder, 'result.json')
    const args = [
      vitest,
      'run',
      '--mode',
      'drills',
      '--reporter',
      'default',
      '--reporter',
      'json',
      '--outputFile',
      file,
    ]
    // On the disk, which `npm test` does not ask.
    const env = { ...process.env, TMPDIR: tmpdir() }
    const child = spawn(process.execPath, args, { cwd: root, env, stdio: 'inherit' })
    const [code] = await once(child, 'close')
    const { testResults } = JSON.parse(readFileSync(file, 'utf8')) as Result
    for (const { name, assertionResults } of testResults) {
      const failed = assertionResults.filter(({ status }) => status === 'failed')
      const passed = assertionResults.filter(({ status }) => status === 'passed')
      report.claim(`${name.slice(name.indexOf('test/'))}: ${passed.length} pass`, failed.length === 0)
      for (const { fullName } of failed) report.say(`  ${fullName}`)
    }
    report.claim('nothing else went wrong', code === 0)
    return { files: testResults.length, tests: testResults.flatMap((one) => one.assertionResults).length }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
