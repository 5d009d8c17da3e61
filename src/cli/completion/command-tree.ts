/** The command tree: the words that can follow each command, taken from the program itself. */

import type { Command } from 'commander'

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
