/** The command `enqueue`: enqueues one job from the command line, or a stream of them. */

import { type Command, Option } from 'commander'
import { highestPriority, type JobHandle, type JobMeta, lowestPriority } from '../../core/job/job.js'
import type { AnyTask } from '../../core/task/any-task.js'
import type { AnyEnqueueOptions, EnqueueOptionsOf } from '../../core/task/enqueue-options.js'
import { made } from '../../core/task/schema.js'
import { defined } from '../../core/values/defined.js'
import type { Mill } from '../../mill/mill.js'
import { namedTask } from '../../mill/named-task.js'
import { durationFlag, eachFlag, expiryFlag, jsonGiven, numberFlag, wholeFlag } from '../flags.js'
import { type MillFlags, millCommand, withJson, withMill } from '../mill-command.js'
import { printable } from '../printable.js'
import { UsageError } from '../process/exit-code.js'
import type { Terminal } from '../terminal/terminal.js'
import { fieldsIn } from './jobs/filter-flags.js'

interface EnqueueFlags extends MillFlags {
  readonly queue?: string
  readonly delay?: number
  readonly runAt?: string
  readonly expiresIn?: number | 'never'
  readonly priority?: number
  readonly id?: string
  readonly ifWaiting?: 'keep' | 'replace'
  readonly atMost?: number
  readonly idempotency?: number
  readonly score?: number
  readonly meta?: string
  readonly field?: readonly string[]
  readonly envelope?: boolean
  readonly key?: string
  readonly newIds?: boolean
  readonly fromLine: number
  readonly skipInvalid?: boolean
}

export function addEnqueue(program: Command): void {
  const command = millCommand(program, 'enqueue <task> [json]', 'Enqueue one job, or a stream of them')
    .usage('<task> [json|@file|-] [options]\n       millrace enqueue - --envelope [options]')
    .option('--queue <queue>', "instead of the task's queue; the task then needs no definition")
    .addOption(
      new Option('--delay <duration>', 'run it after this time: 500ms, 30s, 5m, 1h30m')
        .argParser(durationFlag)
        .conflicts('runAt'),
    )
    .option('--run-at <time>', 'run it at this moment or later: 2026-12-24T18:00:00Z')
    .option(
      '--expires-in <duration>',
      'cancel it if it has not begun, or is to be retried, after this time: 2m',
      expiryFlag,
    )
    .option('--priority <n>', 'higher first', wholeFlag(lowestPriority, highestPriority))
    .option('--id <id>', 'an id of your own; enqueueing it again changes nothing (ordered tasks: adds a payload)')
    .addOption(
      new Option('--if-waiting <what>', 'what happens to a waiting or dead job with the same id').choices([
        'keep',
        'replace',
      ]),
    )
    .option('--at-most <duration>', 'with --if-waiting replace: put --delay off no longer than this: 1m', durationFlag)
    .option('--idempotency <duration>', 'how long --id is remembered after the job has ended: 7d', durationFlag)
    .option('--score <n>', 'the order among the payloads of its id (ordered tasks)', numberFlag)
    .option('--meta <json>', 'an object stored with the input')
    .option('--field <name=value>', 'a field of the job, by which lists choose jobs; may be repeated', eachFlag)
    .option(
      '--envelope',
      'each line of standard input has its own task, queue, id and so on, as written by jobs list --envelope',
    )
    .option('--key <field>', 'of a stream: take ids from this field of each input: order.id')
    .option('--new-ids', 'of a stream: use new ids, so the same lines are added again')
    .option('--from-line <n>', 'of a stream: begin with this line', wholeFlag(1, Number.MAX_SAFE_INTEGER), 1)
    .option('--skip-invalid', 'of a stream: leave out wrong lines, and list them')
    .addHelpText(
      'after',
      `
  - reads one input per line from standard input. Sending the same lines again adds nothing: the id of a job is made from the
  number and the text of its line. With --id all of standard input is one input.

Examples:
  $ millrace enqueue send-email '{"to":"ada@example.org","subject":"Hello"}' --delay 5m
  $ millrace enqueue send-email @mail.json --id welcome-42 --field order=4711
  $ millrace enqueue resize - --queue low < files.ndjson
  $ millrace jobs list low --envelope | millrace enqueue - --envelope --config new.config.ts`,
    )
  withJson(command, 'print {"id","queue","task","outcome"}').action(
    (task: string, json: string | undefined, flags: EnqueueFlags) =>
      isStream(task, json, flags) ? enqueueStream(task, flags) : enqueue(task, json, flags),
  )
}

const streamFlags = ['envelope', 'key', 'newIds', 'skipInvalid'] as const
/** Flags whose values each line of an envelope has itself. */
const lineFlags = [
  'delay',
  'runAt',
  'expiresIn',
  'priority',
  'id',
  'ifWaiting',
  'atMost',
  'idempotency',
  'score',
  'meta',
  'field',
  'key',
] as const

