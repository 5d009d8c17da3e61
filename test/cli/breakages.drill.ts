/** What goes wrong in the first hour with a project of `millrace init`: each message says what to do. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run } from './command-in-process.js'
import { runProcess } from './command-process.js'
import { project } from './project.js'

const config = 'millrace.config.ts'
const task = 'tasks/send-email.ts'

/** `change`: the text of the file, and what stands there instead. */
type Breakage = readonly [title: string, change: string, message: RegExp]

/** A new project in which one text of a file was replaced. */
async function broken(file: string, text: string | RegExp, by: string): Promise<string> {
  const cwd = project({})
  await run('init', { cwd })
  const before = readFileSync(join(cwd, file), 'utf8')
  const after = before.replace(text, by)
  expect(after).not.toBe(before)
  writeFileSync(join(cwd, file), after)
  return cwd
}

describe('a new project that is broken', () => {
  const inConfig: readonly Breakage[] = [
    [
      'a misspelt option',
      'queues: → queus:',
      /millrace\.config\.ts:9:3 queus: is not an option; .*Probably `queues` is meant/,
    ],
    [
      'a limiter',
      'weight: 10 → limiter: {}',
      /millrace\.config\.ts:9:24 queues\.default\.limiter: .*throttle of the queue/,
    ],
    [
      'concurrency in the wrong place',
      'queues: → concurrency: 5,\n  queues:',
      /:9:3 concurrency: .*is here worker: \{ concurrency \}/,
    ],
    [
      'a number in quotes',
      "weight: 10 → weight: '10'",
      /:9:24 queues\.default\.weight: must be a whole number from 1 to 100; got "10"/,
    ],
    ['a syntax error', '[sendEmail] → [sendEmail', /millrace\.config\.ts:20:1: Unexpected token/],
    [
      'two tasks of one name',
      '[sendEmail] → [sendEmail, { ...sendEmail }]',
      /:10:3 tasks: 'send-email' names two tasks: .*each needs names of its own/,
    ],
    [
      'a wrong store',
      'sqlite:.millrace/jobs.db → mysql://me:secret@host/db',
      /:6:3 store: expected 'memory:', .*got 'mysql:\/\/…@host\/db'/,
    ],
    [
      'no default export',
      'export default → export const mill =',
      /default export: must be a mill, as in `export default millrace\(/,
    ],
    [
      'a wrong path of an import',
      './tasks/send-email.ts → ./tasks/sendemail.ts',
      /loading millrace\.config\.ts: Cannot find module '.*sendemail\.ts'/,
    ],
    ['a store as an address', 'sqlite:.mill → sqlite://.mill', /:6:3 store: 'sqlite:' must be followed by a path/],
    [
      'a file that cannot be written',
      'sqlite:.millrace/jobs.db → sqlite:README.md/jobs.db',
      /the SQLite store '.*README\.md\/jobs\.db' cannot be used: /,
    ],
    [
      'a Redis that does not run',
      'sqlite:.millrace/jobs.db → redis://127.0.0.1:1',
      /the Redis at redis:\/\/127\.0\.0\.1:1 cannot be reached: .*ECONNREFUSED/,
    ],
  ]
  const inTask: readonly Breakage[] = [
    [
      'an option of others',
      "timeLimit: '30s' → attempts: 3",
      /send-email\.ts:10:3 task 'send-email' attempts: .*is here retry: \{ max \}/,
    ],
    ['a schedule of others', "timeLimit: '30s' → repeat: {}", /send-email\.ts:10:3 .*is here schedules of the mill/],
    [
      'a wrong duration',
      "'30s' → '30 seconds'",
      /send-email\.ts:10:3 .*timeLimit: must be a duration such as .*got "30 seconds"/,
    ],
    [
      'a missing export',
      'export const → const',
      /millrace\.config\.ts:10:11 tasks\.0: .*is undefined: is it exported under that name\?/,
    ],
    ['a syntax error in a task', "'30s', → '30s'", /tasks\/send-email\.ts:11:3: Unexpected token, expected ","/],
    [
      'a circle of imports',
      ` → import mill from '../${config}'\nconsole.log(mill.tasks)\n`,
      /in a circle see values that are not set yet/,
    ],
  ]
  it.each([
    ...inConfig.map((breakage) => [...breakage, config] as const),
    ...inTask.map((breakage) => [...breakage, task] as const),
  ])('names the mistake and the remedy for %s', async (_, change, message, file) => {
    const [text = '', by = ''] = change.split(' → ')
    const cwd = await broken(file, text, by)
    const { code, stdout, stderr } = await run('stats', { cwd })
    expect({ stdout, stderr }).toEqual({ stdout: '', stderr: expect.stringMatching(message) })
    expect([1, 2]).toContain(code)
    expect(stderr).toMatch(/^millrace: /)
    expect(stderr).not.toMatch(/dist\/|secret/)
  })

  it.each([
    ['an await that never ends', config, 'await new Promise(() => {})'],
    ['a process.exit', task, 'process.exit(0)'],
  ])(
    'by %s, which ends the process while the configuration loads, gets an error that names the file',
    async (_, file, line) => {
      const cwd = await broken(file, /^/, `${line}\n`)
      const { code, stdout, stderr } = await runProcess(['stats'], { cwd })
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toMatch(
        /^millrace: the process ended while .*millrace\.config\.ts was loaded: .*calls process\.exit\(\) or awaits something that never comes/,
      )
    },
  )

  it.each<[string, string[], RegExp]>([
    [
      'a task that is not there',
      ['enqueue', 'send-emial', '{}'],
      /task 'send-emial' is not declared\. .*declared are: send-email\./,
    ],
    [
      'a queue that is not there',
      ['work', '--queues', 'defualt'],
      /queue 'defualt' is not declared\. .*declared are: default\./,
    ],
    ['invalid JSON', ['enqueue', 'send-email', '{to:1}'], /the input must be JSON, .*'\{to:1\}'/],
    ['a command that is not there', ['wrok'], /unknown command 'wrok' \(Did you mean work\?\)/],
    ['a flag that is not there', ['work', '--concurency', '3'], /Did you mean --concurrency\?/],
  ])('lists what is known when asked for %s', async (_, args, message) => {
    const cwd = project({})
    await run('init', { cwd })
    const { code, stderr } = await runProcess(args, { cwd })
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) })
  })

  it('with a task that has no handler gets an error that says how to attach one', async () => {
    const cwd = await broken(task, /\n {2}async run[\s\S]*/, '\n})\n')
    const { code, stderr } = await runProcess(['work'], { cwd })
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(
        /no task of .* has a handler: give it to them as `run`, or name the module that attaches them/,
      ),
    })
  })

  it('without a configuration gets an error that says how to write one', async () => {
    const { code, stderr } = await runProcess(['work'], { cwd: project({}) })
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/looked for millrace\.config\.ts, .*`millrace init` does/),
    })
  })
})
