/** The program: the whole command line of `millrace`, one command per noun. */

import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { addDoctor } from './doctor-command.js'
import { addEnqueue } from './enqueue-command.js'
import { addExec } from './exec-command.js'
import { exitCodeHelp } from './exit-code.js'
import { addFsck } from './fsck-command.js'
import { addJobs } from './jobs-command.js'
import { addMorgue } from './morgue-command.js'
import { printable } from './printable.js'
import { addQueues } from './queues-command.js'
import { addSimulate } from './simulate-command.js'
import { addStats } from './stats-command.js'
import { addWork } from './work-command.js'
import { addWorkers } from './workers-command.js'

export function createProgram(): Command {
  const program = new Command('millrace')
    .description('Background jobs: embedded on SQLite with no server, or on Redis and Valkey.')
    .version(version(), '--version', 'print the version')
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
  MILLRACE_CONFIG  path of the configuration
  MILLRACE_STORE   where jobs live, where there is no configuration; configurations may read it too
  NO_COLOR         no colours (there are none without a terminal)

${exitCodeHelp}`,
    )
  for (const add of [
    addWork,
    addExec,
    addEnqueue,
    addStats,
    addJobs,
    addMorgue,
    addQueues,
    addWorkers,
    addDoctor,
    addFsck,
    addSimulate,
  ])
    add(program)
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

function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
