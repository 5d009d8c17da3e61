/** The house check: what it finds, and that it finds nothing where nothing is wrong. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'

const roots: string[] = []

afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true })
})

/** Runs the check on a tree of these files; each gets a doc comment as its first line unless it has its own. */
function check(files: Record<string, string>): { status: number | null; lines: string[] } {
  const root = mkdtempSync(join(tmpdir(), 'millrace-house-'))
  roots.push(root)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text.startsWith('!') ? text.slice(1) : `/** One noun. */\n${text}`)
  }
  const ran = spawnSync(process.execPath, ['scripts/check-house.mjs', root], { encoding: 'utf8' })
  expect(ran.stderr).toBe('')
  return { status: ran.status, lines: ran.stdout.trim().split('\n') }
}

describe('a house that stands', () => {
  it('passes with one line when every import goes down or stays in its room', () => {
    const { status, lines } = check({
      'src/index.ts': "export * from './config/mill.js'\nexport * from './core/job.js'\n",
      'src/core/job.ts': '',
      'src/core/platform/clock.ts': 'export const now = () => Date.now()\nexport const random = () => Math.random()\n',
      'src/stores/contract/store.ts': "import type { Job } from '../core/job.js'\n",
      'src/stores/memory/memory-store.ts': "import type { Store } from '../store.js'\nimport './memory-clock.js'\n",
      'src/stores/memory/memory-clock.ts': 'export const now = () => Date.now()\n',
      'src/runtime/run/settler.ts': 'export const startedAt = Date.now()\n',
      'src/mill/mill.ts': "const store = await import('../stores/memory/memory-store.js')\n",
      'src/cli/start.ts': "!#!/usr/bin/env node\n/** Start. */\nconsole.log('up')\n",
    })

    expect(lines).toEqual(['The house stands: 9 files keep its laws.'])
    expect(status).toBe(0)
  })

  it('takes words in comments for words', () => {
    const { status } = check({
      'src/core/job.ts': '// console.log(Date.now())\n/* Math.random() */ const url = "http://a" // new Date()\n',
    })

    expect(status).toBe(0)
  })
})

describe('a house with violations', () => {
  const cases: [string, Record<string, string>, string][] = [
    [
      'an import from a floor above',
      { 'src/core/job.ts': "\nimport { x } from '../selectors/lag.js'\n", 'src/selectors/lag.ts': '' },
      'src/core/job.ts:3 core (floor 0) must not import selectors/lag.ts (1)',
    ],
    [
      'an import over several lines',
      { 'src/core/job.ts': "import {\n  x,\n} from '../client/client.js'\n", 'src/client/enqueue/client.ts': '' },
      'src/core/job.ts:4 core (floor 0) must not import client/enqueue/client.ts (3)',
    ],
    [
      'a re-export from a floor above',
      { 'src/core/job.ts': "export * from '../web/page.js'\n", 'src/web/page.ts': '' },
      'src/core/job.ts:2 core (floor 0) must not import web/page.ts (6)',
    ],
    [
      'one store that knows another',
      { 'src/stores/redis/a.ts': "import '../sqlite/b.js'\n", 'src/stores/sqlite/b.ts': '' },
      'src/stores/redis/a.ts:2 stores/redis (floor 2) must not import stores/sqlite/b.ts (2)',
    ],
    [
      'two rooms of one floor that know each other',
      { 'src/client/a.ts': "const b = await import('../runtime/b.js')\n", 'src/runtime/b.ts': '' },
      'src/client/a.ts:2 client (floor 3) must not import runtime/b.ts (3)',
    ],
    [
      'a thread whose file is on a floor above',
      { 'src/runtime/a.ts': "new URL('../config/b.js', import.meta.url)\n", 'src/config/b.ts': '' },
      'src/runtime/a.ts:2 runtime (floor 3) must not import config/b.ts (5)',
    ],
    [
      'an import through the alias of the tests',
      { 'src/core/a.ts': "import '#src/cli/b.js'\n", 'src/cli/b.ts': '' },
      'src/core/a.ts:2 core (floor 0) must not import cli/b.ts (6)',
    ],
    [
      'an import of the barrel',
      { 'src/cli/a.ts': "import { millrace } from '../index.js'\n", 'src/index.ts': '' },
      'src/cli/a.ts:2 cli (floor 6) must not import index.ts (7)',
    ],
    [
      'two files of one name',
      { 'src/core/job.ts': '', 'src/web/job.ts': '' },
      'src/web/job.ts:1 has the same name as src/core/job.ts',
    ],
    [
      'a file of 401 lines',
      { 'src/core/long.ts': `${'\n'.repeat(399)}export {}\n` },
      'src/core/long.ts:401 has 401 lines; 400 is the ceiling',
    ],
    [
      'a test of 401 lines',
      { 'test/long.test.ts': `${'\n'.repeat(399)}export {}\n` },
      'test/long.test.ts:401 has 401 lines; 400 is the ceiling',
    ],
    [
      'a file of a banned name',
      { 'src/core/utils.ts': '' },
      "src/core/utils.ts:1 'utils.ts' says nothing; name the noun",
    ],
    [
      'a banned word',
      { 'src/core/job-types.ts': '' },
      "src/core/job-types.ts:1 'job-types.ts' says nothing; name the noun",
    ],
    ['a banned folder', { 'src/core/lib/a.ts': '' }, "src/core/lib/a.ts:1 'lib' says nothing; name the noun"],
    [
      'a file without a first sentence',
      { 'src/core/job.ts': '!export {}\n' },
      'src/core/job.ts:1 does not begin with a doc comment that says what it is',
    ],
    ['a room that is not in the plan', { 'src/attic/a.ts': '' }, 'src/attic/a.ts:1 stands in no room of the house'],
    ['a file under no room', { 'src/a.ts': '' }, 'src/a.ts:1 stands in no room of the house'],
    [
      'a wall clock on a pure floor',
      { 'src/core/job.ts': 'const at = Date.now()\n' },
      "src/core/job.ts:2 reads 'Date.now'; clock and random are handed in on the lower floors",
    ],
    [
      'a date of now in a store',
      { 'src/stores/redis/a.ts': 'const at = new Date()\n' },
      "src/stores/redis/a.ts:2 reads 'new Date()'; clock and random are handed in on the lower floors",
    ],
    [
      'chance in a selector',
      { 'src/selectors/a.ts': '\nconst x = Math.random()\n' },
      "src/selectors/a.ts:3 reads 'Math.random'; clock and random are handed in on the lower floors",
    ],
    ['a print', { 'src/workers/a.ts': "console.log('x')\n" }, 'src/workers/a.ts:2 prints; only cli/ may'],
  ]

  it.each(cases)('%s is told with its place', (_, files, expected) => {
    const { status, lines } = check(files)

    expect(lines).toEqual([expected, 'Violations: 1.'])
    expect(status).toBe(1)
  })

  it('tells all at once', () => {
    const { lines } = check({ 'src/core/a.ts': 'Date.now()\nconsole.log(1)\n', 'src/core/helpers.ts': '!x\n' })

    expect(lines).toHaveLength(5)
  })

  it('lets a date with an argument pass on the pure floors', () => {
    expect(check({ 'src/core/a.ts': 'const at = new Date(0)\n' }).status).toBe(0)
  })
})
