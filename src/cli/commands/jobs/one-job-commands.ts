/** The commands on one job: enqueueing it again, ending its run as a failure, its fields, its signals and its steps. */

import type { Command } from 'commander'
import type { JobRecord } from '../../../core/job/job.js'
import type { FieldChanges } from '../../../core/job/job-fields.js'
import { messageOf } from '../../../core/messages/describe.js'
import { defined } from '../../../core/values/defined.js'
import { exactJson } from '../../../core/values/json.js'
import { sendNamedSignal } from '../../../mill/named-task.js'
import { durationFlag, jsonGiven } from '../../flags.js'
import { type MillFlags, withJson, withMill } from '../../mill-command.js'
import { printable } from '../../printable.js'
import { OperationError, UsageError } from '../../process/exit-code.js'
import { counted, fromNow } from '../../terminal/figures.js'
import { jobCommand, jobNamed, oneJobNamed } from './job-named.js'

export function addEnqueueAgain(jobs: Command): void {
  const command = jobCommand(jobs, 'enqueue-again', '<id>', 'Enqueue a job like this one, with its input or another')
    .option('--input <json>', 'its input instead: JSON, @file, or - for standard input')
    .addHelpText(
      'after',
      `
  The new job has an id of its own, and the task, queue, meta and priority of the old one, which stays as it is. The schema
  of the task checks the input.

Examples:
  $ millrace jobs enqueue-again default welcome-42
  $ millrace jobs enqueue-again default welcome-42 --input '{"to":"ada@example.com"}'`,
    )
  withJson(command, 'print {"queue","id","repeatOf"}').action(
    async (words: [string, ...string[]], flags: MillFlags & { readonly input?: string }) => {
      const other = await otherInput(flags.input)
      await withMill(flags, async (mill, terminal) => {
        const { queue, id } = await oneJobNamed(mill, 'jobs', words)
        const job = await mill.queue(queue).jobs.enqueueAgain(id, other)
        if (job === undefined)
          throw new OperationError(
            `nothing is kept of a job '${id}' in queue '${queue}' but its id, or it never existed.`,
          )
        terminal.print({ queue, id: job.id, repeatOf: id }, () => [
          `${queue}: job ${printable(job.id)} was enqueued, like ${printable(id)}.`,
        ])
      })
    },
  )
}

/** The input of `--input`; none if the flag was not given. Throws `UsageError`. */
export async function otherInput(given: string | undefined): Promise<{ readonly input?: unknown }> {
  return given === undefined ? {} : { input: await jsonGiven(given, '--input') }
}

interface FailFlags extends MillFlags {
  readonly reason: string
  readonly delay: number
  readonly last?: boolean
}

export function addFail(jobs: Command): void {
  const fail = jobCommand(jobs, 'fail', '<id>', 'End the current run of a job as a failure, from outside')
    .option('--reason <text>', 'the error in its record', 'failed by an operator')
    .option('--delay <duration>', 'due again after this time', durationFlag, 0)
    .option('--last', 'leave no attempts: bury it, in an ordered queue only its oldest payload')
    .option('--no-last', 'leave attempts: run it again, even if it is isolated or a listener has it')
    .addHelpText(
      'after',
      `
  Later reports of its worker about that run are refused. The handler learns of it at its next beat; a process of its own is
  killed then. By default a job dies at once if its declared task has no attempts left, if it is isolated, or if a listener
  has it.

Examples:
  $ millrace jobs fail default welcome-42 --delay 10m
  $ millrace jobs fail default welcome-42 --last --reason "the address does not exist"`,
    )
  withJson(fail, 'print {"queue","id","failed"}').action((words: [string, ...string[]], flags: FailFlags) =>
    withMill(flags, async (mill, terminal) => {
      const { reason, delay, last } = flags
      const { queue: name, id } = await oneJobNamed(mill, 'jobs', words)
      const { jobs } = mill.queue(name)
      if (!(await jobs.fail(id, reason, { delay, ...defined({ last }) })))
        throw new OperationError(`job '${id}' does not run in queue '${name}'; nothing was changed.`)
      const job = terminal.json ? undefined : await jobs.get(id)
      terminal.print({ queue: name, id, failed: true }, () => [
        `${name}: job ${printable(id)} failed.${job === undefined ? '' : ` ${afterFailure(job)}`}`,
      ])
    }),
  )
}

