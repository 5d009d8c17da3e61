/** The checks of a release that only read. */

import { existsSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { provedRooms } from '../../proofs/proved-rooms.js'
import {
  changelogProblems,
  fixtureProblems,
  leftToAPerson,
  proofOutput,
  staleProofs,
  staleTable,
  treeProblems,
} from '../../scripts/release-checks.js'
import { root } from '../cli/project.js'

const clean = { status: '', branch: 'main', tags: '' }

describe('a release', () => {
  it('needs a clean tree on main without the tag', () => {
    expect(treeProblems(clean, '0.1.0')).toEqual([])
    expect(treeProblems({ status: ' M README.md', branch: 'room', tags: 'v0.1.0' }, '0.1.0')).toEqual([
      'the working tree has changes that are not committed',
      "the branch is 'room', not main",
      'the tag v0.1.0 exists; raise the version in package.json',
    ])
  })

  it('needs a heading with the version and a date', () => {
    expect(changelogProblems('# Changelog\n\n## 0.1.0 — 2026-12-01\n', '0.1.0')).toEqual([])
    const problem = ['CHANGELOG.md has no heading "## 0.1.0 — <date>"']
    expect(changelogProblems('## 0.1.0 — unreleased\n', '0.1.0')).toEqual(problem)
    expect(changelogProblems('## 0.1.01 — 2026-12-01\n', '0.1.0')).toEqual(problem)
    expect(changelogProblems('## 0x1.0 — 2026-12-01\n', '0.1.0')).toEqual(problem)
  })

  it('needs fixture stores of its version that are no older than the stores', () => {
    const expected = ['jobs.db.gz', 'redis.jsonl']
    expect(fixtureProblems(expected, expected, '0.1.0', [])).toEqual([])
    expect(fixtureProblems(['redis.jsonl'], expected, '0.1.0', [])).toEqual([
      'there are no fixture stores of 0.1.0 (jobs.db.gz): run `npm run fixtures` and commit them',
    ])
    expect(fixtureProblems(expected, expected, '0.1.0', ['b2', 'a1'])[0]).toMatch(
      /^the stores have changed .* \(2 commits, the latest b2\): run `npm run fixtures` and commit them$/,
    )
  })

  it('leaves to a person what no machine does', () => {
    expect(leftToAPerson('0.1.0', false).at(-1)).toBe('publish: npm run release -- --publish')
    expect(leftToAPerson('0.1.0', true)[0]).toBe('push the tag: git push origin v0.1.0')
  })
})

describe('the proofs of a release', () => {
  const output = (name: string, commit: string, end = 'Every claim holds.') =>
    proofOutput(
      `proofs/${name}.txt`,
      `proof: ${name}\ndate: 2026-11-29T01:17:12.755Z\ncommit: ${commit}\n\n${end}\ntook 3 s\n`,
    )

  it('are read from their outputs', () => {
    expect(output('steps', 'abc1234')).toEqual({
      ...{
        file: 'proofs/steps.txt',
        name: 'steps',
        commit: 'abc1234',
        date: '2026-11-29T01:17:12.755Z',
        allHold: true,
      },
    })
    expect(output('steps', 'abc1234', 'Claims that fail: 1.').allHold).toBe(false)
  })

  it('are stale if what they prove has changed since, most changes first, each with its command', () => {
    const proved = new Map(
      ['fresh', 'old', 'older', 'dirty', 'failed', 'strange', 'never'].map((name) => [name, [`src/${name}`]]),
    )
    const outputs = [
      ...[output('fresh', 'a1'), output('old', 'b1'), output('older', 'c1'), output('dirty', 'd1-dirty')],
      ...[output('failed', 'e1', 'Claims that fail: 1.'), output('strange', 'f1'), output('gone', 'a1')],
    ]
    const changes: Record<string, string[]> = { a1: [], b1: ['x'], c1: ['x', 'y'], f1: ['z', 'z', 'z'] }
    const asked: string[] = []
    const stale = staleProofs(outputs, proved, ({ commit }, paths) => {
      asked.push(`${commit} ${paths}`)
      return { commits: changes[commit]!, isByDate: commit === 'f1' }
    })

    expect(staleTable(stale).map((line) => line.split(/ {2,}/))).toEqual([
      ['proofs/strange.txt', '2026-11-29', '3 commits since in what it proves, by its date', 'npm run prove strange'],
      ['proofs/older.txt', '2026-11-29', '2 commits since in what it proves', 'npm run prove older'],
      ['proofs/old.txt', '2026-11-29', '1 commit since in what it proves', 'npm run prove old'],
      ['proofs/dirty.txt', '2026-11-29', 'it ran on changes that were not committed', 'npm run prove dirty'],
      ['proofs/failed.txt', '2026-11-29', 'a claim of it failed', 'npm run prove failed'],
      ['proofs/gone.txt', '2026-11-29', "there is no proof 'gone'", 'npm run prove gone'],
      ['never', 'never', 'its output is not kept', 'npm run prove never'],
    ])
    expect(staleTable([])).toEqual([])
    expect(asked).toEqual(['a1 src/fresh', 'b1 src/old', 'c1 src/older', 'f1 src/strange'])
  })

  it('each name what they prove, and it is there', () => {
    const names = readdirSync(join(root, 'proofs'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.proof.ts'))
      .map((file) => basename(file, '.proof.ts'))
    const paths = [...new Set(Object.values(provedRooms).flat())]

    expect(Object.keys(provedRooms).sort()).toEqual(names.sort())
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })
})
