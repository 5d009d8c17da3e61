/** How a command names a job: by its queue and id, by both in one word, or by its id alone. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { JobRecord } from 'millrace'
import picocolors from 'picocolors'
import { describe, expect, it } from 'vitest'
import { pageLines } from '#src/cli/commands/jobs/job-list.js'
import { createProgram } from '#src/cli/program.js'
import type { Terminal } from '#src/cli/terminal/terminal.js'
import { run, runJson } from '../command-in-process.js'
import { project } from '../project.js'

/** Jobs that wait, as `slow/a`. */
async function waiting(...jobs: readonly string[]): Promise<{ readonly cwd: string }> {
  const cwd = project()
  for (const job of jobs) {
    const [queue, ...id] = job.split('/')
    const where = ['--queue', queue!, '--id', id.join('/'), '--delay', '1h']
    await runJson(['enqueue', 'echo', '1', ...where], { cwd })
  }
  return { cwd }
}

const program = await createProgram()

/** Every command below `jobs` and `morgue` that takes jobs: all but the lists and the count. */
const jobCommands = program.commands
  .filter((noun) => ['jobs', 'morgue'].includes(noun.name()))
  .flatMap((noun) => noun.commands.map((command) => [noun.name(), command.name()] as const))
  .filter(([, verb]) => verb !== 'list' && verb !== 'count')

const leaves = (command: Command): readonly Command[] =>
  command.commands.length > 0 ? command.commands.flatMap(leaves) : [command]

/** What a command leaves of the project: its own output, and the state of both jobs. */
async function outcomeOf([noun, verb]: readonly [string, string], words: readonly string[]): Promise<object> {
  const { cwd } = await waiting('default/a', 'slow/b')
  if (noun === 'morgue') await runJson('jobs bury slow --all', { cwd })
  const given = { fields: ['node=eu-3'], signal: ['approved'], 'forget-step': ['charge'] }
  const more = { ...given, reschedule: ['--priority', '3'] }[verb] ?? []
  const { code, stdout, stderr } = await run([noun, verb, ...words, ...more, '--json'], { cwd })
  // The job that is enqueued again has an id of its own.
  const own = verb === 'enqueue-again' ? (text: string) => text.replace(/[0-9A-Z]{26}/, 'new') : (text: string) => text
  const shown = own(stdout.replaceAll(/"(\w+At|until)":"[^"]+"/g, '"$1":0'))
  const left = await runJson<{ queues: { jobs: { id: string; state: string }[] }[] }>('jobs list', { cwd })
  const jobs = left.queues.map((queue) => queue.jobs.map(({ id, state }) => own(`${id} ${state}`)).sort())
  return { code, shown, stderr, left: jobs }
}

describe('a command that takes a job', () => {
  it('takes it as [queue] <id>: every such command', () => {
    const takesId = leaves(program).filter(
      (command) =>
        command.registeredArguments.some((argument) => /^ids?$/.test(argument.name())) &&
        command.parent?.name() !== 'workers',
    )

    expect(takesId.map((command) => [command.parent!.name(), command.name()])).toEqual(jobCommands)
    for (const command of takesId) expect(command.usage()).toMatch(/^\[options\] \[queue\] <id(?:\.\.\.)?>/)
  })

  it.each(jobCommands)(
    'finds the same job by queue and id, by both in one word and by the id: %s %s',
    async (...path) => {
      const named = await outcomeOf(path, ['slow', 'b'])

      expect(named).toMatchObject({
        shown: expect.stringMatching(['fail', 'signal', 'forget-step'].includes(path[1]) ? /^$/ : /slow/),
      })
      expect(await outcomeOf(path, ['slow/b'])).toEqual(named)
      expect(await outcomeOf(path, ['b'])).toEqual(named)
    },
  )

  it.each(jobCommands)('refuses a queue without an id, and an undeclared queue: %s %s', async (...path) => {
    const { cwd } = await waiting('slow/b')

    expect(await run([...path, 'slow'], { cwd })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/ids? |which/),
    })
    expect(await run([...path, 'films', 'b'], { cwd })).toMatchObject({
      code: expect.toSatisfy((code) => code !== 0),
      stderr: expect.stringContaining("'films'"),
    })
  })
})

