import { describe, expect, it } from 'vitest'
import { CommandProcess, run, runJson } from './command-process.js'
import { project, projectFiles } from './project.js'

interface Enqueued {
  id: string
  queue: string
  task: string
  outcome: string
}
interface Listing {
  queues: { queue: string; jobs: { id: string; state: string; reason?: string }[]; cursor?: string }[]
}

/** Works until so many jobs have begun, then stops: what has begun is finished and settled by then. */
async function work(cwd: string, jobs: number): Promise<void> {
  const worker = new CommandProcess(['work', '--json'], { cwd })
  await worker.events('test.running', jobs)
  worker.kill('SIGTERM')
  expect(await worker.end()).toMatchObject({ code: 0, stderr: '' })
}

describe('the commands of millrace', () => {
  it('enqueue, work, stats and jobs show tell one story', async () => {
    const cwd = project()
    const first = await runJson<Enqueued>(['enqueue', 'echo', '{"n":1}', '--id', 'one', '--meta', '{"by":"test"}'], {
      cwd,
    })
    expect(first).toEqual({ id: 'one', queue: 'default', task: 'echo', outcome: 'added' })
    const again = await runJson<Enqueued>(['enqueue', 'echo', '{"n":2}', '--id', 'one'], { cwd })
    expect(again.outcome).toBe('duplicate')
    const before = await runJson<{ queues: object[]; totals: object; workers: object }>(['stats'], { cwd })
    expect(before.totals).toEqual({
      ready: 1,
      scheduled: 0,
      running: 0,
      dead: 0,
      fresh: 1,
      retries: 0,
      processed: 0,
      failed: 0,
      crashed: 0,
    })
    expect(before.queues).toHaveLength(2)
    expect(before.workers).toEqual({ count: 0, slots: 0, running: 0 })
    await work(cwd, 1)
    const job = await runJson<Record<string, unknown>>(['jobs', 'show', 'one'], { cwd })
    expect(job).toMatchObject({
      id: 'one',
      state: 'completed',
      attempt: 1,
      input: { n: 1 },
      result: { input: { n: 1 }, meta: { by: 'test' } },
    })
    expect(Date.parse(job['finishedAt'] as string)).toBeGreaterThanOrEqual(Date.parse(job['createdAt'] as string))
  })

  it('input comes from a file or from standard input as well', async () => {
    const cwd = project({ ...projectFiles, 'input.json': '["from","file"]' })
    const one = await runJson<Enqueued>(['enqueue', 'echo', '@input.json'], { cwd })
    const two = await runJson<Enqueued>(['enqueue', 'echo', '-'], { cwd, input: '"from stdin"' })
    const inputs = await Promise.all(
      [one, two].map(async ({ id }) => (await runJson<{ input: unknown }>(['jobs', 'show', id], { cwd })).input),
    )
    expect(inputs).toEqual([['from', 'file'], 'from stdin'])
  })

  it('with --queue a task that nobody declared can be enqueued, with every option kept', async () => {
    const cwd = project()
    const args = [
      'enqueue',
      'elsewhere',
      'null',
      '--queue',
      'slow',
      '--priority',
      '-5',
      '--run-at',
      '2031-01-02T03:04:05Z',
    ]
    const { id } = await runJson<Enqueued>(args, { cwd })
    expect(await runJson(['jobs', 'show', id, '--queue', 'slow'], { cwd })).toMatchObject({
      task: 'elsewhere',
      queue: 'slow',
      state: 'scheduled',
      priority: -5,
      runAt: '2031-01-02T03:04:05.000Z',
    })
  })

  it('a dead job is listed in the morgue, revived by id and deleted', async () => {
    const cwd = project()
    for (const id of ['a', 'b']) await runJson(['enqueue', 'fail', '"no such luck"', '--id', id], { cwd })
    await work(cwd, 2)
    const morgue = await runJson<Listing>(['morgue', 'list', 'default', '--by', 'id'], { cwd })
    expect(morgue.queues[0]!.jobs).toMatchObject([
      { id: 'a', state: 'dead', reason: 'no-retries' },
      { id: 'b', state: 'dead' },
    ])
    expect(await runJson(['morgue', 'revive', 'default', 'a'], { cwd })).toEqual({ queue: 'default', revived: 1 })
    expect(await runJson(['morgue', 'delete', 'default', '--all'], { cwd })).toEqual({ queue: 'default', deleted: 1 })
    const left = await runJson<Listing>(['jobs', 'list'], { cwd })
    expect(left.queues.flatMap(({ jobs }) => jobs)).toMatchObject([{ id: 'a', state: 'ready' }])
    const missing = await run(['morgue', 'revive', 'default', 'b'], { cwd })
    expect(missing).toMatchObject({ code: 1, stderr: "millrace: 1 of 1 job are not in the morgue of 'default'.\n" })
  })

  it('a listing goes on where its cursor says', async () => {
    const cwd = project()
    for (const id of ['a', 'b', 'c']) await runJson(['enqueue', 'echo', '1', '--id', id], { cwd })
    const list = ['jobs', 'list', 'default', '--by', 'id', '--limit', '2']
    const first = (await runJson<Listing>(list, { cwd })).queues[0]!
    const second = (await runJson<Listing>([...list, '--cursor', first.cursor!], { cwd })).queues[0]!
    expect([first, second].map(({ jobs }) => jobs.map(({ id }) => id))).toEqual([['a', 'b'], ['c']])
    expect(second.cursor).toBeUndefined()
    expect(await run(['jobs', 'list', 'default', '--cursor', '!'], { cwd })).toMatchObject({ code: 2, stdout: '' })
  })

  it('a job that is not there is exit code 1, and so is a store that cannot be opened', async () => {
    const cwd = project()
    const missing = await run(['jobs', 'show', 'nobody'], { cwd })
    expect(missing).toMatchObject({ code: 1, stdout: '' })
    expect(missing.stderr).toMatch(/^millrace: nothing is kept of a job 'nobody' in any of the queues default, slow/)
    const unavailable = await run(['stats'], { cwd, env: { MILLRACE_STORE: 'sqlite:tasks.ts/jobs.db' } })
    expect(unavailable).toMatchObject({ code: 1, stdout: '' })
    expect(unavailable.stderr).toMatch(/^millrace: .*tasks\.ts/)
  })

  it('what a job carries cannot command the terminal, and NO_COLOR or a pipe gives plain text', async () => {
    const cwd = project()
    await runJson(['enqueue', 'echo', '"\\u001b[2J\\u009b31m"', '--id', 'evil\u001b[31m\u202e\n'], { cwd })
    const outputs = await Promise.all([
      run(['jobs', 'list'], { cwd }),
      run(['jobs', 'show', 'evil\u001b[31m\u202e\n'], { cwd }),
      run(['jobs', 'list', '--json'], { cwd }),
      run(['jobs', 'show', 'other\u001b[31m'], { cwd }),
    ])
    for (const { stdout, stderr } of outputs) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
      expect(stdout + stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    }
    expect(outputs[0]!.stdout).toContain('evil\\u001b[31m\\u202e\\n')
  })

  it('stats --watch prints a document a second and ends well when interrupted', async () => {
    const cwd = project()
    const watch = new CommandProcess(['stats', '--watch', '--json'], { cwd })
    const lines: string[] = []
    watch.child.stdout!.on('data', (text: Buffer) => {
      lines.push(...text.toString().trim().split('\n'))
      if (lines.length >= 2) watch.kill('SIGINT')
    })
    expect(await watch.end()).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(lines[1]!)).toMatchObject({ store: 'sqlite:jobs.db', totals: { ready: 0 } })
  })

  it('a reader that goes away is no error', async () => {
    const cwd = project()
    const watch = new CommandProcess(['stats', '--watch'], { cwd })
    watch.child.stdout!.once('data', () => watch.child.stdout!.destroy())
    expect(await watch.end()).toMatchObject({ code: 0, stderr: '' })
  })

  it('help shows examples and the exit codes, version the version', async () => {
    const cwd = project({})
    const help = await run(['--help'], { cwd })
    expect(help).toMatchObject({ code: 0, stderr: '' })
    expect(help.stdout).toMatch(/Examples:[\s\S]*Exit codes:\n {2}0 {4}done\n {2}1 .*\n {2}2 /)
    for (const command of [
      ['work'],
      ['enqueue'],
      ['stats'],
      ['jobs', 'list'],
      ['jobs', 'show'],
      ['morgue', 'list'],
      ['morgue', 'revive'],
      ['morgue', 'delete'],
      ['doctor'],
      ['fsck'],
    ])
      expect((await run([...command, '--help'], { cwd })).stdout, command.join(' ')).toMatch(/Examples?:\n {2}\$/)
    expect((await run(['--version'], { cwd })).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})
