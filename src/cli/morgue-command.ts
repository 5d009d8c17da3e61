/** The command `morgue`: dead jobs, to look at, to give another life, or to remove. */

import { type Command, Option } from 'commander'
import type { QueueAdmin } from '../client/queue-admin.js'
import { OperationError, UsageError } from './exit-code.js'
import { counted } from './figures.js'
import { type ListFlags, listPages, withPaging } from './jobs-command.js'
import { type MillFlags, millCommand, withJson, withMill } from './mill-command.js'

interface WhereFlags extends MillFlags {
  readonly all?: boolean
}

export function addMorgue(program: Command): void {
  const morgue = program.command('morgue').description('Look at dead jobs, revive or delete them').helpCommand(false)
  const list = millCommand(morgue, 'list [queue]', 'List the dead jobs of a queue, or of all, the latest first')
    .addOption(new Option('--by <order>', 'the order').choices(['id', 'time']).default('time'))
    .addHelpText('after', '\nExample:\n  $ millrace morgue list default')
  withPaging(list).action((queue: string | undefined, flags: ListFlags & { by: 'id' | 'time' }) =>
    listPages(queue, flags, (mill, name, paging) => mill.queue(name).morgue.list({ ...paging, by: flags.by })),
  )
  addChange(morgue, 'revive', 'Put dead jobs back into their queue, with all attempts', 'revived')
  addChange(morgue, 'delete', 'Remove dead jobs for good', 'deleted')
}

function addChange(morgue: Command, verb: 'revive' | 'delete', summary: string, done: string): void {
  const command = millCommand(morgue, `${verb} <queue> [ids...]`, summary)
    .option('--all', 'all dead jobs of the queue')
    .addHelpText(
      'after',
      `\nExamples:\n  $ millrace morgue ${verb} default welcome-42\n  $ millrace morgue ${verb} default --all`,
    )
  withJson(command, `print {"queue","${done}"}`).action((queue: string, ids: string[], flags: WhereFlags) =>
    withMill(flags, async (mill, terminal) => {
      const changed = await change(mill.queue(queue), verb, whereOf(ids, flags))
      terminal.print({ queue, [done]: changed }, () => [`${done} ${counted(changed, 'job')} of ${queue}`])
      const asked = new Set(ids).size
      if (changed < asked)
        throw new OperationError(`${asked - changed} of ${counted(asked, 'job')} are not in the morgue of '${queue}'.`)
    }),
  )
}

function change(queue: QueueAdmin, verb: 'revive' | 'delete', where: string[] | 'all'): Promise<number> {
  return verb === 'revive' ? queue.morgue.revive(where) : queue.morgue.delete(where)
}

function whereOf(ids: string[], { all = false }: WhereFlags): string[] | 'all' {
  if (all === ids.length > 0) throw new UsageError('say which jobs: either their ids or --all.')
  return all ? 'all' : [...new Set(ids)]
}
