/** Command words: those that can follow each command, and the commands that are probably meant by an unknown one. */

import type { Command } from 'commander'
import { probablyMeant } from '../core/messages/spelling.js'

/** Words of other programs, each with the last words of our commands that do the same. */
const foreign: Readonly<Record<string, readonly string[]>> = {
  add: ['enqueue'],
  cron: ['schedules'],
  dashboard: ['dash'],
  dlq: ['morgue'],
  get: ['show'],
  inspect: ['show'],
  kill: ['cancel'],
  ls: ['list'],
  ps: ['workers'],
  purge: ['clear'],
  push: ['enqueue'],
  remove: ['delete'],
  requeue: ['revive'],
  retry: ['revive'],
  rm: ['delete'],
  run: ['work', 'run-now'],
  start: ['work'],
  status: ['stats'],
  tail: ['events'],
  top: ['stats'],
  ui: ['dash'],
  unpause: ['resume'],
  web: ['dash'],
  worker: ['work'],
}

/**
 * The commands that are meant by a word after `group`, which is empty for the program itself. Commands of other groups
 * are included if this group has none. `paths`: those of all commands, such as `jobs list`. Pure.
 */
export function commandsMeant(word: string, group: string, paths: readonly string[]): readonly string[] {
  const own = Object.hasOwn(foreign, word) ? foreign[word]! : [word]
  const meant = paths.filter((path) => own.some((one) => path === one || path.endsWith(` ${one}`)))
  const here = (path: string) => group !== '' && path.startsWith(`${group} `)
  if (meant.length > 0) return meant.some(here) ? meant.filter(here) : meant
  const before = group === '' ? '' : `${group} `
  const beside = paths.filter((path) => path.startsWith(before)).map((path) => path.slice(before.length))
  const near = probablyMeant(word, beside)
  return near === undefined ? [] : [`${before}${near}`]
}

/**
 * Makes the program refuse an unknown command with the commands that are probably meant. For a program that has all its
 * commands.
 */
export function tellWhatIsMeant(program: Command): void {
  for (const command of [program, ...program.commands.filter(({ commands }) => commands.length > 0)])
    command.on('command:*', ([word]: [string]) => {
      const paths = commandTree(program).map(({ path }) => path.slice(`${program.name()} `.length))
      const meant = commandsMeant(word, command === program ? '' : command.name(), paths)
      const which = `${meant.length > 1 ? 'one of ' : ''}${meant.join(', ')}`
      const hint = meant.length === 0 ? '' : ` (Did you mean ${which}?)`
      command.error(`unknown command '${word}'${hint}`, { code: 'commander.unknownCommand' })
    })
}

/** The command tree: the words that can follow each command, taken from the program itself. */
export interface CommandBranch {
  /** `millrace jobs list` */
  readonly path: string
  readonly commands: readonly CompletedWord[]
  readonly options: readonly CompletedOption[]
}

interface CompletedWord {
  readonly word: string
  readonly description: string
}

export interface CompletedOption extends CompletedWord {
  readonly takesValue: boolean
  /** Empty: any value. */
  readonly choices: readonly string[]
}

/** The branches of the command and all below it that the help shows. */
export function commandTree(command: Command, above = ''): CommandBranch[] {
  const path = `${above}${command.name()}`
  const help = command.createHelp()
  const commands = help.visibleCommands(command)
  const branch: CommandBranch = {
    path,
    commands: commands.map((sub) => ({ word: sub.name(), description: sub.description() })),
    options: help.visibleOptions(command).map(({ long, description, required, optional, argChoices }) => ({
      word: long!,
      description,
      takesValue: required || optional,
      choices: argChoices ?? [],
    })),
  }
  return [branch, ...commands.flatMap((sub) => commandTree(sub, `${path} `))]
}
