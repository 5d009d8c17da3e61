import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CommandProcess } from '../../cli/command-process.js'
import { project, root } from '../../cli/project.js'
import { commitIn, demo, folderOf, ranDemo, script } from './demo-folder.js'

describe('the demo', { timeout: 120_000 }, () => {
  it('computes one right checksum per file, follows each file of a repository in order, packs all of them, and leaves nothing behind', async () => {
    const { folder, home } = folderOf(200)
    commitIn(folder, 20, 30)
    const { code, stdout, stderr, summary: told } = await ranDemo(folder, { TMPDIR: home })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const summary = told as {
      perSecond: number
      shares: { high: number; default: number; low: number }
      ordered: { runs: number; failed: number; merged: number; most: number }
      crawled: { pages: number }
    }
    expect(summary).toEqual({
      verified: true,
      jobs: 200,
      perSecond: expect.any(Number),
      shares: { high: expect.any(Number), default: expect.any(Number), low: expect.any(Number) },
      retries: 2,
      ordered: {
        verified: true,
        ids: 20,
        payloads: 600,
        merged: expect.any(Number),
        runs: expect.any(Number),
        failed: expect.any(Number),
        grown: expect.any(Number),
        most: expect.any(Number),
        again: 0,
      },
      crawled: { verified: true, sites: 2, pages: expect.any(Number), spacingMs: 50, medianGapMs: expect.any(Number) },
      packed: {
        ...{ verified: true, files: 200, bytes: expect.any(Number), archiveBytes: expect.any(Number) },
        ...{ leftOut: 0, changed: 0, processes: 2, from: 128 },
      },
    })
    expect(summary.crawled.pages).toBeGreaterThan(40)
    // All but the first of the older half of each file came to one that waited.
    expect(summary.ordered.merged).toBeGreaterThanOrEqual(300 - 20)
    expect(summary.ordered.failed).toBeGreaterThan(0)
    expect(summary.ordered.most).toBeGreaterThanOrEqual(15)
    expect(summary.ordered.runs).toBeLessThanOrEqual(600 + summary.ordered.failed)
    const { high, default: middle, low } = summary.shares
    expect(high + middle + low).toBeCloseTo(1)
    // Of a handful of claims chance decides how many are of which queue; what the weights promise is told beside it.
    expect(stdout).toMatch(/high +[\d.]+ % +expected +68\.97 %/)
    expect(stdout).toMatch(/default +[\d.]+ % +expected +27\.59 %/)
    expect(stdout).toMatch(/low +[\d.]+ % +expected +3\.45 %/)
    expect(summary.perSecond).toBeGreaterThan(0)
    expect(stdout).toMatch(/verified: each file has exactly one result/)
    expect(stdout).toMatch(/600 changes to 20 files by the commits of /)
    expect(stdout).toMatch(/verified: each change was applied once and in order/)
    expect(stdout).toMatch(/verified by the sites' own logs: each page was fetched once, and none too soon/)
    expect(stdout).toMatch(/verified: tar unpacks each of the files as it was before/)
    expect(stdout).toMatch(/worker process \d+ was killed, and process \d+ of the job went on; .* from file 128$/m)
    expect(readdirSync(home).filter((name) => name.startsWith('millrace-demo-'))).toEqual([])
  })

  it('fails with a clear message when a worker process dies, and no process outlives it', async () => {
    const { folder, home } = folderOf(50)
    // Every child of the demo loads this first; the processes that serve jobs, and only they, end before they begin.
    const dies = join(home, 'dies.mjs')
    writeFileSync(dies, `if (process.argv.includes('work-process')) process.exit(7)`)
    const { code, stdout, stderr } = await new CommandProcess([demo, folder, '--json'], {
      cwd: root,
      script,
      env: { TMPDIR: home, NODE_OPTIONS: `--import ${dies}` },
    }).end()
    expect(code).toBe(1)
    expect(stderr).toMatch(/^demo: worker process \d+ ended with code 7/)
    expect(stdout).not.toMatch(/verified/)
    expect(readdirSync(home).filter((name) => name.startsWith('millrace-demo-'))).toEqual([])
  })

  it('stops its workers and cleans up when it is interrupted', async () => {
    const { folder, home } = folderOf(500)
    const process = new CommandProcess([demo, folder], { cwd: root, script, env: { TMPDIR: home } })
    process.child.stdout!.on('data', (text: Buffer) => {
      if (text.includes('worker processes begin')) process.kill('SIGINT')
    })
    expect(await process.end()).toMatchObject({ code: 1, stderr: 'demo: interrupted by SIGINT\n' })
    expect(readdirSync(home).filter((name) => name.startsWith('millrace-demo-'))).toEqual([])
  })

  it('refuses a folder without files', async () => {
    const cwd = project({})
    const { code, stderr } = await new CommandProcess([demo, join(cwd, 'none')], { cwd: root, script }).end()
    expect({ code, stderr }).toEqual({ code: 1, stderr: `demo: there are no readable files in ${join(cwd, 'none')}\n` })
  })
})
