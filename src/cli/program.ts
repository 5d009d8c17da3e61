/** The program: the whole command line of `millrace`, one command per noun. */

import { Command } from 'commander'
import { packageVersion } from '../core/platform/package-version.js'
import { tellWhatIsMeant } from './command-words.js'
import { addCompletion } from './commands/completion-command.js'
import { addDash } from './commands/dash-command.js'
import { addDoctor } from './commands/doctor-command.js'
import { addEnqueue } from './commands/enqueue-command.js'
import { addEvents } from './commands/events-command.js'
import { addExec } from './commands/exec-command.js'
import { addFsck } from './commands/fsck-command.js'
import { addImport } from './commands/import-command.js'
import { addInit } from './commands/init-command.js'
import { addJobs } from './commands/jobs/jobs-command.js'
import { addMorgue } from './commands/jobs/morgue-command.js'
import { addQueues } from './commands/queues/queues-command.js'
import { addSchedules } from './commands/schedules-command.js'
import { addSimulate } from './commands/simulate-command.js'
import { addStats } from './commands/stats-command.js'
import { addWork } from './commands/work-command.js'
import { addWorkers } from './commands/workers-command.js'
import { exitCodeHelp } from './output/exit-code.js'
import { printable } from './output/printable.js'

export function createProgram(): Command {
  const program = new Command('millrace')
    .description('Background jobs: embedded on SQLite with no server, or on Redis and Valkey.')
    .version(packageVersion() ?? 'unknown', '--version', 'print the version')
    .helpOption('--help', 'show this')
    .helpCommand(false)
    .showSuggestionAfterError(true)
    .exitOverride()
    .configureOutput({
      outputError: (text, write) => write(`millrace: ${oneLine(text)} See --help.\n`),
    })
    .addHelpText(
      'after',
      `
Examples:
  $ millrace work                                  run workers for what millrace.config.ts describes
  $ millrace enqueue send-email '{"to":"ada@example.org","subject":"Hello"}'
  $ millrace stats --watch
  $ millrace morgue revive default --all

Environment:
  MILLRACE_CONFIG       path of the configuration, or several with ':' between them (';' on Windows)
  MILLRACE_STORE        where jobs live; wins over the configuration
  MILLRACE_NAMESPACE    what keys in a Redis and queues in SQS begin with; wins over the configuration
  MILLRACE_CONCURRENCY  --concurrency of work, where that is not given
  MILLRACE_PROCESSES    --processes of work, where that is not given
  MILLRACE_QUEUES       --queues of work, where that is not given
  MILLRACE_DASH_TOKEN   --token of dash, where that is not given
  NO_COLOR              no colours (there are none without a terminal)

${exitCodeHelp}`,
    )
  for (const add of [
    addWork,
    addExec,
    addEnqueue,
    addStats,
    addEvents,
    addJobs,
    addMorgue,
    addQueues,
    addSchedules,
    addWorkers,
    addDash,
    addDoctor,
    addFsck,
    addSimulate,
    addImport,
    addInit,
    addCompletion,
  ])
    add(program)
  tellWhatIsMeant(program)
  return program
}

/** Commander's words, with its suggestion on the same line. */
function oneLine(text: string): string {
  const line = printable(
    text
      .replace(/^error: /, '')
      .trim()
      .replaceAll('\n', ' '),
  )
  return /[.?)]$/.test(line) ? line : `${line}.`
}
