import { describe, expect, it } from 'vitest'
import { run, runJson } from '../command-in-process.js'
import { CommandProcess } from '../command-process.js'
import { project, projectFiles } from '../project.js'

interface Enqueued {
  id: string
  queue: string
  task: string
  outcome: string
}
interface Listing {
  queues: { queue: string; jobs: { id: string; state: string; reason?: string }[]; cursor?: string }[]
}

/** Ordered queues, on a store that lasts as long as its process; in it there is a job already where one is enqueued as `twice`. */
const orderedConfig = `
import { defineOrderedTask, millrace } from 'millrace'
import { echo } from './tasks.js'

const sync = defineOrderedTask({ name: 'sync', queue: 'orders' })
const number = defineOrderedTask({ name: 'number', id: (n) => n })
let isFirst = true
const mill = millrace({
  store: 'memory:',
  tasks: [echo, sync, number],
  queues: { unowned: { ordered: true } },
  middleware: [{
    async enqueue(items, next) {
      if (isFirst && items[0].options.id === 'twice') {
        isFirst = false
        await mill.enqueue(sync, 0, { id: 'twice' })
      }
      await next()
    },
  }],
})
export default mill
`

/** Works until so many jobs have begun, then stops: what has begun is finished and settled by then. */
async function work(cwd: string, jobs: number): Promise<void> {
  const worker = new CommandProcess('work --json', { cwd })
  await worker.events('test.running', jobs)
  worker.kill('SIGTERM')
  expect(await worker.end()).toMatchObject({ code: 0, stderr: '' })
}

