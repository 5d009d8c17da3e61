/** The command `fsck`: checks whether what the store holds fits together. */

import type { Command } from 'commander'
import { printFindings } from './finding-list.js'
import { type MillFlags, millCommand, withJson, withMill } from './mill-command.js'

export function addFsck(program: Command): void {
  const command = millCommand(program, 'fsck', 'Check whether what the store holds fits together')
    .option('--queue <queue>', 'check this queue only, declared or not')
    .addHelpText(
      'after',
      `
  It only reads, a little at a time, while work goes on; it takes as long as there are jobs. Ends with 1 where there is
  an error.

Examples:
  $ millrace fsck
  $ millrace fsck --queue default --json`,
    )
  withJson(command, 'print {"store","findings":[{"level","what","text"}]}').action(
    (flags: MillFlags & { queue?: string }) =>
      withMill(flags, (mill, terminal) =>
        printFindings(
          mill,
          terminal,
          'fsck',
          mill.health().then((health) => health?.check(flags.queue)),
        ),
      ),
  )
}
