import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { SourceChanges } from '#src/cli/supervise/watched-work.js'
import { runJson } from '../command-in-process.js'
import { CommandProcess } from '../command-process.js'
import { project, projectFiles } from '../project.js'

describe('millrace work --watch', () => {
  it('restarts when a file changes, waits after a mistake, and puts running jobs back', {
    timeout: 60_000,
  }, async () => {
    const cwd = project({ ...projectFiles, 'say.js': 'export const word = 1\n' })
    const tasks = join(cwd, 'tasks.js')
    const before = readFileSync(tasks, 'utf8')
    const command = new CommandProcess('work --watch --json --grace 1s', { cwd })
    await command.events('processes.started')
    await runJson(['enqueue', 'hold', JSON.stringify(join(cwd, 'held')), '--id', 'long'], { cwd })
    await command.events('test.running')

    writeFileSync(join(cwd, 'say.js'), 'export const word = 2\n')
    expect(await command.events('file.changed')).toMatchObject([{ file: 'say.js' }])
    await command.events('processes.started', 2)
    // Put back, uncounted, and begun again by the new process.
    await command.events('test.running', 2)
    expect(await runJson('jobs show slow long', { cwd })).toMatchObject({
      attempt: 1,
      crashes: 0,
    })

    writeFileSync(tasks, before.replace("name: 'echo'", "name: 'echo', attempts: 3"))
    expect(await command.events('work.waiting')).toMatchObject([{ code: 2 }])
    expect((await command.stderrMatches(/tasks\.js:\d+:17 task 'echo' attempts: is not an option/)).input).toMatch(
      /^millrace: /,
    )

    writeFileSync(tasks, before)
    await command.events('processes.started', 3)
    writeFileSync(join(cwd, 'held'), '')
    command.kill('SIGTERM')
    expect((await command.end()).code).toBe(0)
  })

  it('exits with the code of the mistake if it is stopped while it waits', { timeout: 30_000 }, async () => {
    const cwd = project({ ...projectFiles, 'tasks.js': 'export default 1' })
    const command = new CommandProcess('work --watch --json', { cwd })
    await command.events('work.waiting')
    command.kill('SIGINT')
    expect((await command.end()).code).toBe(2)
  })
})

describe('the changes of sources', () => {
  const watched = (files: Record<string, string> = {}) => {
    const cwd = project(files)
    const changes = new SourceChanges([cwd])
    onTestFinished(() => changes.close())
    return { cwd, changes }
  }

  it('are those of code and YAML, also in folders that are created later', async () => {
    const { cwd, changes } = watched()
    const next = changes.next()
    mkdirSync(join(cwd, 'later/below'), { recursive: true })
    writeFileSync(join(cwd, 'later/below/first.ts'), '')
    expect(await next).toBe(join(cwd, 'later/below/first.ts'))
    const yaml = changes.next()
    writeFileSync(join(cwd, 'queues.yaml'), '')
    expect(await yaml).toBe(join(cwd, 'queues.yaml'))
    const below = changes.next()
    writeFileSync(join(cwd, 'later/below/second.ts'), '')
    expect(await below).toBe(join(cwd, 'later/below/second.ts'))
  })

  it('are noticed in a folder that was removed and created again, as a branch switch does', async () => {
    const { cwd, changes } = watched({ 'lib/deep/a.ts': '' })
    rmSync(join(cwd, 'lib'), { recursive: true })
    await changes.next()
    mkdirSync(join(cwd, 'lib/deep'), { recursive: true })
    writeFileSync(join(cwd, 'lib/deep/b.ts'), '1')
    expect(await changes.next()).toBe(join(cwd, 'lib/deep/b.ts'))
    writeFileSync(join(cwd, 'lib/deep/b.ts'), '2')
    expect(await changes.next()).toBe(join(cwd, 'lib/deep/b.ts'))
  })

  it('exclude packages, builds, hidden folders, data and stores; several at once are one', async () => {
    const { cwd, changes } = watched({
      'dist/a.js': '',
      'node_modules/p/a.js': '',
      '.git/a.js': '',
      'a.ts': '',
      'b.ts': '',
    })
    for (const name of ['dist/a.js', 'node_modules/p/a.js', '.git/a.js', 'jobs.db', 'data.json', 'log.txt'])
      writeFileSync(join(cwd, name), '1')
    for (const name of ['a.ts', 'b.ts']) writeFileSync(join(cwd, name), '1')
    expect(await changes.next()).toBe(join(cwd, 'a.ts'))
    const again = changes.next()
    writeFileSync(join(cwd, 'b.ts'), '2')
    expect(await again).toBe(join(cwd, 'b.ts'))
  })
})
