/** The command `work`: worker processes, from their start to their stop by a signal. */

import { setTimeout as delay } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import type { Loaded } from '../config/load-config.js'
import type { Mill, WorkerOptions } from '../config/mill.js'
import { defaultSelector, type SelectorName, selectorNames } from '../selectors/named-selectors.js'
import type { Worker } from '../workers/worker.js'
import { OperationError, UsageError } from './exit-code.js'
import { namesFlag, wholeFlag } from './flags.js'
import { loaded, type MillFlags, millCommand, withJson } from './mill-command.js'
import { printable } from './printable.js'
import { childArgs, ProcessGroup } from './process-group.js'
import { type StopCause, stopRequest } from './stop-request.js'
import { Terminal } from './terminal.js'
import { WorkLog } from './work-log.js'

interface WorkFlags extends MillFlags {
  readonly queues?: string[]
  readonly concurrency?: number
  readonly processes: number
  readonly selector?: SelectorName
}

const defaultConcurrency = 10
/** A worker whose store is beyond repair may have jobs in hand that can never be settled: the grace of a stop and some more. */
const lastWaitMs = 35_000

export function addWork(program: Command): void {
  const command = millCommand(program, 'work [module]', 'Run workers until a signal stops them')
    .option('--queues <names>', 'serve only these, as high,default (default: all)', namesFlag)
    .option('--concurrency <n>', `jobs at once in each process (default: ${defaultConcurrency})`, wholeFlag(1, 100_000))
    .option('--processes <n>', 'worker processes', wholeFlag(1, 256), 1)
    .addOption(
      new Option('--selector <name>', `the order of queues (default: ${defaultSelector})`).choices(selectorNames),
    )
    .addHelpText(
      'after',
      `
  module: a file that exports tasks, attaches handlers to those of the configuration, or default-exports a mill.
  Without a configuration its tasks are served from MILLRACE_STORE (default: sqlite:.millrace/jobs.db).

  SIGTERM or SIGINT: claims nothing more, lets running jobs finish for 30 s, exits with 0. Again: exits at once.

Examples:
  $ millrace work
  $ millrace work handlers.ts --queues high,default --concurrency 50 --processes 4
  $ MILLRACE_STORE=sqlite:jobs.db millrace work tasks.ts`,
    )
  withJson(command, 'print one line of JSON per event: {"event","at","pid",…}').action(
    (module: string | undefined, flags: WorkFlags) => work(module, flags),
  )
}

async function work(module: string | undefined, flags: WorkFlags): Promise<void> {
  const group: { of?: ProcessGroup } = {}
  // Before anything else: a signal may come while the configuration is still being loaded.
  const stop = stopRequest(() => group.of?.kill())
  const terminal = new Terminal({ json: flags.json ?? false, outlivesReader: true })
  const load = await loaded(flags, module)
  const { mill } = load
  refuseIdle(load)
  const { queues, concurrency = defaultConcurrency, selector } = flags
  const options: WorkerOptions = { concurrency, ...(queues && { queues }), ...(selector && { selector }) }
  // Made here also for the processes to come, so that a mistake is told once and nothing is started.
  const worker = mill.worker(options)
  if (flags.processes === 1) return serve(mill, worker, options, terminal, stop)
  if (mill.store.traits?.shared === false)
    throw new UsageError(
      `--processes needs a store that processes can share; ${mill.store.text} lives in one process only.`,
    )
  const processes = new ProcessGroup(flags.processes, terminal)
  group.of = processes
  void stop.then((cause) => processes.stop(cause))
  process.exitCode = await processes.run(childArgs(process.argv.slice(2)))
  await mill.close()
}

async function serve(
  mill: Mill,
  worker: Worker,
  options: WorkerOptions,
  terminal: Terminal,
  stop: Promise<StopCause>,
): Promise<void> {
  const log = new WorkLog(mill, terminal)
  let stopping = false
  void stop.then((cause) => {
    stopping = true
    log.stopping(cause, worker.running)
    return worker.stop()
  })
  await worker.start()
  const { queues = [...mill.queues.keys()], concurrency = defaultConcurrency } = options
  if (!stopping) log.started({ worker: worker.id, queues, concurrency }, () => worker.running)
  try {
    await Promise.race([stop, worker.finished()])
  } catch (error) {
    await Promise.race([mill.close(), delay(lastWaitMs)])
    log.stopped()
    throw new OperationError(`the worker ended: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    })
  }
  await mill.close()
  log.stopped()
}

/** Throws where no job could ever be run; warns of tasks whose jobs would be left lying. */
function refuseIdle({ mill, file, unknownTasks }: Loaded): void {
  const tasks = [...mill.tasks.values()]
  if (!tasks.some((task) => task.run !== undefined)) {
    throw new UsageError(
      tasks.length === 0
        ? `${file} has no tasks: list them under \`tasks\` in millrace({ … }).`
        : `no task of ${file} has a handler: name the module that attaches them, as in \`millrace work handlers.ts\`.`,
    )
  }
  const warn = (names: readonly string[], what: string) => {
    if (names.length > 0) process.stderr.write(`millrace: warning: ${printable(`${names.join(', ')}: ${what}`)}\n`)
  }
  const idle = tasks.filter((task) => task.run === undefined)
  warn(
    idle.map(({ name }) => name),
    'no handler is attached; jobs of this task are left for other workers.',
  )
  warn(
    unknownTasks.map(({ name }) => name),
    `exported by the module but not among the tasks of ${file}; not served.`,
  )
}
