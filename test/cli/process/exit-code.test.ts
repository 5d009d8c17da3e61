/** The end of a command that failed: what a person at a terminal is told besides the message. */

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { pageOf } from '#src/cli/process/exit-code.js'
import { MillraceError } from '#src/core/errors.js'
import { project, root } from '../project.js'

it('an error of Millrace has its page, which is part of the package, and other errors have none', () => {
  const page = pageOf(new MillraceError('queue-missing', 'no such queue'))!

  expect(page).toMatch(/docs\/troubleshooting\/queue-missing\.md$/)
  expect(existsSync(resolve(page))).toBe(true)
  expect(pageOf(new Error('not ours'))).toBeUndefined()
})

it('a terminal gets the address of the page after the message, a pipe does not', () => {
  const cwd = project({ 'millrace.config.mjs': "export default { store: 'nowhere:', tasks: [] }" })
  const line = `'${process.execPath}' '${root}/dist/cli/main.js' stats`
  const atTerminal = spawnSync('script', ['-qec', line, '/dev/null'], { cwd, encoding: 'utf8', timeout: 20_000 })
  const intoPipe = spawnSync('sh', ['-c', line], { cwd, encoding: 'utf8', timeout: 20_000 })

  expect(atTerminal.stdout).toMatch(/store[^\n]*\n+See \S*docs\/troubleshooting\/config-invalid\.md/)
  expect(intoPipe.stderr).toContain('store')
  expect(intoPipe.stderr).not.toContain('See ')
  expect([atTerminal.status, intoPipe.status]).toEqual([2, 2])
})
