/**
 * Every way in which a process of a job's family dies, and what is left running: a table, which `PRINT=1` prints. What a
 * job has started must never run beside its next run.
 */

import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { parentIn } from '#src/core/platform/proc-text.js'
import { poll } from '#src/store-testing/servers/poll.js'
import type { CommandProcess } from '../../cli/command-process.js'
import { root } from '../../cli/project.js'
import { livingIn } from '../../process-group.js'
import { type Family, family, type Kind, leftBehind } from './left-behind.js'

/** What becomes of the job: its first run goes on, or ends and the job runs again. */
type Becomes = 'goes on' | 'runs again'

interface Way {
  readonly dies: string
  readonly by: NodeJS.Signals | 'exit'
  /** Those that get the signal, in this order. None if the job ends its own process. */
  readonly of: (family: Family) => readonly number[]
  /** Whether nobody is left to start a worker. */
  readonly isAll?: true
  /** Whether the first worker is killed, and another has adopted the process, before that. */
  readonly isAdopted?: true
  readonly becomes: { readonly [K in Kind]: Becomes }
}

const both = (becomes: Becomes) => ({ 'an isolated task': becomes, exec: becomes })
const ways: readonly Way[] = [
  { dies: 'worker', by: 'SIGKILL', of: ({ worker }) => [worker], becomes: both('goes on') },
  { dies: 'worker', by: 'SIGTERM', of: ({ worker }) => [worker], becomes: both('goes on') },
  { dies: 'supervisor', by: 'SIGKILL', of: ({ supervisor }) => [supervisor], isAll: true, becomes: both('goes on') },
  { dies: 'supervisor', by: 'SIGTERM', of: ({ supervisor }) => [supervisor], isAll: true, becomes: both('goes on') },
  { dies: 'process of the job', by: 'SIGKILL', of: ({ job }) => [job], becomes: both('runs again') },
  { dies: 'process of the job', by: 'SIGTERM', of: ({ job }) => [job], becomes: both('runs again') },
  { dies: 'process of the job', by: 'SIGSEGV', of: ({ job }) => [job], becomes: both('runs again') },
  { dies: 'process of the job', by: 'exit', of: () => [], becomes: both('runs again') },
  {
    ...{ dies: 'adopted process', by: 'SIGKILL', of: ({ job }) => [job], isAdopted: true },
    becomes: both('runs again'),
  },
  {
    ...{ dies: 'worker and process of the job', by: 'SIGKILL', of: ({ worker, job }) => [worker, job] },
    becomes: both('runs again'),
  },
  {
    ...{
      dies: 'all of them',
      by: 'SIGKILL',
      of: ({ supervisor, worker, job }) => [supervisor, worker, job],
      isAll: true,
    },
    becomes: both('runs again'),
  },
]

const table: string[][] = [['kind', 'dies', 'by', 'the job', 'of its first run still there', 'beside its next run']]

/** Nobody starts another worker in the place of `exec`, which is worker and supervisor in one. */
const isOver = (kind: Kind, { isAll, of }: Way) =>
  isAll === true || (kind === 'exec' && of({ supervisor: 1, worker: 1, job: 0 }).includes(1))

describe.each(['an isolated task', 'exec'] as const)('the processes of %s', { timeout: 60_000 }, (kind) => {
  it.each(ways)('leave nothing of the first run when the next one starts if $dies dies by $by', async (way) => {
    const { dies, by, of, isAdopted, becomes } = way
    const scene = await leftBehind(kind, by === 'exit' ? { how: 'exits' } : {})
    let command: CommandProcess = scene.start()
    const first = await scene.run(1)
    const members = await family(command, first)
    if (isAdopted) {
      for (const pid of new Set([members.supervisor, members.worker])) process.kill(pid, 'SIGKILL')
      command = scene.start()
      await command.events('job.adopted')
    }
    for (const pid of new Set(of(members))) process.kill(pid, by as NodeJS.Signals)
    if (isOver(kind, way)) {
      if (by === 'SIGTERM') await command.end()
      command = scene.start()
    }
    const next = becomes[kind] === 'goes on' ? await adopted(command) : await scene.runAgain()
    if (next !== undefined)
      await poll(async () => (livingIn(first.job).length === 0 ? true : undefined), {
        what: 'all is dead',
        withinMs: 15_000,
      })
    const left = livingIn(first.job)
    const names = [
      ...(left.includes(first.job) ? ['process'] : []),
      ...(left.includes(first.encoder) ? ['encoder'] : []),
    ]
    table.push([kind, dies, by, becomes[kind], names.join(' and ') || 'nothing', next?.beside.join(' ') || 'nothing'])

    expect(names).toEqual(becomes[kind] === 'goes on' ? ['process', 'encoder'] : [])
    expect(next?.beside ?? []).toEqual([])
  })
})

it.each(['SIGTERM', 'SIGKILL'] as const)(
  'if the shell in which npm runs a worker dies by %s, its processes stop, and the process of the job goes on',
  { timeout: 60_000 },
  async (signal) => {
    const scene = await leftBehind('an isolated task')
    const script = `${process.execPath} ${join(root, 'dist/cli/main.js')} work --json --concurrency 1`
    const shell = spawn('sh', ['-c', `${script}; :`], {
      ...{ cwd: scene.folder, stdio: 'ignore' },
      env: { ...process.env, npm_lifecycle_script: script },
    })
    const first = await scene.run(1)
    const worker = (await scene.mill.workers())![0]!.pid
    const supervisor = parentIn(readFileSync(`/proc/${worker}/stat`, 'utf8'))!
    const members = () => [supervisor, worker].filter((pid) => existsSync(`/proc/${pid}`))
    expect(members()).toHaveLength(2)
    shell.kill(signal)
    await poll(async () => (members().length === 0 ? true : undefined), { what: 'both have stopped', withinMs: 15_000 })
    await adopted(scene.start())
    table.push(['an isolated task', 'shell of npm above', signal, 'goes on', 'process and encoder', 'nothing'])

    expect(livingIn(first.job)).toEqual(expect.arrayContaining([first.job, first.encoder]))
  },
)

async function adopted(command: CommandProcess): Promise<undefined> {
  await command.events('job.adopted')
}

afterAll(() => {
  if (process.env['PRINT'] !== undefined) process.stdout.write(`${table.map((row) => row.join(' | ')).join('\n')}\n`)
})
