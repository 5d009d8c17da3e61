/** The command `morgue`: lists, revives and deletes dead jobs. */

import { type Command, Option } from 'commander'
import { type MillFlags, millCommand, withJson, withMill } from '../../mill-command.js'
import { OperationError } from '../../process/exit-code.js'
import { recordLines } from '../../terminal/record-lines.js'
import { addJobAction } from './job-action.js'
import { type ListFlags, listPages, withPaging } from './job-list.js'
import { jobCommand, oneJobNamed } from './job-named.js'
import { otherInput } from './one-job-commands.js'

export function addMorgue(program: Command): void {
  const morgue = program.command('morgue').description('Look at dead jobs, revive or delete them').helpCommand(false)
  const list = millCommand(morgue, 'list [queue]', 'List the dead jobs of a queue, or of all, the latest first')
    .addOption(new Option('--by <order>', 'the order').choices(['id', 'time']).default('time'))
    .addHelpText('after', '\nExample:\n  $ millrace morgue list default')
  withPaging(list).action((queue: string | undefined, flags: ListFlags & { by: 'id' | 'time' }) =>
    listPages(queue, flags, (mill, name, paging) => mill.queue(name).morgue.list({ ...paging, by: flags.by })),
  )
  const show = jobCommand(morgue, 'show', '<id>', 'Show everything that is known of a dead job')
    .option('--log', 'print all of the kept log, not only the last 20 lines')
    .addHelpText('after', '\nExample:\n  $ millrace morgue show default welcome-42')
  withJson(show, 'print the job record').action((words: [string, ...string[]], flags: MillFlags & { log?: boolean }) =>
    withMill(flags, async (mill, terminal) => {
      const { queue, id } = await oneJobNamed(mill, 'morgue', words)
      const job = await mill.queue(queue).morgue.get(id)
      if (job === undefined) throw new OperationError(`there is no job '${id}' in the morgue of queue '${queue}'.`)
      terminal.print(job, () => recordLines(job, terminal, flags))
    }),
  )
  addJobAction(morgue, {
    verb: 'revive',
    summary: 'Put dead jobs back into their queue, with all attempts',
    done: 'revived',
    takes: ['dead'],
    not: 'not in the morgue of',
    facet: 'morgue',
    all: 'all dead jobs of the queue',
    stays: 'a job that it waits for was cancelled, deleted or has expired, and cannot come any more',
    options: [
      ['--members', 'also the dead jobs that these waited for, first'],
      ['--input <json>', 'of one job: it begins anew with this input: JSON, @file, or - for standard input'],
    ],
    act: async (queue, which, { members, input }) =>
      queue.morgue.revive(which, { members, ...(await otherInput(input)) }),
  })
  addJobAction(morgue, {
    verb: 'delete',
    summary: 'Remove dead jobs for good',
    done: 'deleted',
    takes: ['dead'],
    not: 'not in the morgue of',
    facet: 'morgue',
    all: 'all dead jobs of the queue',
    victims: ({ dead }) => dead,
    act: (queue, which) => queue.morgue.delete(which),
  })
}
