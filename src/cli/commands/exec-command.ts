/** The command `exec`: runs a command for each job of a queue. */

import { type Command, Option } from 'commander'
import { defined } from '../../core/values/defined.js'
import { affinityHelp, graceFlag, namesFlag, wholeFlag } from '../flags.js'
import { loaded, type MillFlags, millCommand, withJson } from '../mill-command.js'
import { exitCodes } from '../process/exit-code.js'
import { outliveReaders } from '../process/process-output.js'
import { stopRequest } from '../process/stop-request.js'
import { WorkLog } from '../supervise/work-log.js'
import { Terminal } from '../terminal/terminal.js'

interface ExecFlags extends MillFlags {
  readonly concurrency: number
  /** In ms; infinite for `none`. */
  readonly timeLimit: number
  readonly retries: number
  readonly env?: string[]
  readonly affinity?: string
}

const stderr = 2

export function addExec(program: Command): void {
  const command = millCommand(program, 'exec <queue> <command...>', 'Run a command for each job of a queue')
    .usage('<queue> [options] -- <command> [arguments]')
    .option('--concurrency <n>', 'commands at once', wholeFlag(1, 10_000), 1)
    .addOption(
      new Option('--time-limit <duration>', 'end a command that takes longer')
        .default(Number.POSITIVE_INFINITY, 'none')
        .argParser(graceFlag),
    )
    .option('--retries <n>', 'run a failed command again, at most n times', wholeFlag(0, 1_000_000), 0)
    .option('--affinity <text>', affinityHelp)
    .option('--env <names>', 'pass these variables on, although they hold a secret of the mill', namesFlag)
    .addHelpText(
      'after',
      `
  Runs the command once for each job of the queue, whatever its task. The command gets the input as JSON on standard input,
  and MILLRACE_JOB_ID, MILLRACE_QUEUE, MILLRACE_TASK, MILLRACE_ATTEMPT, MILLRACE_FENCE, MILLRACE_TOKEN and MILLRACE_SLOT (0 … concurrency − 1)
  in its environment.
  Exit code 0 completes the job, with the last 64 KiB of standard output as its result; any other code fails it. The output
  of the command is the log of the job. Variables that hold the password of the store (as MILLRACE_STORE may) or a key of the
  seal are withheld unless --env names them.

  A command outlives exec: if exec is stopped or dies, the command goes on, and the next exec of this affinity on this machine
  takes it over.
  Cancelling a job ends the command and everything it has started: SIGTERM, and SIGKILL 5 s after the cancel.

Examples:
  $ millrace exec video -- ffmpeg -i pipe:0 out.mp4
  $ CUDA_VISIBLE_DEVICES=0 millrace exec train -- ./train.sh     (an exec of GPU 1 leaves its commands to the next of GPU 0)
  $ millrace exec train --concurrency 4 -- sh -c 'CUDA_VISIBLE_DEVICES=$MILLRACE_SLOT exec ./train.sh'
  $ millrace exec reports --concurrency 4 --time-limit 2h -- sh -c 'jq -r .month | xargs ./report.sh'`,
    )
  withJson(command, 'print one line of JSON per event: {"event","at","pid",…}').action(
    (queue: string, [file, ...args]: string[], flags: ExecFlags) => exec(queue, file!, args, flags),
  )
}

async function exec(queue: string, file: string, args: readonly string[], flags: ExecFlags): Promise<void> {
  outliveReaders()
  const terminal = new Terminal({ json: flags.json ?? false })
  const { mill, files } = await loaded(flags)
  const { concurrency, timeLimit, retries, affinity, env = [] } = flags
  const limit = timeLimit === Number.POSITIVE_INFINITY ? ('none' as const) : timeLimit
  const worker = mill.worker(
    { queues: [queue], concurrency, ...defined({ affinity }) },
    { isSupervised: false, blockedTo: stderr, files, command: { file, args, timeLimit: limit, retries, env } },
  )
  const log = new WorkLog(mill, terminal)
  void stopRequest().then((cause) => {
    log.stopping(cause, worker.running)
    void worker.stop().catch(() => {})
  })
  await worker.start()
  log.started({ worker: worker.id, queues: [queue], concurrency }, () => worker.running)
  await worker.finished().finally(() => mill.close())
  log.stopped()
  process.exitCode = exitCodes.ok
}
