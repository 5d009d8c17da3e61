/**
 * A project whose jobs start an encoder, as an isolated task and by `exec`. Each run notes the process of the job, its encoder, and
 * which encoders of earlier runs still live as it begins.
 */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace } from 'millrace'
import { onTestFinished } from 'vitest'
import { poll } from '#src/store-testing/servers/poll.js'
import { CommandProcess } from '../../cli/command-process.js'
import { project } from '../../cli/project.js'
import { livingIn } from '../../process-group.js'

const encodeFile = `
import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export const lives = (pid) => {
  try {
    return !/^\\d+ \\(.*\\) [ZX]/s.test(readFileSync('/proc/' + pid + '/stat', 'utf8'))
  } catch {
    return false
  }
}
const earlier = () => existsSync('runs') ? readFileSync('runs', 'utf8').trim().split('\\n').map((line) => JSON.parse(line).encoder) : []

export async function encode(job) {
  const beside = earlier().filter(lives)
  const { pid: encoder } = spawn('sh', ['-c', 'trap "" TERM; while :; do sleep 1; done'], { stdio: 'ignore' })
  appendFileSync('runs', JSON.stringify({ job, encoder, beside }) + '\\n')
  if (existsSync('returns')) return 'encoded'
  if (existsSync('fails')) throw new Error('no such film')
  if (existsSync('exits')) process.exit(3)
  if (existsSync('throws')) setTimeout(() => { throw new Error('in a timer') }, 10)
  while (true) await sleep(1_000)
}
`
const tasksFile = (more: string) => `
import { defineTask } from 'millrace'
import { encode } from './encode.js'
const retry = { max: 3, backoff: () => 0 }
export const film = defineTask({ name: 'film', queue: 'films', isolate: 'process', retry, ${more} run: () => encode(process.pid) })
`
const configFile = () => `
import { millrace } from 'millrace'
import { film } from './tasks.js'
export default millrace({ store: 'sqlite:jobs.db', queues: { films: { lease: ${leaseMs} } }, tasks: [film] })
`
const commandFile = `
import { encode } from './encode.js'
await encode(process.ppid)
process.exit(0)
`
const film = defineTask({ name: 'film', queue: 'films' })
const leaseMs = 3_000

export interface Run {
  /** The process of the job; under `exec` the command. */
  readonly job: number
  readonly encoder: number
  /** Encoders of earlier runs that lived as this one began. */
  readonly beside: readonly number[]
}

export type Kind = 'an isolated task' | 'exec'

/** `more`: options of the task. `how`: a file that says how the run ends by itself. */
export async function leftBehind(
  kind: Kind,
  { more = "timeLimit: '1h',", how, grace = '30s' }: { more?: string; how?: string; grace?: string } = {},
) {
  const folder = project({
    'package.json': '{"type":"module"}',
    'encode.js': encodeFile,
    'command.js': commandFile,
    'tasks.js': tasksFile(more),
    'millrace.config.js': configFile(),
    ...(how === undefined ? {} : { [how]: '' }),
  })
  const mill = millrace({
    store: `sqlite:${join(folder, 'jobs.db')}`,
    queues: { films: { lease: leaseMs } },
    tasks: [film],
  })
  onTestFinished(() => mill.close())
  const args =
    kind === 'exec'
      ? ['exec', 'films', '--json', '--retries', '3', '--', process.execPath, 'command.js']
      : ['work', '--json', '--concurrency', '1', '--grace', grace]
  const runs = (): Run[] =>
    existsSync(join(folder, 'runs'))
      ? readFileSync(join(folder, 'runs'), 'utf8')
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line) as Run)
      : []
  return {
    ...{ folder, mill },
    job: await mill.enqueue(film, null, { id: 'film' }),
    start: () => new CommandProcess(args, { cwd: folder }),
    leaseIsOver: () => delay(leaseMs + 500),
    /** The nth run, as soon as it has begun. */
    run: (n: number) => poll(async () => runs()[n - 1], { what: `run ${n} has begun`, withinMs: 25_000 }),
    /** The second run, which waits for no back-off. */
    runAgain: () =>
      poll(
        async () => {
          await mill.queue('films').jobs.runNow(['film'])
          return runs()[1]
        },
        { what: 'the job runs again', withinMs: 25_000, everyMs: 200 },
      ),
  }
}

/** The processes of a job's family. `exec` is worker and supervisor in one. */
export interface Family {
  readonly supervisor: number
  readonly worker: number
  readonly job: number
}

export async function family(command: CommandProcess, { job }: Run): Promise<Family> {
  const [started] = await command.events('worker.started')
  return { supervisor: command.pid, worker: Number(started!['pid']), job }
}

export function killed(pids: readonly number[]): void {
  for (const pid of pids) process.kill(pid, 'SIGKILL')
}

/** Resolves once nothing of the group of this process lives. */
export function nothingLeftOf(group: number): Promise<true> {
  return poll(async () => (livingIn(group).length === 0 ? true : undefined), {
    what: `nothing of group ${group} lives`,
    withinMs: 15_000,
  })
}
