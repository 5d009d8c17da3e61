/**
 * A mill command: the parts that all commands share: the options `--config` and `--json`, and a mill that is opened
 * before and closed after.
 */

import type { Command, CommandOptions } from 'commander'
import type { Loaded } from '../mill/load-mill.js'
import type { Mill } from '../mill/mill.js'
import { eachFlag } from './flags.js'
import { Terminal } from './terminal/terminal.js'

export interface MillFlags {
  readonly config?: readonly string[]
  readonly json?: boolean
}

/** Adds a command with the shared options to `parent`; `usage` as in `'enqueue <task> <json>'`. */
export function millCommand(parent: Command, usage: string, summary: string, options: CommandOptions = {}): Command {
  return parent
    .command(usage, options)
    .description(summary)
    .option(
      '--config <file>',
      'the configuration (default: MILLRACE_CONFIG, otherwise millrace.config.ts, .mts, .js or .mjs); may be repeated, later files win',
      eachFlag,
    )
}

/** Adds `--json`, which every command has; `what` says what it prints then. */
export function withJson(command: Command, what: string): Command {
  return command.option('--json', what)
}

export async function loaded(flags: MillFlags, module?: string): Promise<Loaded> {
  // Imported here: a supervisor opens no mill and saves the memory that a mill needs.
  const { loadMill } = await import('../mill/load-mill.js')
  return loadMill({ cwd: process.cwd(), env: process.env, configs: flags.config, module })
}

/**
 * `isLong`: the command goes on until it is stopped, or as long as its input lasts. The store of any other command starts
 * no thread: that would take longer than most commands.
 */
export async function withMill(
  flags: MillFlags,
  use: (mill: Mill, terminal: Terminal) => Promise<void>,
  { isLong = false } = {},
): Promise<void> {
  const { mill } = await loaded(flags)
  // A mill of another copy of the library may not know of it.
  if (!isLong) (mill as Partial<Mill>).serveInPlace?.()
  try {
    await use(mill, new Terminal({ json: flags.json ?? false }))
  } finally {
    await mill.close()
  }
}
