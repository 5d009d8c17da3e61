/** The command `fsck`: checks whether the contents of the store are consistent, and mends what is safe to mend. */

import type { Command } from 'commander'
import { UnsupportedByStoreError } from '../../core/errors.js'
import type { Mill } from '../../mill/mill.js'
import type { Repair } from '../../stores/contract/store-health.js'
import { type MillFlags, millCommand, withJson, withMill } from '../mill-command.js'
import { printFindings } from '../terminal/finding-list.js'

export function addFsck(program: Command): void {
  const command = millCommand(program, 'fsck', 'Check whether the contents of the store are consistent')
    .option('--queue <queue>', 'check only this queue, declared or not')
    .option('--repair', 'mend what is safe to mend, then check')
    .addHelpText(
      'after',
      `
  Without --repair it only reads. It works in small steps while jobs go on; its duration grows with the number of jobs.
  --repair loses no job and runs none twice. It corrects counters. A running job without a lease gets one, and a claim takes
  it back at the end of that lease (Redis and Postgres: 30 s, because its worker may live; SQLite: at once, if no worker is
  known). The other findings need a person. Exits with 1 if an error is found, or left.

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
