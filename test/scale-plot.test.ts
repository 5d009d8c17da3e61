/** The plot of docs/performance.md: drawn by a script from what the benchmark printed. */

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { root } from './cli/project.js'
import { Document } from './document.js'

it('the plot of scale is what its script draws of the figures, and its page shows it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts/scale-plot.mjs'), folder], {
    encoding: 'utf8',
    timeout: 20_000,
  })

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(readFileSync(join(folder, 'scale.svg'), 'utf8')).toBe(
    readFileSync(join(root, 'docs/images/scale.svg'), 'utf8'),
  )
  expect(new Document('docs/performance.md').links).toContain('images/scale.svg')
})
