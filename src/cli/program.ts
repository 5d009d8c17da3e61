/** The command line of `millrace`: runs the command that some words name, and ends with its exit code. */

import { Command } from 'commander'
import { packageVersion } from '../core/package-files.js'
import { printable } from './printable.js'
import { errorLine, exitCodeHelp, exitCodeOf, exitCodes, pageOf } from './process/exit-code.js'

/**
 * Runs the command that these words name and resolves with its exit code. Prints the reason of a failure on stderr;
 * throws nothing.
 */
export async function runCommand(words: readonly string[]): Promise<number> {
  try {
    const program = await programFor(words)
    await program.parseAsync(words, { from: 'user' })
    return Number(process.exitCode ?? exitCodes.ok)
  } catch (error) {
    const line = errorLine(error)
    if (line !== undefined) process.stderr.write(`${line}\n`)
    const page = process.stderr.isTTY ? pageOf(error) : undefined
    if (page !== undefined) process.stderr.write(`See ${page}\n`)
    return exitCodeOf(error)
  }
}

/**
 * The commands in the order of the help. Each is loaded only when it is named: a command that prints its version does
 * not need the code that clears a queue.
 */
const commands = {
  work: async () => (await import('./commands/work-command.js')).addWork,
  exec: async () => (await import('./commands/exec-command.js')).addExec,
  enqueue: async () => (await import('./commands/enqueue-command.js')).addEnqueue,
  stats: async () => (await import('./commands/stats-command.js')).addStats,
  events: async () => (await import('./commands/events-command.js')).addEvents,
  jobs: async () => (await import('./commands/jobs/jobs-command.js')).addJobs,
  morgue: async () => (await import('./commands/jobs/morgue-command.js')).addMorgue,
  queues: async () => (await import('./commands/queues/queues-command.js')).addQueues,
  schedules: async () => (await import('./commands/schedules-command.js')).addSchedules,
  workers: async () => (await import('./commands/workers-command.js')).addWorkers,
  dash: async () => (await import('./commands/dash-command.js')).addDash,
  doctor: async () => (await import('./commands/doctor-command.js')).addDoctor,
  fsck: async () => (await import('./commands/fsck-command.js')).addFsck,
  simulate: async () => (await import('./commands/simulate-command.js')).addSimulate,
  import: async () => (await import('./commands/import/import-command.js')).addImport,
  init: async () => (await import('./commands/init-command.js')).addInit,
  migrate: async () => (await import('./commands/migrate-command.js')).addMigrate,
  completion: async () => (await import('./commands/completion-command.js')).addCompletion,
} as const satisfies Record<string, () => Promise<(program: Command) => void>>

/** The program with all its commands. */
export async function createProgram(): Promise<Command> {
  const program = emptyProgram()
  for (const add of await Promise.all(Object.values(commands).map((load) => load()))) add(program)
  ;(await import('./command-words.js')).tellWhatIsMeant(program)
  return program
}

/** The program as far as these words need it: with the command that they name, or with all if they name none. */
async function programFor(words: readonly string[]): Promise<Command> {
  const [word = '', next = ''] = words
  const program = emptyProgram()
  if (word === '--version') return program
  if (word === 'work-process') return (await import('./commands/work-command.js')).addWorkProcess(program)
  // A completion script contains all commands.
  if (!isCommand(word) || word === 'completion') return createProgram()
  ;(await commands[word]())(program)
  const [{ commands: below }] = program.commands as [Command]
  // An unknown word may mean a command of another group.
  const isNamed = below.length === 0 || next.startsWith('-') || below.some((command) => command.name() === next)
  return isNamed ? program : createProgram()
}

function isCommand(word: string): word is keyof typeof commands {
  return Object.hasOwn(commands, word)
}

function emptyProgram(): Command {
  return new Command('millrace')
    .description('Background jobs: embedded on SQLite with no server, or on Postgres, Redis and Valkey.')
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
  $ millrace work                                  run the workers of millrace.config.ts
  $ millrace enqueue send-email '{"to":"ada@example.org","subject":"Hello"}'
  $ millrace stats --watch
  $ millrace morgue revive default --all

Environment:
  MILLRACE_CONFIG       path of the configuration; separate several by ':' (';' on Windows)
  MILLRACE_STORE        store of the jobs; overrides that of exported options (an exported mill reads it itself)
  MILLRACE_NAMESPACE    prefix of keys in Redis and of queues in SQS, schema in Postgres; likewise
  MILLRACE_HOST         name of this machine, where containers share one file
  MILLRACE_CONCURRENCY  default of work --concurrency
  MILLRACE_PROCESSES    default of work --processes
  MILLRACE_QUEUES       default of work --queues
  MILLRACE_DASH_TOKEN   default of dash --token
  NO_COLOR              no colours (there are none without a terminal)

${exitCodeHelp}`,
    )
}

/** Commander's message, with its suggestion on the same line. */
function oneLine(text: string): string {
  const line = printable(
    text
      .replace(/^error: /, '')
      .trim()
      .replaceAll('\n', ' '),
  )
  return /[.?)]$/.test(line) ? line : `${line}.`
}
