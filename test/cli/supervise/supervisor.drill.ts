/** The supervisor and all that may go wrong with a process; `supervisor.test.ts` has its daily work. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { processArgs } from '#src/cli/commands/work-command.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { tryWriteLock } from '../../write-lock.js'
import { run, runJson } from '../command-in-process.js'
import { CommandProcess, runProcess } from '../command-process.js'
import { configFile, project, projectFiles, tasksFile } from '../project.js'
import { pidsOf, working } from './supervised-command.js'

describe('a worker process that dies', () => {
  it.each([
    ['abort', { code: 134, signal: 'SIGABRT' }],
    ['quit', { code: 0, signal: null }],
  ])('because of a handler (%s) is reported and replaced at once', async (task, end) => {
    const cwd = project()
    const { command, pids } = await working(cwd)
    await runJson(['enqueue', task, 'null'], { cwd })
    expect(await command.events('process.exited')).toMatchObject([{ child: pids[0], ...end, restartMs: 0 }])
    const [, successor] = pidsOf(await command.events('worker.started', 2))
    expect(successor).not.toBe(pids[0])
    command.kill('SIGTERM')
    await command.end()
  })

  it('while it runs a suspect alone is replaced at once: later processes are unaffected', {
    timeout: 120_000,
  }, async () => {
    const cwd = project()
    const { command } = await working(cwd)
    await runJson('enqueue abort null --id pill', { cwd })

    // In company first, and then alone until it is buried.
    const exited = await command.events('process.exited', 4)
    expect(await command.events('job.buried')).toMatchObject([{ id: 'pill', reason: 'crashed' }])
    command.kill('SIGTERM')
    await command.end()

    expect(exited.map(({ restartMs }) => restartMs)).toEqual([0, 0, 0, 0])
  })

  it('because of an uncaught error names it and its running jobs, lets them finish, and exits with 1', async () => {
    const cwd = project()
    const gate = join(cwd, 'gate')
    await runJson(['enqueue', 'hold', JSON.stringify(gate), '--id', 'held'], { cwd })
    const { command, pids } = await working(cwd)
    await command.events('test.running')
    await runJson('enqueue stray null', { cwd })
    expect(await command.events('worker.failed')).toMatchObject([{ pid: pids[0], error: 'stray after 50 ms' }])
    await command.stderrMatches(/stray after 100 ms/)
    writeFileSync(gate, '')
    expect(await command.events('process.exited')).toMatchObject([{ child: pids[0], code: 1, signal: null }])
    expect(await command.events('worker.stopped')).toMatchObject([{ pid: pids[0], completed: 2 }])
    command.kill('SIGTERM')
    const { stdout, stderr } = await command.end()
    expect(stdout.match(/worker\.failed/g)).toHaveLength(1)
    expect(stderr).toMatch(
      new RegExp(
        `^millrace: process ${pids[0]}: uncaught Error: stray after 50 ms; 1 job in hand: slow hold held\n    at `,
      ),
    )
    expect(stderr).toMatch(/uncaught Error: stray after 100 ms; 1 job in hand/)
  })
})

describe('a worker process that recycles', () => {
  it('is replaced before it has drained, and no job is lost or run twice', async () => {
    const cwd = project()
    const gate = join(cwd, 'gate')
    await runJson(['enqueue', 'hold', JSON.stringify(gate)], { cwd })
    const { command, pids } = await working(cwd, ['--max-jobs', '2'])
    await command.events('test.running')
    await runJson('enqueue echo 1', { cwd })
    expect(await command.events('worker.recycling')).toMatchObject([{ pid: pids[0], reason: 'max-jobs' }])
    const successor = pidsOf(await command.events('worker.started', 2))[1]
    await runJson('enqueue echo 2', { cwd })
    // The first still holds its job, and its successor works.
    expect(pidsOf(await command.events('test.running', 3))).toEqual([pids[0], pids[0], successor])
    writeFileSync(gate, '')
    expect(await command.events('worker.stopped')).toMatchObject([{ pid: pids[0], completed: 2 }])
    command.kill('SIGTERM')
    const { code, stdout, stderr } = await command.end()
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).not.toMatch(/process\.exited/)
  })
})

describe('millrace work', () => {
  it('ends with its last process, also if that was leaving when its successor was stopped', async () => {
    const cwd = project()
    const gate = join(cwd, 'gate')
    await runJson(['enqueue', 'hold', JSON.stringify(gate)], { cwd })
    const { command } = await working(cwd, ['--max-jobs', '2'])
    await command.events('test.running')
    await runJson('enqueue echo 1', { cwd })
    const started = pidsOf(await command.events('worker.started', 2))
    let successor: { id: string } | undefined
    await expect
      .poll(async () => {
        const { workers } = await runJson<{ workers: { id: string; pid: number }[] }>('workers list', { cwd })
        successor = workers.find(({ pid }) => pid === started[1])
        return successor
      })
      .toBeDefined()
    await runJson(['workers', 'stop', successor!.id], { cwd })
    await command.events('worker.stopped')
    writeFileSync(gate, '')

    expect(await command.end()).toMatchObject({ code: 0 })
  })
})

describe('the start of millrace work', () => {
  it('is reported once with its exit code if it fails, and no other process is started', async () => {
    const cwd = project({
      ...projectFiles,
      'broken.config.js': `import { appendFileSync } from 'node:fs'\nappendFileSync('loads', 'x')\n${configFile.replace('weight: 5', 'weight: 1_000')}`,
    })
    const { code, stdout, stderr } = await runProcess(['work', '--processes', '3', '--config', 'broken.config.js'], {
      cwd,
    })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr.match(/millrace: /g)).toHaveLength(1)
    expect(readFileSync(join(cwd, 'loads'), 'utf8')).toBe('x')
  })

  it('fails if the configuration ends its process', async () => {
    const cwd = project({ ...projectFiles, 'quits.mjs': 'process.exit(0)' })
    const { code, stderr } = await runProcess(['work', 'quits.mjs'], { cwd })
    expect(code).toBe(2)
    expect(stderr).toMatch(
      /^millrace: the process ended while .*quits\.mjs was loaded: the file, or one that it imports, calls/,
    )
  })

  it('exits with 0 if a stop comes first', async () => {
    const cwd = project({
      ...projectFiles,
      'slow.mjs': `console.log('{"event":"test.loading"}')\nawait new Promise((resolve) => setTimeout(resolve, 60_000))`,
    })
    const command = new CommandProcess('work slow.mjs --json', { cwd })
    await command.events('test.loading')
    command.kill('SIGTERM')
    expect(await command.end()).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('a worker process that hangs', () => {
  it('because its event loop is blocked is killed two seconds after maxBlock, and replaced', async () => {
    const cwd = project()
    const { command, pids } = await working(cwd, ['--max-block', '1s'])
    await runJson('enqueue spin {"afterMs":0,"forMs":60000}', { cwd })
    expect(await command.events('process.killed')).toMatchObject([
      {
        child: pids[0],
        reason: expect.stringMatching(/^has given no sign of life for [3-5](\.\d)?s: its event loop is blocked/),
      },
    ])
    expect(await command.events('process.exited')).toMatchObject([{ child: pids[0], signal: 'SIGKILL', restartMs: 0 }])
    await command.events('worker.started', 2)
    command.kill('SIGTERM')
    await command.end()
  })

  it('beyond its grace is killed, and the command exits with 1 within grace and two seconds', async () => {
    const cwd = project()
    const { command, pids } = await working(cwd, ['--grace', '300ms'])
    await runJson('enqueue spin {"afterMs":0,"forMs":60000}', { cwd })
    await command.events('test.spinning')
    const toldAt = performance.now()
    command.kill('SIGTERM')
    expect(await command.end()).toMatchObject({ code: 1 })
    expect(performance.now() - toldAt).toBeLessThan(300 + 1_500 + 2_000)
    expect(await command.events('process.killed')).toMatchObject([
      { child: pids[0], reason: 'has not ended within its grace of 300ms' },
    ])
  })

  it('only until its grace ends has its jobs put back, with exit code 0', async () => {
    const cwd = project()
    await runJson(['enqueue', 'hold', JSON.stringify(join(cwd, 'never'))], { cwd })
    const { command } = await working(cwd, ['--grace', '300ms'])
    await command.events('test.running')
    const toldAt = performance.now()
    command.kill('SIGTERM')
    expect(await command.end()).toMatchObject({ code: 0, stderr: '' })
    expect(performance.now() - toldAt).toBeLessThan(300 + 1_000 + 2_000)
    expect(await command.events('worker.stopped')).toMatchObject([{ completed: 0, released: 1, failed: 0 }])
  })
})

describe('a stop while another process holds the lock of the store', () => {
  it('ends within grace and two seconds; jobs whose end could not be stored run again', async () => {
    const cwd = project()
    const gate = join(cwd, 'gate')
    await runJson(['enqueue', 'hold', JSON.stringify(gate)], { cwd })
    const { command } = await working(cwd, ['--grace', '500ms'])
    await command.events('test.running')
    const db = (await loadDriver())(join(cwd, 'jobs.db'))
    await vi.waitUntil(() => tryWriteLock(db), { timeout: 10_000 })
    writeFileSync(gate, '')
    const toldAt = performance.now()
    command.kill('SIGTERM')
    const { code } = await command.end()
    expect(performance.now() - toldAt).toBeLessThan(500 + 2_000 + 2_000)
    expect(code).toBe(1)
    db.exec('ROLLBACK')
    db.close()
    const { totals } = await runJson<{ totals: object }>('stats', { cwd })
    expect(totals).toMatchObject({ ready: 0, running: 1, processed: 0 })
  })
})

describe('a handler that writes to the channel of the supervisor', () => {
  it('ends no process: jobs run, the state is shown, and a stop exits with 0', async () => {
    const cwd = project({ ...projectFiles, 'tasks.js': tasksFile + meddlingTask, 'millrace.config.js': meddlingConfig })
    const { command, pids } = await working(cwd)
    await runJson('enqueue meddle null', { cwd })
    const [meddled] = await command.events('test.meddled')
    await runJson('enqueue echo null', { cwd })
    await command.events('test.running')
    command.kill('SIGUSR2')
    const [dumped] = await command.events('state.dumped')
    command.kill('SIGTERM')

    expect(await command.end()).toMatchObject({ code: 0, stderr: '' })
    expect(meddled).toMatchObject({ failed: 0 })
    expect(dumped).toMatchObject({ processes: [{ pid: pids[0], state: 'running', restarts: 0 }] })
  })
})

const meddlingTask = `
import { writeSync } from 'node:fs'

export const meddle = defineTask({
  name: 'meddle',
  run: async () => {
    let failed = 0
    const junk = ['no JSON\\n', '{"millrace":"alive","pulse":7}\\n{"millrace":"ready"}\\n', '{"millrace":"alone"}\\n', '[{}]\\n7\\nnull\\n', 'no end']
    try {
      for (const text of junk) writeSync(3, text)
    } catch {
      failed += 1
    }
    process.stdout.write(JSON.stringify({ event: 'test.meddled', failed }) + '\\n')
  },
})
`
const meddlingConfig = configFile.replaceAll('echo,', 'echo, meddle,')

describe('the command line of a worker process', () => {
  it('is that of its supervisor with another command name', () => {
    expect(processArgs(['work', 'work', '--processes', '4'])).toEqual(['work-process', 'work', '--processes', '4'])
  })

  it('is hidden from help', async () => {
    const cwd = project({})
    expect((await run('--help', { cwd })).stdout).not.toMatch(/work-process/)
    expect(existsSync(join(cwd, '.millrace'))).toBe(false)
  })
})
