import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OrderedContext } from 'millrace'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Change, historyOf } from '../../../examples/demo/history.js'
import { differencesOf, statesOf } from '../../../examples/demo/history-verdict.js'
import { Ledger } from '../../../examples/demo/ledger.js'
import { shuffled } from '../../../examples/demo/shuffled.js'
import { after, blank } from '../../../examples/demo/state.js'
import { follow } from '../../../examples/demo/tasks.js'
import { project } from '../../cli/project.js'

/** A git repository in which `a b.txt` is changed by each of so many commits, every third on a side branch that is merged. */
function repository(commits: number): string {
  const folder = project({})
  const said: string[] = []
  const commit = (branch: string, mark: string, n: number, ...parents: string[]) =>
    said.push(
      `commit refs/heads/${branch}\nmark ${mark}\ncommitter Ada <ada@example.com> ${n} +0000\ndata 0\n`,
      ...parents,
      `M 100644 inline "a b.txt"\ndata <<.\n${n}\n.\n`,
    )
  for (let n = 0; n < commits; n += 1) {
    const from = n === 0 ? [] : [`from :${n}`]
    const isSide = n % 3 === 2
    if (isSide) commit('side', `:${n + 1_000}`, n, ...from)
    commit('main', `:${n + 1}`, n, ...from, ...(isSide ? [`merge :${n + 1_000}`] : []))
  }
  execFileSync('git', ['init', '-q', '-b', 'main', folder])
  execFileSync('git', ['-C', folder, 'fast-import', '--quiet'], { input: `${said.join('\n')}\n` })
  return folder
}

/** Packages, of which each asks for another version of the same one. */
function packages(count: number): string {
  const folder = project({})
  for (let n = 0; n < count; n += 1) {
    const home = join(folder, 'packages', `p${String(n).padStart(2, '0')}`)
    mkdirSync(home, { recursive: true })
    const content = { name: `p${n}`, version: '1.0.0', dependencies: { wanted: `^${n}.0.0` } }
    writeFileSync(join(home, 'package.json'), JSON.stringify(content))
  }
  writeFileSync(join(folder, 'packages', 'package.json'), 'no JSON')
  return join(folder, 'packages')
}

const changesOf = (id: string, count: number): Change[] =>
  Array.from({ length: count }, (_, place) => ({ id, place, by: `commit ${place}`, to: `blob ${place}` }))

describe('the history of the demo', () => {
  it('lists what the commits of a repository did to its files, in order; each change begins where the last one ended', async () => {
    const folder = repository(60)
    const { title, changes } = await historyOf([project({}), folder], packages(1), 1_000)
    expect(title).toBe(`60 changes to 1 files by the commits of ${folder}`)
    expect(changes.map(({ id, place }) => ({ id, place }))).toEqual(
      Array.from({ length: 60 }, (_, place) => ({ id: 'a b.txt', place })),
    )
    const blobs = execFileSync('git', ['-C', folder, 'rev-parse', 'main:a b.txt', 'side:a b.txt'], { encoding: 'utf8' })
    expect([changes[59]!.to, changes[59]!.to]).toEqual(blobs.trim().split('\n'))
    expect(new Set(changes.map(({ to }) => to)).size).toBe(60)
    const latest = await historyOf([folder], packages(1), 55)
    expect(latest.changes.map(({ to }) => to)).toEqual(changes.slice(5).map(({ to }) => to))
    expect(latest.changes[0]!.place).toBe(0)
  })

  it('uses the dependencies of packages if there is no git, no repository, or almost nothing in it', async () => {
    const wanted = packages(12)
    const wishes = Array.from({ length: 12 }, (_, n) => `p${n}@1.0.0 ^${n}.0.0`)
    const [bare, small] = [project({}), repository(3)]
    const listOf = async (folders: string[]) => {
      const { title, changes } = await historyOf(folders, wanted, 1_000)
      expect(title).toBe(`12 wishes for 1 packages by those of ${wanted}`)
      return changes.map(({ by, to }) => `${by} ${to}`)
    }
    expect(await listOf([bare, small])).toEqual(wishes)
    vi.stubEnv('PATH', bare)
    onTestFinished(() => void vi.unstubAllEnvs())
    expect(await listOf([small])).toEqual(wishes)
    expect((await historyOf([], wanted, 5)).changes).toHaveLength(5)
  })
})

