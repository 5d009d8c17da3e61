/** The command `completion`: prints a script with which a shell completes commands and options. */

import { Argument, type Command } from 'commander'
import { type CommandBranch, type CompletedOption, commandTree } from '../command-words.js'
import { withJson } from '../mill-command.js'
import { Terminal } from '../terminal/terminal.js'

export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

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

/** Completion scripts: the texts that a shell loads to complete commands and options. Pure. */
export function completionScript(shell: Shell, tree: readonly CommandBranch[]): string {
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](tree)
}

/** Names without the program's, as cases of a `case`: `"millrace jobs"|"millrace jobs list"`. */
const pathsOf = (tree: readonly CommandBranch[]) => tree.slice(1).map(({ path }) => path)
const wordsOf = ({ commands, options }: CommandBranch) => [...commands, ...options]
const chosen = (tree: readonly CommandBranch[]) =>
  tree.flatMap(({ path, options }) =>
    options.filter(({ choices }) => choices.length > 0).map((option) => ({ path, option })),
  )
const isFile = ({ word, takesValue, choices }: CompletedOption) =>
  takesValue && choices.length === 0 && /^--(?:config|out)$/.test(word)

function bashScript(tree: readonly CommandBranch[]): string {
  return `# millrace completion bash: source <(millrace completion bash)
_millrace() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD - 1]}" here=millrace words i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$here \${COMP_WORDS[i]}" in
      ${pathsOf(tree)
        .map((path) => `"${path}"`)
        .join('|')}) here="$here \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$here $before" in
${chosen(tree)
  .map(({ path, option }) => `    "${path} ${option.word}") words="${option.choices.join(' ')}" ;;`)
  .join('\n')}
    *)
      case "$here" in
${tree
  .map(
    (branch) =>
      `        "${branch.path}") words="${wordsOf(branch)
        .map(({ word }) => word)
        .join(' ')}" ;;`,
  )
  .join('\n')}
      esac
      ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _millrace millrace
`
}

/** `path` is another name of PATH in zsh. */
function zshScript(tree: readonly CommandBranch[]): string {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  const entry = (word: string, description: string) => quoted(`${word.replaceAll(':', '\\:')}:${description}`)
  return `#compdef millrace
# millrace completion zsh > "\${fpath[1]}/_millrace"
_millrace() {
  local here=millrace i
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    case "$here \${words[i]}" in
      ${pathsOf(tree)
        .map((path) => `"${path}"`)
        .join('|')}) here="$here \${words[i]}" ;;
    esac
  done
  case "$here \${words[CURRENT - 1]}" in
${chosen(tree)
  .map(({ path, option }) => `    "${path} ${option.word}") compadd -- ${option.choices.join(' ')}; return ;;`)
  .join('\n')}
  esac
  case "$here" in
${tree
  .map(
    (branch) =>
      `    "${branch.path}") found=(${wordsOf(branch)
        .map(({ word, description }) => entry(word, description))
        .join(' ')}) ;;`,
  )
  .join('\n')}
  esac
  _describe millrace found
  _files
}
compdef _millrace millrace
`
}

function fishScript(tree: readonly CommandBranch[]): string {
  const quoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = tree.flatMap(({ path, commands, options }) => {
    const at = `complete -c millrace -n ${quoted(`__millrace_at "${path}"`)}`
    return [
      ...commands.map(({ word, description }) => `${at} -f -a ${word} -d ${quoted(description)}`),
      ...options.map((option) => {
        const { word, description, takesValue, choices } = option
        const values =
          choices.length > 0 ? ` -xa ${quoted(choices.join(' '))}` : isFile(option) ? ' -rF' : takesValue ? ' -x' : ''
        return `${at} -l ${word.slice(2)}${values} -d ${quoted(description)}`
      }),
    ]
  })
  return `# millrace completion fish > ~/.config/fish/completions/millrace.fish
function __millrace_at
  set -l here millrace
  for word in (commandline -opc)[2..]
    switch "$here $word"
      case ${pathsOf(tree).map(quoted).join(' ')}
        set here "$here $word"
    end
  end
  test "$here" = "$argv[1]"
end
${lines.join('\n')}
`
}
