import { once } from 'node:events'
import { chmodSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { run, runJson } from '../command-in-process.js'
import { CommandProcess, runProcess, runProcessJson } from '../command-process.js'
import { configFile, project, projectFiles, root, tasksFile } from '../project.js'

interface Stats {
  totals: Record<string, number>
}

/** A job that runs until `release()`, and a worker that has begun to run it. */
async function holding(args: readonly string[] = ['--grace', '10s']) {
  const cwd = project()
  const gate = join(cwd, 'gate')
  await runJson(['enqueue', 'hold', JSON.stringify(gate)], { cwd })
  const worker = new CommandProcess(['work', '--json', ...args], { cwd })
  await worker.events('test.running')
  return { cwd, worker, release: () => writeFileSync(gate, '') }
}

describe('millrace work', () => {
  it('lets a running job finish at SIGTERM, then exits with 0', async () => {
    const { cwd, worker, release } = await holding()
    worker.kill('SIGTERM')
    await worker.events('worker.stopping')
    release()
    expect(await worker.end()).toMatchObject({ code: 0, signal: null, stderr: '' })
    expect(await worker.events('worker.stopped')).toMatchObject([{ completed: 1, failed: 0 }])
    expect((await runJson<Stats>('stats', { cwd })).totals).toMatchObject({ processed: 1, running: 0 })
  })

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
  ] as const)('a first %s waits for a running job, and a second ends it at once with %i', async (signal, code) => {
    const { worker } = await holding()
    worker.kill(signal)
    expect(await worker.events('processes.stopping')).toMatchObject([{ pid: worker.pid, cause: signal, running: 1 }])
    // To its processes every signal is the same.
    expect(await worker.events('worker.stopping')).toMatchObject([{ cause: 'SIGTERM', running: 1 }])
    worker.kill(signal)
    expect(await worker.end()).toMatchObject({ code, signal: null, stderr: '' })
  })

  it('prints failed and buried jobs, as JSON and as text', async () => {
    const cwd = project()
    await runJson(['enqueue', 'fail', '"no such luck"', '--id', 'bad'], { cwd })
    const worker = new CommandProcess('work --json', { cwd })
    const [started] = await worker.events('worker.started')
    expect(started).toMatchObject({
      store: 'sqlite:jobs.db',
      queues: { default: 40, slow: 5 },
      concurrency: 10,
    })
    expect(await worker.events('job.failed')).toMatchObject([{ id: 'bad', attempt: 1, error: 'no such luck' }])
    expect(await worker.events('job.buried')).toMatchObject([{ id: 'bad', queue: 'default', reason: 'no-retries' }])
    worker.kill('SIGTERM')
    await worker.end()
    await runJson('morgue revive default bad', { cwd })
    const human = new CommandProcess('work', { cwd })
    await human.stdoutMatches(/buried default/)
    human.kill('SIGTERM')
    const { code, stdout } = await human.end()
    expect(code).toBe(0)
    expect(stdout).toMatch(/started on sqlite:jobs\.db, queues default:40 slow:5, 10 at once\n/)
    expect(stdout).toMatch(/buried default fail bad, no-retries: no such luck\n/)
    expect(stdout).toMatch(/stopped after .*: 0 done, 1 failed, 1 buried\n$/)
  })

  it('prints that a schedule could not enqueue, as JSON and as text', async () => {
    const schedules = "schedules: { often: { every: '1s', task: echo } },"
    const cwd = project({ ...projectFiles, 'millrace.config.js': configFile.replace('tasks:', `${schedules} tasks:`) })
    await run('queues drain default', { cwd })
    const worker = new CommandProcess('work --json', { cwd })
    expect(await worker.events('schedule.refused')).toMatchObject([
      { schedule: 'often', queue: 'default', reason: 'draining' },
    ])
    worker.kill('SIGTERM')
    await worker.end()
    const human = new CommandProcess('work', { cwd })
    await human.stdoutMatches(/schedule 'often' could not enqueue: its queue is draining; tried again in /)
    human.kill('SIGTERM')
    expect(await human.end()).toMatchObject({ code: 0, stderr: '' })
  })

  it('runs the tasks of a module without a configuration, on the store of the environment', async () => {
    const cwd = project({ 'tasks.ts': tasksFile })
    const env = { MILLRACE_STORE: 'sqlite:elsewhere.db' }
    const worker = new CommandProcess('work tasks.ts --queues slow --json', { cwd, env })
    expect(await worker.events('worker.started')).toMatchObject([
      { store: 'sqlite:elsewhere.db', queues: { slow: 10 } },
    ])
    worker.kill('SIGTERM')
    expect(await worker.end()).toMatchObject({ code: 0, stderr: '' })
  })

  it('runs a module that attaches handlers to the tasks of the configuration', async () => {
    const cwd = project({
      'tasks.ts': `import { defineTask } from 'millrace'\nexport const twice = defineTask({ name: 'twice' })\nexport const other = defineTask({ name: 'other' })`,
      'millrace.config.ts': `import { millrace } from 'millrace'\nimport * as tasks from './tasks.js'\nexport default millrace({ store: 'sqlite:jobs.db', tasks: Object.values(tasks) })`,
      'handlers.ts': `import { twice } from './tasks.js'\ntwice.handle(async (n) => {\n  process.stdout.write('{"event":"test.running"}\\n')\n  return (n as number) * 2\n})`,
    })
    const bare = await runProcess(['work'], { cwd })
    expect(bare).toMatchObject({ code: 2, stdout: '' })
    expect(bare.stderr).toMatch(
      /no task of .*millrace\.config\.ts has a handler: .* or name the module that attaches them/,
    )
    await runProcessJson(['enqueue', 'twice', '21', '--id', 'answer'], { cwd })
    const worker = new CommandProcess('work handlers.ts --json', { cwd })
    await worker.events('test.running')
    worker.kill('SIGTERM')
    const { code, stderr } = await worker.end()
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: 'millrace: warning: other: no handler is attached; jobs of this task are left for other workers.\n',
    })
    expect(await runProcessJson(['jobs', 'show', 'answer'], { cwd })).toMatchObject({ state: 'completed', result: 42 })
  })

  it('ends its process with 1 and the reason if the store is damaged, and retries at growing intervals', async () => {
    const cwd = project({
      'store.mjs': `import { StoreCorruptError } from 'millrace/store'
import { MemoryStore } from ${JSON.stringify(pathToFileURL(join(root, 'dist/stores/memory/memory-store.js')).href)}
class Broken extends MemoryStore {
  async claim() { throw new StoreCorruptError('page 7 is damaged.') }
}
export const open = () => new Broken()`,
      'millrace.config.mjs': `import { defineTask, millrace } from 'millrace'
const store = { module: import.meta.dirname + '/store.mjs', export: 'open' }
export default millrace({ store, tasks: [defineTask({ name: 't', run: async () => 1 })] })`,
    })
    const worker = new CommandProcess('work --json', { cwd })
    const [first, second] = await worker.events('process.relieved', 2)
    expect(first).toMatchObject({ restartMs: 0 })
    expect(second!['restartMs']).toBeGreaterThanOrEqual(125)
    expect(await worker.events('process.exited')).toMatchObject([{ code: 1, signal: null }])
    expect(await worker.events('worker.failed')).toMatchObject([{ error: 'page 7 is damaged.' }])
    worker.kill('SIGTERM')
    expect((await worker.end()).stderr).toMatch(/^(millrace: the worker ended: page 7 is damaged\.\n)+$/)
  })

  it('keeps working if nobody reads its output', async () => {
    const { cwd, worker, release } = await holding()
    worker.child.stdout!.destroy()
    worker.kill('SIGTERM')
    release()
    expect(await worker.end()).toMatchObject({ code: 0, signal: null, stderr: '' })
    expect((await runJson<Stats>('stats', { cwd })).totals).toMatchObject({ processed: 1, running: 0 })
  })

  it('exits with 1 if it cannot open the store, and only one process reports it', async () => {
    const cwd = project({ 'tasks.ts': tasksFile })
    const { code, stdout, stderr } = await runProcess(['work', 'tasks.ts', '--processes', '3', '--json'], {
      cwd,
      env: { MILLRACE_STORE: 'sqlite:tasks.ts/jobs.db' },
    })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^millrace: .*tasks\.ts.*\n$/)
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([{ event: 'process.exited', code: 1 }])
  })
})