describe('the verdict on a history', () => {
  const changes = [...changesOf('a', 5), ...changesOf('b', 3)]
  const applied = (order: readonly Change[]) => new Map([['a', order.reduce(after, blank)]])

  it('finds no fault if each change was applied once and in order', () => {
    expect(differencesOf(changes, statesOf(changes))).toEqual([])
  })

  it('finds a lost, repeated or misplaced change, and a missing or unknown id', () => {
    const [a, b, c, d, e] = changesOf('a', 5) as [Change, Change, Change, Change, Change]
    const of = (order: readonly Change[]) => differencesOf(changesOf('a', 5), applied(order))
    expect(of([a, b, c, d, e])).toEqual([])
    expect(of([a, b, d, e])).toEqual(['a: 4 changes were applied instead of 5'])
    expect(of([a, b, c, c, d, e])).toEqual(['a: 6 changes were applied instead of 5'])
    expect(of([a, c, b, d, e])).toEqual(['a: its 5 changes were not applied in their order'])
    expect(of([a, c, c, d, e])).toEqual(['a: its 5 changes were not applied in their order'])
    expect(differencesOf(changes, applied([a, b, c, d, e]))).toEqual(['b: 0 changes were applied instead of 3'])
    expect(differencesOf([], applied([a]))).toEqual(['a: a state that nobody asked for'])
  })
})

describe('the ledger of the demo', () => {
  it('refuses a write of a claim after a later claim of the id has begun', () => {
    const ledger = new Ledger(join(project({}), 'ledger.db'))
    const entry = { id: 'a', attempt: 1, given: 1, again: 0, state: { ...blank, changes: 1, to: 'old' } }
    expect(Object.fromEntries(ledger.begin(['a', 'b'], 1))).toEqual({ a: blank, b: blank })
    ledger.begin(['a'], 2)
    expect(ledger.end([entry, { ...entry, id: 'b' }], 1)).toEqual(new Set(['a']))
    ledger.begin(['a'], 1)
    expect(ledger.end([entry], 1)).toEqual(new Set(['a']))
    expect(ledger.end([{ ...entry, state: undefined }], 2)).toEqual(new Set())
    ledger.begin(['a'], 3)
    expect(ledger.end([{ ...entry, given: 2, state: { ...blank, changes: 1, to: 'new' } }], 3)).toEqual(new Set())
    expect(Object.fromEntries(ledger.states())).toEqual({
      a: { ...blank, changes: 1, to: 'new' },
      b: { ...blank, changes: 1, to: 'old' },
    })
    expect(ledger.figures()).toEqual({ runs: 3, failed: 1, grown: 1, most: 2, again: 0, refused: 2 })
    expect(ledger.applied()).toBe(2)
    ledger.close()
  })
})

describe('the ledger of the demo judges a queue:', () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  const file = join(folder, 'ledger.db')
  process.env['MILLRACE_DEMO_LEDGER'] = file
  const ledger = new Ledger(file)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  let fence = 0

  /** One run of the demo's handler, as a worker would begin it. */
  const handOver = (id: string, changes: readonly Change[]) => {
    fence += 1
    const payloads = changes.map(({ place }) => ({ score: place, meta: {} }))
    const ctx = { job: { fence }, jobs: new Map([[id, { id, attempt: 1, payloads }]]), fail: () => {} }
    return follow.run!(new Map([[id, changes]]), ctx as unknown as OrderedContext)
  }
  const faultsOf = (id: string, changes: readonly Change[]) => {
    const states = [...ledger.states()].filter(([name]) => name === id)
    return differencesOf(changes, new Map(states))
  }

  it('a correct one passes, even if it hands over again what was applied', async () => {
    const changes = changesOf('right', 6)
    await handOver('right', changes.slice(0, 3))
    await handOver('right', changes.slice(1, 5))
    await handOver('right', changes.slice(5))
    expect(faultsOf('right', changes)).toEqual([])
    expect(ledger.figures()).toMatchObject({ again: 2, refused: 0 })
  })

  it('one that ignores the order within a batch fails', async () => {
    const changes = changesOf('unsorted', 6)
    await handOver('unsorted', shuffled(changes, 3))
    expect(faultsOf('unsorted', changes)).not.toEqual([])
  })

  it('one that hands over newer payloads first fails', async () => {
    const changes = changesOf('reversed', 6)
    await handOver('reversed', changes.slice(3))
    await handOver('reversed', changes.slice(0, 3))
    expect(faultsOf('reversed', changes)).not.toEqual([])
  })

  it('one that loses a payload fails', async () => {
    const changes = changesOf('lost', 6)
    await handOver('lost', changes.slice(0, 2))
    await handOver('lost', changes.slice(3))
    expect(faultsOf('lost', changes)).not.toEqual([])
  })

  it('one that runs an id twice at once fails', async () => {
    const changes = changesOf('parallel', 6)
    const before = ledger.figures().refused
    await Promise.all([handOver('parallel', changes.slice(0, 3)), handOver('parallel', changes.slice(3))])
    expect(faultsOf('parallel', changes)).not.toEqual([])
    expect(ledger.figures().refused).toBe(before + 1)
  })
})
