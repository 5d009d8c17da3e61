/** The command `fsck`: checks whether the contents of the store are consistent, and mends what is safe to mend. */

import type { Command } from 'commander'
import { UnsupportedByStoreError } from '../../core/errors.js'
import type { Mill } from '../../mill/mill.js'
import type { Repair } from '../../stores/contract/store-health.js'
import { type MillFlags, millCommand, withJson, withMill } from '../mill-command.js'
import { printFindings } from '../output/finding-list.js'

export function addFsck(program: Command): void {
  const command = millCommand(program, 'fsck', 'Check whether what the store holds fits together')
    .option('--queue <queue>', 'check this queue only, declared or not')
    .option('--repair', 'mend what is safe to mend, then check')
    .addHelpText(
      'after',
      `
  Without --repair it only reads. It goes a little at a time, while work goes on, and takes as long as there are jobs.
  --repair loses no job and runs none twice: it counts counters again, and gives a running job that has no lease one, after
  whose end a claim takes it back (Redis: 30 s, as its worker may live; SQLite: at once, if no worker is known). What it
  leaves needs a person. Ends with 1 if an error is found, or left.

Examples:
  $ millrace fsck
  $ millrace fsck --queue default --json
  $ millrace fsck --repair`,
    )
  withJson(
    command,
    'print {"store","findings":[{"level","what","text"}]}, with --repair also "mended":[{"what","text"}]',
  )
  command.action((flags: MillFlags & { queue?: string; repair?: boolean }) =>
    withMill(flags, async (mill, terminal) => {
      if (flags.repair) return printFindings(mill, terminal, 'fsck', repaired(mill, flags.queue))
      const health = await mill.health()
      return printFindings(
        mill,
        terminal,
        'fsck',
        health?.check(flags.queue).then((left) => ({ left })),
      )
    }),
  )
}

/** Throws `UnsupportedByStoreError` for a store that mends nothing. */
async function repaired(mill: Mill, queue: string | undefined): Promise<Repair> {
  const health = await mill.health()
  if (health?.repair === undefined)
    throw new UnsupportedByStoreError(mill.store.text, '--repair', 'Run `millrace fsck` without it.')
  return health.repair(queue)
}
