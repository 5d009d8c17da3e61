/** `millrace/testing` under test runners, as a project uses it that has installed the tarball: by the page on testing. */

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { root } from '../cli/project.js'
import { Document } from '../docs/document.js'
import { installed, packed } from '../package/tarball.js'

const { blocks } = new Document('docs/testing.md')
const files = Object.fromEntries(blocks.filter(({ file }) => file !== undefined).map(({ file, text }) => [file!, text]))
const page = files['sign-up.test.mjs']!

describe('the tests of the page on testing', () => {
  const tarball = packed()
  afterAll(() => tarball.remove())

  it.each([
    ['node:test', page, [], ['--test', 'sign-up.test.mjs', 'welcome.test.mjs'], /pass 7\n.*fail 0\n/s],
    [
      'vitest',
      page.replace("import test from 'node:test'", "import { test } from 'vitest'"),
      ['vitest'],
      [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--root', '.', 'sign-up.test.mjs'],
      /5 passed/,
    ],
  ])(
    'pass under %s',
    (_, text, modules, args, passed) => {
      const cwd = installed(tarball, { ...files, 'sign-up.test.mjs': text }, modules)
      // They are run for themselves, not as part of this one.
      const { NODE_TEST_CONTEXT: _context, VITEST: _vitest, ...env } = process.env
      const { status, stdout, stderr } = spawnSync(process.execPath, args, {
        ...{ cwd, encoding: 'utf8', timeout: 60_000 },
        env: { ...env, NO_COLOR: '1' },
      })

      expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
      expect(stdout).toMatch(passed)
    },
    90_000,
  )
})
