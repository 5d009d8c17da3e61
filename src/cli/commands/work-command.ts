/** The command `work`: its flags, the supervisor that it runs, and the hidden command of each worker process. */

import { dirname, resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { defaultSelector, selectorNames } from '../../selectors/named-selectors.js'
import { affinityHelp, bytesFlag, durationFlag, fromEnvironment, graceFlag, namesFlag, wholeFlag } from '../flags.js'
import { millCommand, withJson } from '../mill-command.js'
import { UsageError } from '../process/exit-code.js'
import { outliveReaders } from '../process/process-output.js'
import { stopRequest } from '../process/stop-request.js'
import { onDumpRequest } from '../supervise/state-dump.js'
import { Supervisor } from '../supervise/supervisor.js'
import type { WorkFlags } from '../supervise/work-process.js'
import { Terminal } from '../terminal/terminal.js'

const processCommand = 'work-process'
const watchedGraceMs = 2_000

export function addWork(program: Command): void {
  const command = millCommand(program, 'work [module]', 'Run workers until a signal stops them')
  withWorkFlags(command)
    .addHelpText(
      'after',
      `
  module: a file that exports tasks, attaches handlers to the tasks of the configuration, or exports a mill by default.
  Without a configuration its tasks are served from MILLRACE_STORE (default: sqlite:.millrace/jobs.db).

  A worker process that dies is replaced at once. If it dies again and again, the delay grows from 250 ms to 30 s.

  SIGTERM, SIGINT or SIGHUP: claims nothing more, lets running jobs finish within the grace, exits with 0, or with 1 if a
  process had to be killed. A second signal ends all processes at once.
  SIGUSR2 or SIGTTIN: prints on standard error what every process and slot is doing.
  --watch: for development. Restarts all processes when a source file below the working directory changes; jobs in hand get
  a grace of 2s, and are then put back. After a mistake in a file it waits for the next change.
  --health-port: GET /health answers 200, or 503 if no process takes jobs. With --metrics GET /metrics serves Prometheus
  metrics of queues, throttles and workers; docs/metrics.md lists them.

Examples:
  $ millrace work
  $ millrace work handlers.ts --queues high,default --concurrency 50 --processes 4
  $ millrace work --node 0/2        (and --node 1/2 on the other host: each asks half of all shards first)
  $ millrace work --max-rss 512MB --health-port 9000 --metrics
  $ MILLRACE_STORE=sqlite:jobs.db millrace work tasks.ts`,
    )
    .option('--watch', 'restart when a source file changes (development)')
    .action((_module: string | undefined, flags: WorkFlags & { readonly watch?: boolean }, command: Command) => {
      const args = processArgs(process.argv.slice(2))
      if (!flags.watch) return work(flags, args)
      const isHasty = command.getOptionValueSource('grace') === 'default'
      const own = args.filter((arg) => arg !== '--watch')
      return isHasty
        ? work({ ...flags, grace: watchedGraceMs }, [...own, '--grace', `${watchedGraceMs}`])
        : work(flags, own)
    })
}

/** The command of a worker process. Only supervisors use it; users need not know it. */
export function addWorkProcess(program: Command): Command {
  withWorkFlags(millCommand(program, `${processCommand} [module]`, 'One worker process', { hidden: true }))
    .option('--first', 'the first of its supervisor')
    .option('--linked', 'its supervisor listens')
    .action(async (module: string | undefined, flags: WorkFlags) => {
      const { WorkProcess } = await import('../supervise/work-process.js')
      await new WorkProcess(flags).run(module)
    })
  return program
}

function withWorkFlags(command: Command): Command {
  command
    .addOption(
      fromEnvironment(
        'MILLRACE_QUEUES',
        new Option('--queues <names>', 'serve only these queues: high,default (default: all)'),
      ).argParser(namesFlag),
    )
    .addOption(
      fromEnvironment(
        'MILLRACE_CONCURRENCY',
        new Option('--concurrency <n>', 'jobs at once in each process (default: 10)'),
      ).argParser(wholeFlag(1, 100_000)),
    )
    .addOption(
      fromEnvironment('MILLRACE_PROCESSES', new Option('--processes <n>', 'worker processes'))
        .default(1)
        .argParser(wholeFlag(1, 256)),
    )
    .addOption(
      new Option('--selector <name>', `the order of queues (default: ${defaultSelector})`).choices(selectorNames),
    )
    .option('--node <i/n>', 'first ask the shards of ordered queues that belong to host i of n, from 0', nodeFlag)
    .addOption(
      new Option('--grace <duration>', 'how long a stop waits for running jobs; none: until they end')
        .default(30_000, '30s')
        .argParser(graceFlag),
    )
    .addOption(
      new Option('--max-block <duration>', 'replace a process whose event loop is blocked for longer')
        .default(30_000, '30s')
        .argParser(durationFlag),
    )
    .option('--affinity <text>', affinityHelp)
    .option('--max-jobs <n>', 'replace a process after n jobs', wholeFlag(1, Number.MAX_SAFE_INTEGER))
    .option('--max-rss <size>', 'replace a process that takes more memory: 512MB', bytesFlag)
    .option('--create-queues', 'first create the declared queues, if they are missing in SQS')
    .option('--health-port <n>', 'answer GET /health on this port; 0: any free port', wholeFlag(0, 65_535))
    .option('--health-host <host>', 'the address of the health port', '127.0.0.1')
    .option('--metrics', 'serve Prometheus metrics at /metrics of the health port')
  return withJson(command, 'print one line of JSON per event: {"event","at","pid",…}')
}

/** `0/2`: member 0 of 2. */
function nodeFlag(given: string): { member: number; members: number } {
  const [, member, members] = /^(\d{1,6})\/(\d{1,6})$/.exec(given) ?? []
  if (Number(member) < Number(members)) return { member: Number(member), members: Number(members) }
  throw new InvalidArgumentError('Expected i/n with i from 0 to n − 1, such as 0/2 and 1/2 for two hosts.')
}

async function work(flags: WorkFlags & { readonly watch?: boolean }, args: readonly string[]): Promise<void> {
  outliveReaders()
  const terminal = new Terminal({ json: flags.json ?? false })
  const { processes, grace: graceMs, maxBlock: maxBlockMs } = flags
  const metrics = await metricsOf(flags, () => supervisor)
  const start = () => new Supervisor({ args, processes, graceMs, maxBlockMs, ...metrics?.hearing }, terminal)
  let supervisor = start()
  const stopped = stopRequest(() => supervisor.kill())
  onDumpRequest(() => supervisor.dump())
  if (flags.healthPort !== undefined) {
    const { healthOf, serveHealth } = await import('../supervise/health-server.js')
    const url = await serveHealth(flags.healthHost, flags.healthPort, () => healthOf(supervisor.reports()), metrics)
    terminal.event('health.started', { url }, () => `health on ${url}`)
  }
  if (!flags.watch) {
    void stopped.then((cause) => supervisor.stop(cause))
    process.exitCode = await supervisor.run()
    return
  }
  const { SourceChanges, watchedWork } = await import('../supervise/watched-work.js')
  const changes = new SourceChanges(watchedFolders(flags))
  const startAnew = () => {
    supervisor = start()
    return supervisor
  }
  process.exitCode = await watchedWork(startAnew, changes, stopped, terminal)
}

/** The metrics; undefined without `--metrics`. Throws `UsageError` if there is no port to serve them on. */
async function metricsOf(flags: WorkFlags, supervisor: () => Supervisor) {
  if (!flags.metrics) return undefined
  if (flags.healthPort === undefined)
    throw new UsageError('--metrics needs --health-port, which serves the metrics. Nothing was started.')
  const { WorkMetrics } = await import('../supervise/work-metrics.js')
  return new WorkMetrics(supervisor)
}

/** The working directory, and the folders of configurations elsewhere. */
function watchedFolders({ config = [] }: WorkFlags): string[] {
  return [...new Set([process.cwd(), ...config.map((file) => dirname(resolve(file)))])]
}

/** The command line of a worker process: its supervisor's, with another command. */
export function processArgs(args: readonly string[]): string[] {
  const at = args.indexOf('work')
  return args.with(at, processCommand)
}