describe('a job that is named on the command line', () => {
  it.each(['b', 'slow/b'])('is found while it waits by %s in every command', async (word) => {
    const place = await waiting('default/a', 'slow/b')
    expect(await runJson(['jobs', 'show', word], place)).toMatchObject({ queue: 'slow', id: 'b' })
    expect(await runJson(['jobs', 'run-now', word], place)).toEqual({ queue: 'slow', dueNow: 1 })
    const fields = { node: 'eu-3' }
    expect(await runJson(['jobs', 'fields', word, 'node=eu-3'], place)).toEqual({ queue: 'slow', id: 'b', fields })
    expect(await runJson(['jobs', 'fields', word], place)).toEqual({ queue: 'slow', id: 'b', fields })
    expect(await run(['jobs', 'fail', word], place)).toMatchObject({
      code: 1,
      stderr: "millrace: job 'b' does not run in queue 'slow'; nothing was changed.\n",
    })
    expect(await runJson(['jobs', 'bury', word], place)).toEqual({ queue: 'slow', buried: 1 })
    expect(await runJson(['morgue', 'show', word], place)).toMatchObject({ queue: 'slow', id: 'b', state: 'dead' })
    expect(await runJson(['morgue', 'revive', word], place)).toEqual({ queue: 'slow', revived: 1 })
    expect(await runJson(['jobs', 'cancel', word], place)).toEqual({ queue: 'slow', cancelled: 1 })
    expect(await runJson('jobs show a', place)).toMatchObject({ state: 'scheduled' })
  })

  it('is found by an id with a slash first, and only then as an id in the queue before the slash', async () => {
    const place = await waiting('default/slow/b', 'slow/b')
    expect(await runJson('jobs show slow/b', place)).toMatchObject({ queue: 'default', id: 'slow/b' })
    expect(await runJson('jobs delete slow/b', place)).toEqual({ queue: 'default', deleted: 1 })
    expect(await runJson('jobs delete slow/b', place)).toEqual({ queue: 'slow', deleted: 1 })
  })

  it('is not guessed if several queues have its id', async () => {
    const place = await waiting('default/a', 'slow/a')
    expect(await run('jobs cancel a', place)).toMatchObject({
      code: 2,
      stderr: "millrace: job 'a' is in the queues default, slow: name the one that is meant before the id.\n",
    })
    expect(await runJson('jobs cancel slow/a', place)).toEqual({ queue: 'slow', cancelled: 1 })
    expect(await runJson('jobs show default/a', place)).toMatchObject({ queue: 'default', state: 'scheduled' })
  })

  it('is found in the morgue, even if another queue has a waiting job with the same id', async () => {
    const place = await waiting('default/a', 'slow/a')
    expect(await runJson('jobs bury slow a', place)).toEqual({ queue: 'slow', buried: 1 })
    expect(await runJson('morgue show a', place)).toMatchObject({ queue: 'slow', state: 'dead' })
    expect(await runJson('morgue revive a', place)).toEqual({ queue: 'slow', revived: 1 })
  })

  it('must be the only one if the command takes one', async () => {
    const place = await waiting('slow/a', 'slow/b')
    expect(await run('jobs show slow a b', place)).toMatchObject({
      code: 2,
      stderr: "millrace: one job is expected, as [queue] <id>; 'b' is too much.\n",
    })
  })

  it('has the place of its queue before it in the list of commands too', async () => {
    expect((await run('jobs --help', await waiting())).stdout).toContain('\n  cancel [queue] <id...> ')
    expect((await run('morgue --help', await waiting())).stdout).toContain('\n  revive [queue] <id...> ')
  })

  it('needs its queue before it if it is not the only one', async () => {
    const place = await waiting('slow/a', 'slow/b')
    for (const words of ['a b', 'slow/a b'])
      expect(await run(`jobs cancel ${words}`, place)).toMatchObject({
        code: 2,
        stderr: `millrace: '${words.split(' ')[0]}' is a job, not a queue. To name several jobs put their queue before the ids: slow a b …\n`,
      })
    expect(await run('jobs show a b', place)).toMatchObject({
      code: 2,
      stderr: "millrace: one job is expected, as [queue] <id>; 'b' is too much.\n",
    })
    expect((await run('jobs cancel nope b', place)).stderr).toMatch(/^millrace: queue 'nope' is not declared/)
  })

  it('is reported as neither a job nor a queue if it is missing', async () => {
    expect(await run('jobs delete film-b', await waiting())).toMatchObject({
      code: 1,
      stderr:
        "millrace: 'film-b' is neither a declared queue nor a job that one of them keeps: it ended without a kept result, or never existed; declared are: default, slow.\n",
    })
  })
})

