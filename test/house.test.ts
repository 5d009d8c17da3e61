/** The house check: what it finds, and that it finds nothing where nothing is wrong. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { root as projectRoot } from './cli/project.js'

interface HouseReport {
  readonly lines: string[]
  readonly stands: boolean
}

const { houseReport } = (await import(pathToFileURL(join(projectRoot, 'scripts/house-laws.mjs')).href)) as {
  houseReport(root: string, options?: { readonly lone?: boolean }): HouseReport
}

const roots: string[] = []

afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true })
})

/** A tree of these files; each gets a doc comment as its first line unless it has its own. */
function tree(files: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), 'millrace-house-'))
  roots.push(root)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(
      join(root, path),
      text.startsWith('!') ? text.slice(1) : path.endsWith('.json') ? text : `/** One noun. */\n${text}`,
    )
  }
  return root
}

/** What is said of a tree of these files. */
function check(files: Record<string, string>, options?: { readonly lone?: boolean }): HouseReport {
  return houseReport(tree(files), options)
}

it('the program prints the report, and exits with 1 if the house does not stand', () => {
  const program = (files: Record<string, string>, ...flags: string[]) => {
    const args = ['scripts/check-house.mjs', tree(files), ...flags]
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: projectRoot, encoding: 'utf8' })
    return { status, stdout, stderr }
  }
  const stands = 'The house stands: 1 files keep its laws.\n'

  expect(program({ 'src/core/job.ts': '' })).toEqual({ status: 0, stdout: stands, stderr: '' })
  expect(program({ 'src/core/job.ts': '' }, '--lone').stdout).toBe(`Short files with one importer: 0.\n${stands}`)
  expect(program({ 'src/attic/a.ts': '' })).toEqual({
    status: 1,
    stdout: 'src/attic/a.ts:1 stands in no room of the house\nViolations: 1.\n',
    stderr: '',
  })
})

