/** The command `doctor`: examines what the store runs on. */

import type { Command } from 'commander'
import { printFindings } from './finding-list.js'
import { type MillFlags, millCommand, withJson, withMill } from './mill-command.js'

export function addDoctor(program: Command): void {
  const command = millCommand(
    program,
    'doctor',
    'Examine what the store runs on: version, settings, rights',
  ).addHelpText(
    'after',
    `
  ok: as it should be · warning: works, with what it says · error: jobs may be lost, or calls fail
  It only reads. Ends with 1 where there is an error.

Example:
  $ millrace doctor --json | jq '.findings[] | select(.level != "ok")'`,
  )
  withJson(command, 'print {"store","findings":[{"level","what","text"}]}').action((flags: MillFlags) =>
    withMill(flags, (mill, terminal) => printFindings(mill, terminal, 'doctor', (health) => health.examine())),
  )
}