const at = new Date(0)
const record = { id: 'a', task: 'encode', queue: 'video', input: null, priority: 0, crashes: 0, suspect: false }
const dead = { ...record, state: 'dead', attempt: 4, reason: 'max-retries', createdAt: at, updatedAt: at, runAt: at }

function shown(job: object, limits: { readonly columns?: number } = { columns: 200 }): string {
  const terminal = { colors: picocolors.createColors(false), ...limits } as Terminal
  return pageLines([{ queue: 'video', jobs: [job as unknown as JobRecord] }], terminal).join('\n')
}

describe('the table of jobs', () => {
  it('shortens no id if no terminal limits the line, so that ids can be copied', () => {
    const id = `confirm-${'7'.repeat(200)}`

    expect(shown({ ...dead, id }, {})).toContain(id)
    expect(shown({ ...dead, id })).not.toContain(id)
  })

  it('counts how long a ready job waits from when it could begin', () => {
    const [due, able] = [new Date(Date.now() - 7_200_000), new Date(Date.now() - 60_000)]
    const ready = { ...dead, state: 'ready', attempt: 1, reason: undefined, runAt: due }
    expect(shown(ready)).toContain('waits 2h')
    expect(shown({ ...ready, waitedUntil: able })).toMatch(/waits 1m\b/)
  })

  it('begins the note on a failed command with its last output', () => {
    const error =
      'ProcessDiedError: the command exited with code 3. The last that it printed:\nreading\nno such file\n    at x (y.js:1:1)'
    expect(shown({ ...dead, error })).toContain('max-retries · no such file (the command exited with code 3)')
    expect(shown({ ...dead, error: 'Error: first\n    at x' })).toContain('max-retries · Error: first')
  })

  it('jobs are listed, and cancelled, by group, task, field and text', async () => {
    const { cwd } = await waiting('default/a', 'default/b')
    await runJson('jobs fields default a node=eu-3', { cwd })
    const listed = await runJson<{ queues: { jobs: { id: string }[] }[] }>(
      'jobs list default --field node=eu-3 --task echo --from 2020-01-01T00:00:00Z',
      { cwd },
    )
    expect(listed.queues[0]!.jobs.map(({ id }) => id)).toEqual(['a'])
    const found = await runJson<{ queues: { queue: string; jobs: { id: string }[] }[] }>('jobs list --text EU-3', {
      cwd,
    })
    expect(found.queues.map(({ queue, jobs }) => [queue, jobs.length])).toEqual([
      ['default', 1],
      ['slow', 0],
    ])
    expect(await runJson('jobs cancel default --text nobody', { cwd })).toEqual({ queue: 'default', cancelled: 0 })
    expect(await runJson('jobs cancel default --group nobody', { cwd })).toEqual({ queue: 'default', cancelled: 0 })
    expect(await runJson('jobs cancel default --field node=eu-3', { cwd })).toEqual({ queue: 'default', cancelled: 1 })
    expect(await run('jobs cancel default --from yesterday', { cwd })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/from must be a valid Date or ISO-8601 text/),
    })
  })

  it('an action on the jobs of a task takes those under its aliases too, as their count has them', async () => {
    const tasks = (code: string) => ({
      'package.json': '{"type":"module"}',
      'millrace.config.js': `import { defineTask, millrace } from 'millrace'
export default millrace({ store: 'sqlite:jobs.db', tasks: [defineTask(${code})] })`,
    })
    const files = tasks("{ name: 'send-mail' }")
    const cwd = project(files)
    for (const id of ['a', 'b']) await runJson(['enqueue', 'send-mail', '1', '--id', id], { cwd })
    writeFileSync(
      join(cwd, 'millrace.config.js'),
      tasks("{ name: 'send-email', aliases: ['send-mail'] }")['millrace.config.js'],
    )
    await runJson('enqueue send-email 1 --id c', { cwd })
    await runJson('jobs bury default b', { cwd })

    expect(await runJson('jobs count default --task send-email --state ready', { cwd })).toEqual({
      queues: [{ queue: 'default', count: 2 }],
    })
    expect(await runJson('jobs cancel default --task send-email --yes', { cwd })).toEqual({
      ...{ queue: 'default', cancelled: 2 },
    })
    expect(await runJson('morgue revive default --task send-email', { cwd })).toEqual({ queue: 'default', revived: 1 })
    expect(await run('jobs cancel default --task "send email"', { cwd })).toMatchObject({ code: 2 })
  })
})
