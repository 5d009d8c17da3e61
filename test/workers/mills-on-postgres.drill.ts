/** The tests of mills and their workers, once more on a Postgres store. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../cli/project.js'

interface Result {
  readonly numPassedTests: number
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

it('all tests of mills that know of several kinds of store pass on Postgres', { timeout: 600_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-kinds-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'result.json')
  const args = [
    'run',
    'test/client',
    'test/mill',
    'test/workers',
    'test/telemetry',
    '-t',
    'postgres',
    '--reporter',
    'json',
  ]
  const child = spawn(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), ...args, '--outputFile', file], {
    cwd: root,
    env: { ...process.env, STORE_KINDS: 'postgres' },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  await once(child, 'close')
  const { numPassedTests, testResults } = JSON.parse(readFileSync(file, 'utf8')) as Result
  const failed = testResults.flatMap(({ assertionResults }) =>
    assertionResults.filter(({ status }) => status === 'failed'),
  )

  expect(failed.map(({ fullName }) => fullName)).toEqual([])
  expect(numPassedTests).toBeGreaterThan(200)
})