describe('millrace work --processes', () => {
  it('forwards the signal; every process lets its jobs finish, and all have ended', async () => {
    const { worker, release } = await holding(['--processes', '2'])
    const started = await worker.events('worker.started', 2)
    expect(started.map(({ pid }) => pid)).not.toContain(worker.pid)
    const [group] = await worker.events('processes.started')
    expect(started.map(({ pid }) => pid).sort()).toEqual([...(group!['pids'] as number[])].sort())
    worker.kill('SIGTERM')
    await worker.events('worker.stopping', 2)
    release()
    expect(await worker.end()).toMatchObject({ code: 0, stderr: '' })
    const stopped = await worker.events('worker.stopped', 2)
    expect(stopped.reduce((sum, { completed }) => sum + (completed as number), 0)).toBe(1)
    for (const { pid } of started) expect(isAlive(pid as number)).toBe(false)
  })

  it('ends all processes at once on a second signal', async () => {
    const { worker } = await holding(['--processes', '2'])
    await worker.events('worker.started', 2)
    worker.kill('SIGTERM')
    await worker.events('worker.stopping', 2)
    worker.kill('SIGTERM')
    // The children hold the output open: it ends when the last of them has.
    expect(await worker.end()).toMatchObject({ code: 143 })
  })

  it('lets processes whose parent was killed finish their jobs and stop', async () => {
    const { cwd, worker, release } = await holding(['--processes', '2'])
    await worker.events('worker.started', 2)
    worker.kill('SIGKILL')
    expect(await worker.events('worker.stopping', 2)).toMatchObject([{ cause: 'disconnect' }, { cause: 'disconnect' }])
    release()
    // The children hold the output open: it ends when the last of them has.
    expect(await worker.end()).toMatchObject({ signal: 'SIGKILL' })
    expect((await runJson<Stats>('stats', { cwd })).totals).toMatchObject({ processed: 1, running: 0 })
  })

  it.each([
    ['npm run', ['run', 'work']],
    ['npx', ['exec', 'work']],
  ])('stops when %s is gone, although it forwards no signal', async (_, args) => {
    const cwd = project({ ...projectFiles, ...scripts })
    const bin = join(cwd, 'node_modules/.bin')
    mkdirSync(bin)
    symlinkSync(join(cwd, 'work.mjs'), join(bin, 'work'))
    chmodSync(join(cwd, 'work.mjs'), 0o755)
    const shell = new CommandProcess([...args, '--silent'], { cwd, script: npmScript })
    await shell.events('processes.started')
    shell.kill('SIGTERM')
    expect(await shell.events('processes.stopping')).toMatchObject([{ cause: 'disconnect' }])
    // The command holds the output open: it ends when that has.
    await shell.end()
  })

  it('goes on after the script that started it in the background has ended', async () => {
    const cwd = project({ ...projectFiles, ...scripts })
    const shell = new CommandProcess('run background --silent', { cwd, script: npmScript })
    const [started] = await shell.events('processes.started')
    if (shell.child.exitCode === null) await once(shell.child, 'exit')
    await run('enqueue echo 1', { cwd })
    await shell.events('test.running')
    process.kill(Number(started!['pid']), 'SIGTERM')
    await shell.end()
  })
})

const main = join(root, 'dist/cli/main.js')
/** Where npm itself is, beside Node. */
const npmScript = join(dirname(dirname(realpathSync(process.execPath))), 'lib/node_modules/npm/bin/npm-cli.js')
const scripts = {
  'package.json': JSON.stringify({
    ...{ name: 'shop', type: 'module' },
    scripts: { work: `node ${main} work --json`, background: `node ${main} work --json &` },
  }),
  'work.mjs': `#!/usr/bin/env node\nprocess.argv.push('work', '--json')\nawait import('${main}')\n`,
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
