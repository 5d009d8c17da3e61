/** The command `queues create`: creates the declared queues on a store that does not create them itself. */

import type { Command } from 'commander'
import type { ProvisionedQueue } from '../../../stores/contract/provision.js'
import { type MillFlags, millCommand, withJson, withMill } from '../../mill-command.js'
import { UsageError } from '../../output/exit-code.js'
import { counted } from '../../output/figures.js'
import { type Column, table } from '../../output/table.js'

const columns: readonly Column<ProvisionedQueue>[] = [
  { title: 'queue', cell: ({ queue }) => queue },
  { title: 'in the store', cell: ({ name }) => name },
  { title: 'its dead', cell: ({ deadName }) => deadName },
  { title: '', cell: ({ wasMissing }) => (wasMissing ? 'made' : 'was there') },
]

export function addCreate(queues: Command): void {
  const create = millCommand(queues, 'create', 'Create the declared queues in SQS')
  create.option('--tag <key=value>', 'a tag for the created queues; may be repeated', tagFlag)
  create.addHelpText(
    'after',
    `
  Creates each missing queue with its dead-letter queue; existing ones stay as they are.
  Other stores create a queue when it is first used, and have nothing to do.

Example:
  $ MILLRACE_STORE=sqs://eu-central-1 millrace queues create`,
  )
  withJson(create, 'print {"queues":[{"queue","name","deadName","wasMissing"}]}').action(
    (flags: MillFlags & { tag?: Record<string, string> }) =>
      withMill(flags, async (mill, terminal) => {
        const made = await mill.createQueues(flags.tag)
        terminal.print({ queues: made }, () => {
          if (made.length === 0) return ['Nothing to do: this store makes a queue when it is first used.']
          const count = made.filter(({ wasMissing }) => wasMissing).length
          return [
            ...table(columns, made, { width: terminal.columns, paintTitle: terminal.colors.dim }),
            `${counted(count, 'queue')} made.`,
          ]
        })
      }),
  )
}

/** Adds a tag to those before it. */
function tagFlag(given: string, tags: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, key, value] = /^([^=]{1,128})=(.{0,256})$/s.exec(given) ?? []
  if (key === undefined || value === undefined)
    throw new UsageError(`--tag must be key=value, with at most 128 and 256 characters; got '${given}'.`)
  return { ...tags, [key]: value }
}
