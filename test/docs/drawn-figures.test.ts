/** The figures of the documents: drawn by scripts, and shown there as they are drawn. */

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { jobStates } from '#src/core/job/job.js'
import { root } from '../cli/project.js'
import { Document } from './document.js'

it.each([
  { figure: 'scale.svg', script: 'scale-plot.mjs', page: 'docs/performance.md' },
  { figure: 'job-lifecycle.svg', script: 'lifecycle-figure.mjs', page: 'docs/job-lifecycle.md' },
])('$figure is what its script draws, and its page shows it', ({ figure, script, page }) => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts', script), folder], {
    encoding: 'utf8',
    timeout: 20_000,
  })

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(readFileSync(join(folder, figure), 'utf8')).toBe(readFileSync(join(root, 'docs/images', figure), 'utf8'))
  expect(new Document(page).links).toContain(`images/${figure}`)
})

it("the figure of a job's life shows each state, and no other", () => {
  const figure = readFileSync(join(root, 'docs/images/job-lifecycle.svg'), 'utf8')
  const shown = [...figure.matchAll(/font-weight="bold">([^<]+)</g)].map(([, state]) => state!)

  expect(shown.sort()).toEqual([...jobStates].sort())
})
