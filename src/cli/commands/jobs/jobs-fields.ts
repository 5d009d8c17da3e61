/** The command `jobs fields`: shows and changes the fields of a job. */

import type { Command } from 'commander'
import type { FieldChanges } from '../../../core/job-fields.js'
import { exactJson } from '../../../core/values/exact-json.js'
import { type MillFlags, withJson, withMill } from '../../mill-command.js'
import { OperationError, UsageError } from '../../output/exit-code.js'
import { counted } from '../../output/figures.js'
import { printable } from '../../output/printable.js'
import { jobCommand, jobNamed } from './job-named.js'

export function addFields(jobs: Command): void {
  const command = jobCommand(
    jobs,
    'fields',
    '<id> [changes...]',
    'Show or set the fields of a job: small named values',
  ).addHelpText(
    'after',
    `
  A value that is a JSON string, number, boolean or null is read as JSON, any other as text; null removes the field.

Examples:
  $ millrace jobs fields video encode-7 node=eu-3 cost=0.25
  $ millrace jobs fields video encode-7 node=null`,
  )
  withJson(command, 'print {"queue","id","fields"}').action((words: [string, ...string[]], flags: MillFlags) =>
    withMill(flags, async (mill, terminal) => {
      const { queue: name, id, rest } = await jobNamed(mill, 'jobs', words)
      const changes = changesIn(rest)
      const { jobs } = mill.queue(name)
      const isThere = rest.length === 0 || (await jobs.setFields(id, changes))
      const job = isThere ? await jobs.get(id) : undefined
      if (job === undefined) throw new OperationError(`nothing is kept of a job '${id}' in queue '${name}'.`)
      const { fields = {} } = job
      terminal.print({ queue: name, id, fields }, () => [
        `${name}: job ${printable(id)} has ${counted(Object.keys(fields).length, 'field')}.`,
        ...Object.entries(fields).map(([field, value]) => `  ${field}  ${printable(String(value))}`),
      ])
    }),
  )
}

function changesIn(given: readonly string[]): FieldChanges {
  return Object.fromEntries(
    given.map((change) => {
      const end = change.indexOf('=')
      if (end < 1) throw new UsageError(`a field is set by name=value; got '${change}'.`)
      return [change.slice(0, end), valueIn(change.slice(end + 1))]
    }),
  )
}

function valueIn(text: string): FieldChanges[string] {
  try {
    const value = exactJson(text)
    // A field is no BigInt: as text it keeps its digits.
    return (typeof value === 'object' && value !== null) || typeof value === 'bigint'
      ? text
      : (value as FieldChanges[string])
  } catch {
    return text
  }
}
