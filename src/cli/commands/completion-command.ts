/** The command `completion`: prints a script with which a shell completes commands and options. */

import { Argument, type Command } from 'commander'
import { commandTree } from '../completion/command-tree.js'
import { completionScript, type Shell, shells } from '../completion/completion-script.js'
import { withJson } from '../mill-command.js'
import { Terminal } from '../output/terminal.js'

export function addCompletion(program: Command): void {
  const command = program
    .command('completion')
    .description('Print a script with which a shell completes commands and options')
    .addArgument(new Argument('<shell>', 'which shell').choices(shells))
    .addHelpText(
      'after',
      `
Examples:
  $ source <(millrace completion bash)                              in ~/.bashrc
  $ millrace completion zsh > "\${fpath[1]}/_millrace"
  $ millrace completion fish > ~/.config/fish/completions/millrace.fish`,
    )
  withJson(command, 'print {"shell","script"}').action(
    (shell: Shell, { json = false }: { readonly json?: boolean }) => {
      const script = completionScript(shell, commandTree(program))
      new Terminal({ json }).print({ shell, script }, () => [script.trimEnd()])
    },
  )
}
