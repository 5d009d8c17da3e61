/** Every command with `--json` whose reader is slower than the command: what it gets is whole. */

import type { ChildProcess } from 'node:child_process'
import type { Command } from 'commander'
import { beforeAll, expect, it } from 'vitest'
import { createProgram } from '#src/cli/program.js'
import { run } from '../command-in-process.js'
import { project, projectFiles } from '../project.js'
import { readSlowly } from './slow-reader.js'

const config = `
import { millrace } from 'millrace'
import { echo, fail } from './tasks.js'

export default millrace({
  store: 'sqlite:jobs.db',
  queues: { default: {}, spare: {}, fast: { throttle: { limit: 5, window: '1s' } }, shut: {} },
  tasks: [echo, fail],
  schedules: { nightly: { cron: '0 2 * * *', task: echo, input: null } },
})
`

const stopped = (child: ChildProcess) => child.kill('SIGTERM')

/** The rest of the command line of each. */
const rests: Readonly<Record<string, readonly string[]>> = {
  work: [],
  exec: ['spare', '--', 'true'],
  enqueue: ['echo', '1'],
  stats: [],
  'jobs list': [],
  'jobs show': ['known'],
  'jobs cancel': ['default', 'known'],
  'jobs delete': ['default', 'known'],
  'jobs run-now': ['default', 'known'],
  'jobs bury': ['default', 'known'],
  'jobs fail': ['default', 'known'],
  'jobs fields': ['default', 'known'],
  'morgue list': [],
  'morgue show': ['default', 'dead'],
  'morgue revive': ['default', 'dead'],
  'morgue delete': ['default', 'dead'],
  'queues list': [],
  'queues pause': ['default'],
  'queues resume': ['default'],
  'queues drain': ['spare'],
  'queues clear': ['shut', '--yes'],
  'queues create': [],
  'queues release': ['fast'],
  'queues throttle': ['fast'],
  'queues limits': ['fast'],
  'queues reshard': ['default', '4'],
  'queues move': ['spare', 'shut'],
  'schedules list': [],
  'schedules show': ['nightly'],
  'schedules next': ['nightly'],
  'schedules run': ['nightly'],
  'schedules pause': ['nightly'],
  'schedules resume': ['nightly'],
  'schedules clear': ['nightly'],
  'schedules remove': ['nightly'],
  'schedules reconcile': [],
  'workers list': [],
  'workers stop': ['nobody'],
  'workers recycle': ['nobody'],
  dash: ['--port', '0'],
  doctor: [],
  fsck: [],
  'simulate throttle': ['--limit', '5', '--window', '1s'],
  'import kale': ['nowhere.py'],
  init: ['new', '--no-install'],
  completion: ['bash'],
}
/** They end by a signal only. */
const lasting: readonly string[] = ['work', 'exec', 'dash']
/** They have nothing to say as long as nothing happens. */
const silent: readonly string[] = ['events']

let commands: string[]
beforeAll(async () => {
  commands = namesIn(await createProgram())
})

it('each command that prints JSON is covered here', () => {
  expect(commands.sort()).toEqual([...Object.keys(rests), ...silent].sort())
})

it.each(Object.keys(rests))('%s gives a slow reader its whole output', async (name) => {
  const cwd = project({ ...projectFiles, 'millrace.config.js': config })
  await run('enqueue echo 1 --id known --delay 1h', { cwd })
  await run('enqueue echo 1 --id dead', { cwd })
  await run('jobs bury default dead', { cwd })
  const [command = '', ...behind] = [...name.split(' '), ...rests[name]!]
  const at = behind.indexOf('--')
  const args = at < 0 ? [command, ...behind, '--json'] : [command, ...behind.toSpliced(at, 0, '--json')]

  const { code, stdout, stderr } = await readSlowly(args, cwd, lasting.includes(name) ? stopped : undefined)

  const whole = `${stdout}${stderr}`
  expect(whole, `exit code ${code}`).toMatch(/\n$/)
  // What was not possible is told on standard error, in words.
  if (code === 0 && stdout !== '')
    for (const line of stdout.trimEnd().split('\n')) expect(() => JSON.parse(line)).not.toThrow()
  else expect(stderr).toMatch(/^millrace: /)
})

function namesIn(command: Command, path: readonly string[] = []): string[] {
  if (command.commands.length > 0) return command.commands.flatMap((below) => namesIn(below, [...path, below.name()]))
  return command.options.some(({ long }) => long === '--json') ? [path.join(' ')] : []
}
