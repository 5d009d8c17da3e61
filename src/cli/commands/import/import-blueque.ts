/**
 * The command `import blueque`: prints the waiting tasks of a Blueque as lines for `enqueue - --envelope`. It writes
 * nothing anywhere.
 */

import type { Command } from 'commander'
import { messageOf } from '../../../core/messages/describe.js'
import { defined } from '../../../core/values/defined.js'
import { isJobId, isQueueName, isTaskName, jobIdForm, queueNameForm, taskNameForm } from '../../../core/values/ids.js'
import { exactJson } from '../../../core/values/json.js'
import { printable } from '../../printable.js'
import { exitCodes, UsageError } from '../../process/exit-code.js'
import { packedInput } from '../../streaming/envelopes.js'
import { count, counted } from '../../terminal/figures.js'
import { Terminal } from '../../terminal/terminal.js'
import { type BluequeCounts, BluequeServer, type BluequeTask } from './blueque-server.js'

interface BluequeFlags {
  readonly queue?: string
  readonly to?: string
  readonly task?: string
  readonly text?: boolean
  readonly reserved?: boolean
  readonly failed?: boolean
}

const urlVariable = 'BLUEQUE_URL'
const mostShown = 20

export function addImportBlueque(imports: Command): void {
  imports
    .command('blueque [url]')
    .description('Print the waiting tasks of a Blueque, one per line, for `millrace enqueue - --envelope`')
    .option('--queue <name>', 'only this queue of Blueque (default: all)')
    .option('--to <queue>', 'with --queue: the queue for its jobs (default: the same name)')
    .option('--task <name>', 'the task of the jobs (default: the name of their queue)')
    .option('--text', 'take parameters as text; otherwise they must be JSON')
    .option('--reserved', 'also tasks that a listener has taken and no process has begun; first stop all listeners')
    .option('--failed', 'also failed tasks, to be run again')
    .addHelpText(
      'after',
      `
  Reads the Redis at the address, or at the address in ${urlVariable}, and changes nothing there. Jobs keep the ids of their
  tasks, so enqueueing the lines again changes nothing. Started tasks go on in their own processes and are not printed.

Examples:
  $ millrace import blueque redis://old-host:6379 --queue video --task encode > video.ndjson
  $ millrace enqueue - --envelope < video.ndjson`,
    )
    .action(importBlueque)
}

async function importBlueque(url: string | undefined, flags: BluequeFlags): Promise<void> {
  const address = url ?? process.env[urlVariable]
  if (!address)
    throw new UsageError(
      `expected the address of its Redis: \`millrace import blueque redis://host:6379\`, or ${urlVariable}.`,
    )
  checkNames(flags)
  const terminal = new Terminal({ json: false })
  const server = await BluequeServer.reached(address)
  try {
    const queues = flags.queue === undefined ? await server.queues() : [flags.queue]
    if (queues.length === 0) process.stderr.write('there is no queue of Blueque: the key blueque_queues is empty\n')
    for (const queue of queues) await printQueue(server, queue, flags, terminal)
  } finally {
    server.close()
  }
}

/** Checked before anything is read. Throws `UsageError`. */
function checkNames({ queue, to, task }: BluequeFlags): void {
  if (to !== undefined && queue === undefined) throw new UsageError('--to is for one queue: give --queue too.')
  if (to !== undefined && !isQueueName(to)) throw new UsageError(`--to must be ${queueNameForm}; got '${to}'.`)
  if (task !== undefined && !isTaskName(task)) throw new UsageError(`--task must be ${taskNameForm}; got '${task}'.`)
}

async function printQueue(
  server: BluequeServer,
  queue: string,
  flags: BluequeFlags,
  terminal: Terminal,
): Promise<void> {
  const to = flags.to ?? queue
  const say = (text: string) => process.stderr.write(`${printable(text)}\n`)
  if (!isQueueName(to)) {
    process.exitCode = exitCodes.failed
    say(`${queue}: left out, because the name of a queue must be ${queueNameForm}; use --queue '${queue}' --to another`)
    return
  }
  const target = { queue: to, task: flags.task ?? to, isText: flags.text ?? false }
  const mistakes: string[] = []
  const print = async (batches: AsyncIterable<readonly BluequeTask[]>) => {
    let printed = 0
    for await (const tasks of batches) {
      const lines = tasks.map((task) => bluequeEnvelope(task, target))
      mistakes.push(...lines.flatMap((line) => ('mistake' in line ? [line.mistake] : [])))
      const envelopes = lines.flatMap((line) => ('envelope' in line ? [line.envelope] : []))
      await terminal.stream(envelopes)
      printed += envelopes.length
    }
    return printed
  }
  const counts = await server.counts(queue)
  const reserved = flags.reserved ? await print(server.reserved(queue)) : undefined
  const pending = await print(server.pending(queue))
  const scheduled = await print(server.scheduled(queue))
  const failed = flags.failed ? await print(server.failed(queue)) : undefined
  const printed = { pending, scheduled, ...defined({ reserved, failed }) }
  say(`${queue}: printed ${listed(printed)}; left ${listed(leftOf(counts, printed))}`)
  for (const mistake of mistakes.slice(0, mostShown)) say(`${queue}: left out: ${mistake}`)
  if (mistakes.length > mostShown) say(`${queue}: and ${counted(mistakes.length - mostShown, 'task')} more left out`)
  if (mistakes.length > 0) process.exitCode = exitCodes.failed
}

/** The target of one Blueque queue: the queue, the task and the form of the input for its jobs. */
interface BluequeTarget {
  readonly queue: string
  readonly task: string
  /** Whether parameters are always text; otherwise they are JSON. */
  readonly isText: boolean
}

/** The envelope, or the reason why there is none. */
export function bluequeEnvelope(
  { id, record, eta }: BluequeTask,
  { queue, task, isText }: BluequeTarget,
): { readonly envelope: object } | { readonly mistake: string } {
  if (record === undefined) return { mistake: `task '${id}' has no record: its key blueque_task_${id} is not there` }
  if (!isJobId(id)) return { mistake: `task '${id}': its id must be ${jobIdForm}` }
  const { parameters = '' } = record
  try {
    const input = packedInput(isText ? parameters : exactJson(parameters))
    const due =
      eta === undefined ? { state: 'ready' } : { state: 'scheduled', runAt: new Date(eta * 1_000).toISOString() }
    return { envelope: { task, queue, id, ...due, input } }
  } catch (error) {
    // The message does not show the parameters, which may be secret.
    const why =
      error instanceof SyntaxError ? 'its parameters are no JSON; --text takes them as they are' : messageOf(error)
    return { mistake: `task '${id}': ${why}` }
  }
}

function leftOf(counts: BluequeCounts, printed: object): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(counts).filter(([state]) => !(state in printed)))
}

function listed(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([state, number]) => `${count(number)} ${state}`)
    .join(', ')
}