/** Whether lines of standard input are enqueued. Throws `UsageError` for words that do not go together. */
function isStream(task: string, json: string | undefined, flags: EnqueueFlags): boolean {
  if (flags.envelope) {
    if (task !== '-' || json !== undefined) throw new UsageError('--envelope is for `millrace enqueue - --envelope`.')
    const flag = lineFlags.find((name) => flags[name] !== undefined)
    if (flag !== undefined) throw new UsageError(`${dashed(flag)} does not go with --envelope: each line has its own.`)
    return true
  }
  if (json === '-' && flags.meta === '-') throw new UsageError('only one of <json> and --meta can be standard input.')
  const ofStream =
    streamFlags.find((name) => flags[name] !== undefined) ?? (flags.fromLine > 1 ? 'fromLine' : undefined)
  const isLines = json === '-' && flags.id === undefined
  if (ofStream !== undefined && !isLines)
    throw new UsageError(
      `${dashed(ofStream)} is for lines of standard input: \`millrace enqueue <task> -\`, without --id.`,
    )
  if (flags.key !== undefined && flags.newIds) throw new UsageError('only one of --key and --new-ids can be given.')
  return isLines
}

/** `--from-line` */
function dashed(flag: string): string {
  return `--${flag.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

async function enqueueStream(task: string, flags: EnqueueFlags): Promise<void> {
  const { enqueueLines } = await import('../streaming/enqueue-lines.js')
  const options = await optionsOf(flags)
  const send = async (mill: Mill, terminal: Terminal) => {
    // Reports a mistake in the task before anything is read.
    if (!flags.envelope)
      refuseNoId(namedTask(mill, task, flags.queue), flags.key, '--key from which field the id is taken')
    const { key, newIds = false, fromLine, skipInvalid = false, envelope } = flags
    const request = { task: envelope ? undefined : task, key, newIds, options, fromLine, skipInvalid }
    await enqueueLines(mill, request, terminal)
  }
  await withMill(flags, send, { isLong: true })
}

async function enqueue(taskName: string, json: string | undefined, flags: EnqueueFlags): Promise<void> {
  const input = json === undefined ? undefined : await jsonGiven(json, 'the input')
  const options = await optionsOf(flags)
  const { queue, id } = flags
  await withMill(flags, async (mill, terminal) => {
    const task = namedTask(mill, taskName, queue)
    refuseNoId(task, id, '--id to which id the payload belongs')
    if (json === undefined) await refuseNoInput(task)
    // The mill refuses options that do not suit the kind of the task.
    const job = await mill.enqueue(task, input, options as EnqueueOptionsOf<AnyTask>)
    terminal.print({ id: job.id, queue: job.queue, task: task.name, outcome: job.outcome }, () => [
      lineOf(job, terminal),
    ])
  })
}

function refuseNoId(task: AnyTask, id: string | undefined, remedy: string): void {
  if (task.kind === 'ordered' && task.id === undefined && id === undefined)
    throw new UsageError(`queue '${task.queue}' is ordered: say with ${remedy}.`)
}

/** A task without a schema, or whose schema accepts nothing as well, needs no input. */
async function refuseNoInput({ name, input: schema }: AnyTask): Promise<void> {
  const result = schema === undefined ? undefined : await made(schema, undefined)
  if (result?.issues === undefined) return
  throw new UsageError(`the input is missing: \`millrace enqueue ${name} <json>\`, or '-' for lines of standard input.`)
}

/** The options that the flags give to every job. */
async function optionsOf(flags: EnqueueFlags): Promise<AnyEnqueueOptions> {
  const meta = flags.meta === undefined ? undefined : await jsonGiven(flags.meta, '--meta')
  const { queue, id, ifWaiting, atMost, idempotency, score, priority, delay, runAt, expiresIn, field } = flags
  return {
    ...defined({ queue, id, ifWaiting, atMost, idempotency, score, priority, delay, runAt, expiresIn }),
    ...(meta !== undefined && { meta: meta as JobMeta }),
    ...(field !== undefined && { fields: fieldsIn(field) }),
  }
}

/** The outcome, in words. */
function lineOf({ id, queue, outcome }: JobHandle, { colors }: Terminal): string {
  const shownId = printable(id)
  if (outcome === 'added') return `${colors.green('added')} ${shownId} to ${queue}`
  if (outcome === 'merged') return `${colors.green('merged')} into ${shownId} in ${queue}, which waits or runs`
  if (outcome === 'replaced') return `${colors.green('replaced')} ${shownId} in ${queue}, which waited or was dead`
  return `${colors.yellow('duplicate')}: ${shownId} is in ${queue} already, or was just done; nothing changed`
}