describe('the commands of millrace', () => {
  it('enqueue, work, stats and jobs show work together', async () => {
    const cwd = project()
    const first = await runJson<Enqueued>(
      'enqueue echo {"n":1} --id one --meta {"by":"test"} --field order=4711 --field by=me',
      { cwd },
    )
    expect(first).toEqual({ id: 'one', queue: 'default', task: 'echo', outcome: 'added' })
    const again = await runJson<Enqueued>('enqueue echo {"n":2} --id one', { cwd })
    expect(again.outcome).toBe('duplicate')
    const before = await runJson<{ queues: object[]; totals: object; workers: object }>('stats', { cwd })
    expect(before.totals).toEqual({
      length: 1,
      ready: 1,
      scheduled: 0,
      waiting: 0,
      running: 0,
      dead: 0,
      fresh: 1,
      retries: 0,
      suspects: 0,
      payloads: 1,
      processed: 0,
      failed: 0,
      crashed: 0,
      expired: 0,
      lagMs: expect.any(Number),
    })
    expect(before.queues).toHaveLength(2)
    expect(before.workers).toEqual({ count: 0, slots: 0, running: 0 })
    await work(cwd, 1)
    const job = await runJson<Record<string, unknown>>('jobs show one', { cwd })
    expect(job).toMatchObject({
      id: 'one',
      state: 'completed',
      attempt: 1,
      input: { n: 1 },
      result: { input: { n: 1 }, meta: { by: 'test' } },
      fields: { order: 4711, by: 'me' },
    })
    expect(Date.parse(job['finishedAt'] as string)).toBeGreaterThanOrEqual(Date.parse(job['createdAt'] as string))
  })

  it('input can also come from a file or from standard input', async () => {
    const cwd = project({ ...projectFiles, 'input.json': '["from","file"]' })
    const one = await runJson<Enqueued>('enqueue echo @input.json', { cwd })
    const two = await runJson<Enqueued>('enqueue echo - --id two', { cwd, input: '[\n"from stdin"\n]' })
    const inputs = await Promise.all(
      [one, two].map(async ({ id }) => (await runJson<{ input: unknown }>(['jobs', 'show', id], { cwd })).input),
    )
    expect(inputs).toEqual([['from', 'file'], ['from stdin']])
  })

  it('--queue enqueues a task that nobody declared, and keeps every option', async () => {
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
    expect(await runJson(['jobs', 'show', 'slow', id], { cwd })).toMatchObject({
      task: 'elsewhere',
      queue: 'slow',
      state: 'scheduled',
      priority: -5,
      runAt: '2031-01-02T03:04:05.000Z',
    })
  })

  it('a payload of an ordered task is enqueued under an id, with a score', async () => {
    const cwd = project({ ...projectFiles, 'millrace.config.js': orderedConfig })
    const ordered = (args: readonly string[]) => runJson<Enqueued>(['enqueue', ...args], { cwd })
    const added = { queue: 'orders', outcome: 'added' }

    expect(await ordered(['sync', '{"rev":1}', '--id', '42', '--score', '-0.5'])).toEqual({
      ...added,
      id: '42',
      task: 'sync',
    })
    expect(await ordered(['number', '7'])).toEqual({ ...added, id: '7', queue: 'number', task: 'number' })
    expect(await ordered(['elsewhere', '1', '--queue', 'unowned', '--id', 'a', '--score', '1'])).toEqual({
      ...added,
      id: 'a',
      queue: 'unowned',
      task: 'elsewhere',
    })
    const { stdout } = await run('enqueue sync 1 --id twice', { cwd })
    expect(stdout).toBe('merged into twice in orders, which waits or runs\n')
  })

  it('options that do not suit the kind of task are refused with the reason', async () => {
    const cwd = project({ ...projectFiles, 'millrace.config.js': orderedConfig })
    const refusal = async (...args: string[]) => {
      const { code, stdout, stderr } = await run(['enqueue', ...args], { cwd })
      expect([code === 0, stdout]).toEqual([false, ''])
      return `${code} ${stderr}`
    }
    const noId = (queue: string) =>
      `2 millrace: queue '${queue}' is ordered: say with --id to which id the payload belongs.`

    expect(await refusal('sync', '1')).toContain(noId('orders'))
    expect(await refusal('elsewhere', '1', '--queue', 'unowned')).toContain(noId('unowned'))
    expect(await refusal('elsewhere', '1', '--queue', 'orders', '--id', 'a')).toContain("belongs to the task 'sync'")
    expect(await refusal('sync', '1', '--id', 'a', '--priority', '3')).toContain(
      "'priority' is not an option of enqueue for",
    )
    expect(await refusal('sync', '1', '--id', 'a', '--score', 'high')).toContain('Expected a finite number, such as 12')
    expect(await refusal('echo', '1', '--score', '3')).toContain("'score' is not an option of enqueue; known are id")
  })

  it('a dead job is listed in the morgue, revived by id and deleted', async () => {
    const cwd = project()
    for (const id of ['a', 'b']) await runJson(['enqueue', 'fail', '"no such luck"', '--id', id], { cwd })
    await work(cwd, 2)
    const morgue = await runJson<Listing>('morgue list default --by id', { cwd })
    expect(morgue.queues[0]!.jobs).toMatchObject([
      { id: 'a', state: 'dead', reason: 'no-retries' },
      { id: 'b', state: 'dead' },
    ])
    expect(await runJson('morgue revive default a', { cwd })).toEqual({ queue: 'default', revived: 1 })
    expect(await runJson('morgue delete default --all', { cwd })).toEqual({ queue: 'default', deleted: 1 })
    const left = await runJson<Listing>('jobs list', { cwd })
    expect(left.queues.flatMap(({ jobs }) => jobs)).toMatchObject([{ id: 'a', state: 'ready' }])
    const missing = await run('morgue revive default b', { cwd })
    expect(missing).toMatchObject({
      code: 1,
      stderr:
        "millrace: 1 of 1 job was left as it is, because it is not in the morgue of queue 'default': 'b' is not there.\n",
    })
  })

  it('a drained queue refuses new jobs and ends when its jobs have ended; if it is paused as well, it says why it does not end', async () => {
    const cwd = project()
    await runJson('enqueue echo 1 --id a', { cwd })
    await run('queues pause default', { cwd })
    const drain = new CommandProcess('queues drain default', { cwd })
    await drain.stderrMatches(
      /^millrace: queue 'default' is paused: .*run `millrace queues resume default`, then drain/,
    )
    await drain.stdoutMatches(/^default: refuses new jobs; 1 job waiting, 0 running\.\n/)
    expect(await run('enqueue echo 2', { cwd })).toMatchObject({ code: 1, stdout: '' })
    drain.kill('SIGTERM')
    expect(await drain.end()).toMatchObject({ signal: 'SIGTERM' })

    await run('queues resume default', { cwd })
    const again = new CommandProcess('queues drain default', { cwd })
    await again.stdoutMatches(/refuses new jobs; 1 job waiting/)
    await work(cwd, 1)
    expect(await again.end()).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/default: drained\. /),
    })
    expect((await run('queues list', { cwd })).stdout).toMatch(/^default .* draining$/m)
  })

  it('fields of a job can be set, shown in records and lists, and removed', async () => {
    const cwd = project(projectFiles)
    await runJson('enqueue echo 1 --id one', { cwd })
    const set = await runJson('jobs fields default one node=eu-3 cost=0.25 note=a=b', { cwd })
    expect(set).toEqual({ queue: 'default', id: 'one', fields: { node: 'eu-3', cost: 0.25, note: 'a=b' } })
    expect((await run('jobs list default', { cwd })).stdout).toContain('node=eu-3 · cost=0.25 · note=a=b')
    await runJson('jobs fields default one node=null cost=null', { cwd })
    expect(await runJson('jobs show one', { cwd })).toMatchObject({ fields: { note: 'a=b' } })
    expect((await run('jobs fields default one', { cwd })).stdout).toMatch(/has 1 field\.\n {2}note {2}a=b/)
    expect((await run('jobs fields default two a=1', { cwd })).code).toBe(1)
    expect((await run('jobs fields default one a', { cwd })).code).toBe(2)
  })

  it('a list of the jobs of one task skips the pages that have none', async () => {
    const cwd = project()
    for (const [task, id] of ['echo 1', 'echo 2', 'fail 3', 'echo 4', 'fail 5'].map((job) => job.split(' ')))
      await runJson(['enqueue', task!, '"x"', '--id', id!], { cwd })
    const list = (...more: string[]) => runJson<Listing>(['jobs', 'list', 'default', '--by', 'id', ...more], { cwd })
    const { jobs, cursor } = (await list('--task', 'fail', '--limit', '2')).queues[0]!
    expect(jobs.map(({ id }) => id)).toEqual(['3'])
    const next = await list('--task', 'fail', '--limit', '2', '--cursor', cursor!)
    expect(next.queues[0]!.jobs.map(({ id }) => id)).toEqual(['5'])
    expect((await list('--task', 'nobodys', '--limit', '2')).queues).toEqual([{ queue: 'default', jobs: [] }])
    await runJson('jobs bury default --all', { cwd })
    const dead = await runJson<Listing>('morgue list --task fail --by id', { cwd })
    expect(dead.queues[0]!.jobs.map(({ id }) => id)).toEqual(['3', '5'])
    await runJson('morgue revive default --all', { cwd })
    const { stdout } = await run('jobs list default --task fail --envelope', { cwd })
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).id)
        .sort(),
    ).toEqual(['3', '5'])
  })

  it('a count has the jobs of each queue that a filter chooses, whatever their number and state', async () => {
    const cwd = project()
    for (const id of ['a', 'b', 'c']) await runJson(['enqueue', 'echo', '1', '--id', id], { cwd })
    await runJson(['enqueue', 'fail', '1', '--id', 'd', '--queue', 'slow'], { cwd })
    await runJson('jobs fields default b order=4711', { cwd })
    await runJson('jobs bury default c', { cwd })
    const of = async (words: string) => {
      const { queues } = await runJson<{ queues: { queue: string; count: number }[] }>(`jobs count ${words}`, { cwd })
      return Object.fromEntries(queues.map(({ queue, count }) => [queue, count]))
    }

    expect(await of('--task echo')).toMatchObject({ default: 3, slow: 0 })
    expect(await of('--task fail')).toMatchObject({ default: 0, slow: 1 })
    expect(await of('default --task echo --state ready')).toEqual({ default: 2 })
    expect(await of('default --field order=4711')).toEqual({ default: 1 })
    expect((await run('jobs count default --state dead', { cwd })).stdout).toBe('default: 1 job.\n')
  })

  it('a list continues at its cursor', async () => {
    const cwd = project()
    for (const id of ['a', 'b', 'c']) await runJson(['enqueue', 'echo', '1', '--id', id], { cwd })
    const list = ['jobs', 'list', 'default', '--by', 'id', '--limit', '2']
    const first = (await runJson<Listing>(list, { cwd })).queues[0]!
    const second = (await runJson<Listing>([...list, '--cursor', first.cursor!], { cwd })).queues[0]!
    expect([first, second].map(({ jobs }) => jobs.map(({ id }) => id))).toEqual([['a', 'b'], ['c']])
    expect(second.cursor).toBeUndefined()
    expect(await run('jobs list default --cursor !', { cwd })).toMatchObject({ code: 2, stdout: '' })
  })

  it('a missing job is exit code 1, and so is a store that cannot be opened', async () => {
    const cwd = project()
    const missing = await run('jobs show nobody', { cwd })
    expect(missing).toMatchObject({ code: 1, stdout: '' })
    expect(missing.stderr).toMatch(/^millrace: 'nobody' is neither a declared queue nor a job that one of them keeps/)
    const unavailable = await run('stats', { cwd, env: { MILLRACE_STORE: 'sqlite:tasks.js/jobs.db' } })
    expect(unavailable).toMatchObject({ code: 1, stdout: '' })
    expect(unavailable.stderr).toMatch(/^millrace: .*tasks\.js/)
  })

  it('job data cannot control the terminal, and NO_COLOR or a pipe gives plain text', async () => {
    const cwd = project()
    await runJson(['enqueue', 'echo', '"\\u001b[2J\\u009b31m"', '--id', 'evil\u001b[31m\u202e\n'], { cwd })
    const outputs = await Promise.all([
      run('jobs list', { cwd }),
      run(['jobs', 'show', 'evil\u001b[31m\u202e\n'], { cwd }),
      run('jobs list --json', { cwd }),
      run(['jobs', 'show', 'other\u001b[31m'], { cwd }),
    ])
    for (const { stdout, stderr } of outputs) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
      expect(stdout + stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    }
    expect(outputs[0]!.stdout).toContain('evil\\u001b[31m\\u202e\\n')
  })

  it('stats --watch prints a document a second and exits with 0 when interrupted', async () => {
    const cwd = project()
    const watch = new CommandProcess('stats --watch --json', { cwd })
    const lines: string[] = []
    watch.child.stdout!.on('data', (text: Buffer) => {
      lines.push(...text.toString().trim().split('\n'))
      if (lines.length >= 2) watch.kill('SIGINT')
    })
    expect(await watch.end()).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(lines[1]!)).toMatchObject({ store: 'sqlite:jobs.db', totals: { ready: 0 } })
  })

  it('a reader that closes the pipe causes no error', async () => {
    const cwd = project()
    const watch = new CommandProcess('stats --watch', { cwd })
    watch.child.stdout!.once('data', () => watch.child.stdout!.destroy())
    expect(await watch.end()).toMatchObject({ code: 0, stderr: '' })
  })

  it('help shows examples and the exit codes, version the version', async () => {
    const cwd = project({})
    const help = await run('--help', { cwd })
    expect(help).toMatchObject({ code: 0, stderr: '' })
    expect(help.stdout).toMatch(/Examples:[\s\S]*Exit codes:\n {2}0 {4}done\n {2}1 .*\n {2}2 /)
    for (const command of [
      ['work'],
      ['enqueue'],
      ['stats'],
      ['jobs', 'list'],
      ['jobs', 'show'],
      ...['cancel', 'delete', 'run-now', 'bury', 'fail'].map((verb) => ['jobs', verb]),
      ['morgue', 'list'],
      ['morgue', 'show'],
      ['morgue', 'revive'],
      ['morgue', 'delete'],
      ...['list', 'pause', 'resume', 'drain', 'clear', 'reshard', 'move'].map((verb) => ['queues', verb]),
      ['doctor'],
      ['fsck'],
    ])
      expect((await run([...command, '--help'], { cwd })).stdout, command.join(' ')).toMatch(/Examples?:\n {2}\$/)
    expect((await run('--version', { cwd })).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})