function afterFailure({ queue, id, state, attempt, runAt }: JobRecord): string {
  if (state === 'dead') return `It is dead; to run it again: \`millrace morgue revive ${queue} ${printable(id)}\`.`
  return `Its attempt ${attempt} is due ${fromNow(runAt, Date.now())}.`
}

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
      return [change.slice(0, end), fieldValueIn(change.slice(end + 1))]
    }),
  )
}

/** The value of a field, from the command line: JSON of a text, a number, a boolean or null; else the text itself. */
export function fieldValueIn(text: string): FieldChanges[string] {
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

/** How a signal that a job takes is told. */
const takenSignals = {
  delivered: 'was delivered: the job waited for it, and is ready',
  kept: 'is kept: the job finds it when it waits for it',
  duplicate: 'was there already: the first stays',
} as const
const refusedSignals = {
  full: 'was not taken: the job keeps 64 signals, or 4 MiB of their data, and does not wait for this one',
  gone: 'was not taken: the job has completed, was cancelled or never existed, or its wait for this signal is over',
} as const

export function addSignal(jobs: Command): void {
  const command = jobCommand(
    jobs,
    'signal',
    '<id> <signal> [data]',
    'Send a signal to a job, whose handler waits for it by ctx.waitFor()',
  ).addHelpText(
    'after',
    `
  The signal is one of \`signals\` of the job's task, whose schema checks the data: JSON, or nothing.

Examples:
  $ millrace jobs signal orders order-4711 approved '{"yes":true}'
  $ millrace jobs signal order-4711 shipped`,
  )
  withJson(command, 'print {"queue","id","signal","answer"}').action((words: [string, ...string[]], flags: MillFlags) =>
    withMill(flags, async (mill, terminal) => {
      const { queue, id, rest } = await jobNamed(mill, 'jobs', words)
      const [signal, text, more] = rest
      if (signal === undefined) throw new UsageError('the name of the signal is missing; it follows the id.')
      if (more !== undefined) throw new UsageError(`'${more}' is too much: the data is one word of JSON, in quotes.`)
      const answer = await sendNamedSignal(mill, { queue, id }, signal, text === undefined ? undefined : dataIn(text))
      const told = (words: string) =>
        `signal '${printable(signal)}' to job '${printable(id)}' in queue '${queue}' ${words}.`
      if (answer === 'full' || answer === 'gone') throw new OperationError(told(refusedSignals[answer]))
      terminal.print({ queue, id, signal, answer }, () => [told(takenSignals[answer])])
    }),
  )
}

function dataIn(text: string): unknown {
  try {
    return exactJson(text)
  } catch (error) {
    throw new UsageError(`the data must be JSON, such as '{"yes":true}' or '"a text"': ${messageOf(error)}.`)
  }
}

export function addForgetStep(jobs: Command): void {
  const command = jobCommand(
    jobs,
    'forget-step',
    '<id> <step>',
    'Forget a stored step or sleep of a job, so that its next run makes it again, or a signal',
  )
    .option('--signal', 'a signal, or that nobody has sent it in time: the next run waits for it anew')
    .addHelpText(
      'after',
      `
  For a job whose code has changed, or a step whose stored result is wrong, or a signal whose data no schema accepts any more.
  A run that is under way has read its steps and signals already.

Examples:
  $ millrace jobs forget-step orders order-4711 charge
  $ millrace jobs forget-step orders order-4711 approved --signal`,
    )
  withJson(command, 'print {"queue","id","step"}, with --signal {"queue","id","signal"}').action(
    (words: [string, ...string[]], flags: MillFlags & { readonly signal?: boolean }) =>
      withMill(flags, async (mill, terminal) => {
        const { queue, id, rest } = await jobNamed(mill, 'jobs', words)
        const [name, more] = rest
        const { signal = false } = flags
        const what = signal ? 'signal' : 'step'
        if (name === undefined) throw new UsageError(`the name of the ${what} is missing; it follows the id.`)
        if (more !== undefined) throw new UsageError(`'${more}' is too much: one ${what} is expected.`)
        if (!(await mill.queue(queue).jobs.forgetStep(id, name, { signal })))
          throw new OperationError(
            `job '${id}' in queue '${queue}' has no ${signal ? 'signal' : 'step or sleep'} '${name}'; nothing was changed.${signal ? '' : ' To forget a signal, add --signal.'}`,
          )
        terminal.print({ queue, id, [what]: name }, () => [
          `${queue}: ${what} '${printable(name)}' of job ${printable(id)} is forgotten.`,
        ])
      }),
  )
}