describe('a house that stands', () => {
  it('passes with one line if every import goes down or stays in its room', () => {
    const { stands, lines } = check({
      'src/index.ts': "export * from './mill/mill.js'\nexport * from './core/job.js'\n",
      'src/core/job.ts': '',
      'src/core/platform/clock.ts': 'const now = () => Date.now()\nconst random = () => Math.random()\n',
      'src/stores/contract/store.ts': "import type { Job } from '../../core/job.js'\n",
      'src/stores/memory/memory-store.ts':
        "import type { Store } from '../contract/store.js'\nimport './memory-clock.js'\n",
      'src/stores/memory/memory-clock.ts': 'const now = () => Date.now()\n',
      'src/runtime/run/settler.ts': 'const startedAt = Date.now()\n',
      'src/mill/mill.ts': "const store = await import('../stores/memory/memory-store.js')\n",
      'src/cli/start.ts': "!#!/usr/bin/env node\n/** Start. */\nconsole.log('up')\n",
    })

    expect(lines).toEqual(['The house stands: 9 files keep its laws.'])
    expect(stands).toBe(true)
  })

  it('may have forbidden words in comments', () => {
    const { stands } = check({
      'src/core/job.ts': '// console.log(Date.now())\n/* Math.random() */ const url = "http://a" // new Date()\n',
    })

    expect(stands).toBe(true)
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
      { 'src/core/job.ts': "import {\n  x,\n} from '../client/client.js'\n", 'src/client/client.ts': '' },
      'src/core/job.ts:4 core (floor 0) must not import client/client.ts (7)',
    ],
    [
      'a re-export from a floor above',
      { 'src/core/job.ts': "export * from '../cli/page.js'\n", 'src/cli/page.ts': '' },
      'src/core/job.ts:2 core (floor 0) must not import cli/page.ts (11)',
    ],
    [
      'one store that knows another',
      { 'src/stores/redis/a.ts': "import '../sqlite/b.js'\n", 'src/stores/sqlite/b.ts': '' },
      'src/stores/redis/a.ts:2 stores/redis (floor 5) must not import stores/sqlite/b.ts (5)',
    ],
    [
      'two rooms of one floor that know each other',
      { 'src/measures/a.ts': "const b = await import('../runtime/b.js')\n", 'src/runtime/b.ts': '' },
      'src/measures/a.ts:2 measures (floor 6) must not import runtime/b.ts (6)',
    ],
    [
      'a thread whose file is on a floor above',
      { 'src/runtime/a.ts': "new URL('../mill/b.js', import.meta.url)\n", 'src/mill/b.ts': '' },
      'src/runtime/a.ts:2 runtime (floor 6) must not import mill/b.ts (9)',
    ],
    [
      'an import through the alias of the tests',
      { 'src/core/a.ts': "import '#src/cli/b.js'\n", 'src/cli/b.ts': '' },
      'src/core/a.ts:2 core (floor 0) must not import cli/b.ts (11)',
    ],
    [
      'an import of the barrel',
      { 'src/cli/a.ts': "import { millrace } from '../index.js'\n", 'src/index.ts': '' },
      'src/cli/a.ts:2 cli (floor 11) must not import index.ts (11)',
    ],
    [
      'a page that imports of the rooms',
      { 'dashboard/src/app.tsx': "\nimport { x } from '../../src/core/job.js'\n", 'src/core/job.ts': '' },
      'dashboard/src/app.tsx:3 the page must not import ../../src/core/job.js',
    ],
    [
      'a file of the page that has the name of another',
      { 'src/core/job.ts': '', 'dashboard/src/job.ts': '' },
      'dashboard/src/job.ts:1 has the same name as src/core/job.ts',
    ],
    [
      'two files of one name',
      { 'src/core/job.ts': '', 'src/cli/job.ts': '' },
      'src/core/job.ts:1 has the same name as src/cli/job.ts',
    ],
    [
      'a rule that knows a store',
      { 'src/stores/rules/a.ts': "import '../memory/b.js'\n", 'src/stores/memory/b.ts': '' },
      'src/stores/rules/a.ts:2 stores/rules (floor 2) must not import stores/memory/b.ts (5)',
    ],
    [
      'a type name that stands for two things',
      { 'src/core/a.ts': 'interface Place {}\n', 'src/core/b.ts': '\ntype Place = string\n' },
      "src/core/b.ts:3 'Place' is a type of src/core/a.ts too",
    ],
    [
      'an export that nobody imports',
      { 'src/core/a.ts': '\nexport const lonely = 1\n' },
      "src/core/a.ts:3 'lonely' is exported, and used nowhere else",
    ],
    [
      'a file of 601 lines',
      { 'src/core/long.ts': `${'\n'.repeat(599)}export {}\n` },
      'src/core/long.ts:601 has 601 lines; 600 is the ceiling',
    ],
    [
      'a test of 601 lines',
      { 'test/long.test.ts': `${'\n'.repeat(599)}export {}\n` },
      'test/long.test.ts:601 has 601 lines; 600 is the ceiling',
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
    [
      'a test that judges a time which a busy machine decides',
      { 'test/a.test.ts': `\nexpect(${'performance'}.now() - startedAt).toBeLessThan(1_500)\n` },
      'test/a.test.ts:3 judges 1_500 ms of real time; await an event, move the clock, or measure in bench/',
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

  it.each(cases)('%s is reported with its place', (_, files, expected) => {
    const { stands, lines } = check(files)

    expect(lines).toEqual([expected, 'Violations: 1.'])
    expect(stands).toBe(false)
  })

  it('reports all of them at once', () => {
    const { lines } = check({ 'src/core/a.ts': 'Date.now()\nconsole.log(1)\n', 'src/core/helpers.ts': '!x\n' })

    expect(lines).toHaveLength(5)
  })

  it('reports a circle of files with its imports', () => {
    const { lines } = check({
      'src/core/task/a.ts': "import type { B } from './b.js'\n",
      'src/core/task/b.ts': "import { a } from './a.js'\nimport './c.js'\n",
      'src/core/task/c.ts': '',
    })

    expect(lines).toEqual([
      'src/core/task/a.ts:2 goes round in a circle: core/task/a.ts imports core/task/b.ts',
      'src/core/task/b.ts:2 goes round in a circle: core/task/b.ts imports core/task/a.ts',
      'Violations: 2.',
    ])
  })

  it('reports a circle of the page', () => {
    const { lines } = check({
      'dashboard/src/a.tsx': "import './b/c.js'\n",
      'dashboard/src/b/c.tsx': "import '../a.js'\n",
    })

    expect(lines).toEqual([
      'dashboard/src/a.tsx:2 goes round in a circle: a imports b/c',
      'dashboard/src/b/c.tsx:2 goes round in a circle: b/c imports a',
      'Violations: 2.',
    ])
  })

  it('reports a circle of alcoves, in which a file next to them counts alone', () => {
    const { lines } = check({
      'src/workers/loop/a.ts': "import '../slots.js'\n",
      'src/workers/loop/b.ts': '',
      'src/workers/slots.ts': "import './shards/c.js'\n",
      'src/workers/shards/c.ts': "import '../loop/b.js'\n",
      'src/workers/worker.ts': "import './loop/a.js'\n",
    })

    expect(lines).toEqual([
      'src/workers/loop/a.ts:2 goes round in a circle: workers/loop imports workers/slots.ts',
      'src/workers/shards/c.ts:2 goes round in a circle: workers/shards imports workers/loop',
      'src/workers/slots.ts:2 goes round in a circle: workers/slots.ts imports workers/shards',
      'Violations: 3.',
    ])
  })

  it('reports no circle through the URL of a thread', () => {
    const { stands } = check({
      'src/mill/a.ts': "new URL('./entries/b.js', import.meta.url)\n",
      'src/mill/entries/b.ts': "import '../a.js'\n",
    })

    expect(stands).toBe(true)
  })

  const crowded = '21 files; 20 is the ceiling, make alcoves'
  const lonely = '3 files; fewer than 4 are no alcove, move them'
  it.each([
    ['src/core/task', 21, 'ts', crowded],
    ['test/core', 21, 'test.ts', crowded],
    ['test/core', 3, 'test.ts', lonely],
    ['test/cases/cli', 3, 'sh', lonely],
    ['bench/redis', 3, 'ts', lonely],
  ])('reports %s if it has %i files', (folder, files, ending, violation) => {
    const tree = Object.fromEntries(Array.from({ length: files }, (_, i) => [`${folder}/a${i}.${ending}`, '']))

    expect(check(tree).lines).toEqual([`${folder}:1 holds ${violation}`, 'Violations: 1.'])
  })

  it('lets a date with an argument pass on the pure floors', () => {
    expect(check({ 'src/core/a.ts': 'const at = new Date(0)\n' }).stands).toBe(true)
  })
})

describe('titles of tests', () => {
  const titled = (titles: readonly string[]) =>
    check({ 'test/a.test.ts': titles.map((title) => `it.each([1])(${JSON.stringify(title)}, () => {})\n`).join('') })

  it('are reported with the form that is not plain, and with what to write instead', () => {
    const { lines } = titled([
      'who is denied is told that it is full until a lease ends',
      'a claim tells of a burial once',
      'gives as much as what is asked needs',
      'lets go whoever waits no longer',
      'is written where nobody leads',
      'is aborted whole, be it of a job that was cancelled',
      'runs so many at once as `perGroup` says',
      'puts back what it has in hand',
      'of which one is named twice are refused',
      'of a group that is held nothing is granted',
      'of many completions of one claim, the first one is',
    ])

    expect(
      lines.map((line) => /^test\/a\.test\.ts:(\d+) is titled '… (.+) …'; write ./.exec(line)?.slice(1).join()),
    ).toEqual([
      ...['2,is told', '2,who', '3,tells of', '4,what is asked', '5,whoever', '6,where nobody', '7,be it'],
      ...['8,so many at once as', '9,in hand', '10,of which', '11,of a group that is held nothing'],
      ...['12,of many completions of one claim, the first one is', undefined],
    ])
  })

  it('are checked in the contract suite too', () => {
    const { lines } = check({
      'src/store-testing/contract/jobs/a.ts': `
export const a = {
  async 'a crash is told once'(scene) {},
  'a job is claimed once': plainCase([], async () => {}),
  "whoever leads goes on":
    plainCase([], async () => {}),
}
`,
    })

    expect(lines.filter((line) => line.includes('titled'))).toEqual([
      "src/store-testing/contract/jobs/a.ts:4 is titled '… is told …'; write 'learns', 'gets' or 'is reported'",
      "src/store-testing/contract/jobs/a.ts:6 is titled '… whoever …'; write a noun for the one who does it",
    ])
  })

  it('may be plain claims, with any other "of", "where" or "as long as"', () => {
    const { stands } = titled([
      'if a group is held, it is granted nothing; other groups go on',
      'of an ordered task is derived from its id',
      'of a lost claim is refused, and its handler is aborted',
      'shows where it runs, and what it has logged',
      'waits as long as the store is away',
      'learns how often it may fail',
    ])

    expect(stands).toBe(true)
  })
})

describe('short files with one importer', () => {
  it('are listed, each with the reason why it stands alone', () => {
    const parts = [1, 2, 3, 4]
    const { stands, lines } = check(
      {
        'src/core/a.ts': "import './b.js'\nimport './c.js'\nimport './shared.js'\n",
        'src/core/b.ts': "import './shared.js'\nimport './long.js'\n",
        'src/core/c.ts': '',
        'src/core/long.ts': '\n'.repeat(109).concat('export {}\n'),
        'src/core/shared.ts': '',
        'src/core/whole.ts': parts.map((n) => `import './parts/p${n}.js'\n`).join(''),
        ...Object.fromEntries(parts.map((n) => [`src/core/parts/p${n}.ts`, ''])),
        'test/c.test.ts': "import '#src/core/c.js'\n",
      },
      { lone: true },
    )

    expect(lines).toEqual([
      'src/core/b.ts: 3 lines, imported by src/core/a.ts alone: no reason',
      'src/core/c.ts: 1 lines, imported by src/core/a.ts alone: it has a test of its own',
      ...parts.map(
        (n) =>
          `src/core/parts/p${n}.ts: 1 lines, imported by src/core/whole.ts alone: one of 4 of its folder that this file alone imports`,
      ),
      'Short files with one importer: 6.',
      'The house stands: 10 files keep its laws.',
    ])
    expect(stands).toBe(true)
  })

  it('are not listed if there is nothing to decide', () => {
    const kin = [1, 2, 3, 4]
    const { lines } = check(
      {
        'package.json': '{ "exports": { "./entry": { "types": "./dist/core/entry.d.ts" } } }',
        'src/core/entry.ts': "import './published.js'\n",
        'src/core/published.ts': '',
        'src/core/late.ts': "await import('./later.js')\nimport './entry.js'\n",
        'src/core/later.ts': '',
        'src/core/d.ts': "new URL('./thread.js', import.meta.url)\nimport './thread.js'\nimport './own-thread.js'\n",
        'src/core/thread.ts': '',
        'src/core/own-thread.ts': 'new Worker(new URL(import.meta.url))\n',
        'src/core/commands.ts': kin.map((n) => `import './kin/c${n}-command.js'\n`).join(''),
        ...Object.fromEntries(kin.map((n) => [`src/core/kin/c${n}-command.ts`, ''])),
      },
      { lone: true },
    )

    expect(lines).toEqual(['Short files with one importer: 0.', 'The house stands: 12 files keep its laws.'])
  })
})
