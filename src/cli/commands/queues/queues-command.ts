/** The command `queues`: lists the queues of configuration and store, and what an operator does to a whole queue. */

import type { Command } from 'commander'
import { mostShards } from '../../../client/admin/queue-admin.js'
import type { QueueLook } from '../../../client/admin/queue-looks.js'
import type { LongActionOptions } from '../../../client/admin/step-loop.js'
import { hasCode } from '../../../core/errors.js'
import { defined } from '../../../core/values/defined.js'
import { workersByQueue } from '../../../measures/worker-counts.js'
import type { Mill } from '../../../mill/mill.js'
import { attendanceOf } from '../../../runtime/process/process-peers.js'
import type { ProvisionedQueue } from '../../../stores/contract/provision.js'
import type { StoredQueue } from '../../../stores/contract/queue-settings.js'
import { waitingIn } from '../../../stores/rules/queue-counts.js'
import { wholeFlag } from '../../flags.js'
import { type MillFlags, millCommand, withJson, withMill } from '../../mill-command.js'
import { OperationError, type StopSignal, stopSignals, UsageError } from '../../process/exit-code.js'
import { confirm } from '../../terminal/confirmation.js'
import { count, counted } from '../../terminal/figures.js'
import { type Column, table } from '../../terminal/table.js'
import type { Terminal } from '../../terminal/terminal.js'
import { addLimits } from './limits-command.js'
import { differs } from './queue-findings.js'
import { addThrottle } from './throttle-command.js'

export function addQueues(program: Command): void {
  const queues = program.command('queues').description('Look at queues, and stop or change them').helpCommand(false)
  addList(queues)
  addHolds(queues)
  addDrain(queues)
  addClear(queues)
  addCreate(queues)
  addThrottle(queues)
  addLimits(queues)
  addReshard(queues)
  addMove(queues)
}

function addList(queues: Command): void {
  const list = millCommand(queues, 'list', 'List the declared and stored queues').addHelpText(
    'after',
    `
  It only reads. waiting: ready, scheduled, or for other jobs or a signal · workers: those that serve it, without dead ones of this machine
  \`millrace stats\` shows all counts of a queue, \`millrace workers\` each worker.

Example:
  $ millrace queues list`,
  )
  withJson(
    list,
    'print {"queues":[{"queue","kind","order","exclusive","shards","configuredShards","waiting","running","workers","paused","draining","resharding","declared","stored"}]}',
  ).action((flags: MillFlags) =>
    withMill(flags, async (mill, terminal) => {
      const rows = await queueRows(mill)
      terminal.print({ queues: rows }, () => queueLines(rows, terminal))
    }),
  )
}

/** The part that only declared queues have. */
interface Use {
  readonly waiting: number
  readonly running: number
  readonly workers: number
}

type QueueTableRow = Pick<StoredQueue, 'kind' | 'order' | 'shards' | 'paused' | 'draining' | 'resharding'> &
  Partial<Use> & {
    readonly queue: string
    /** Of an ordered queue. */
    readonly exclusive?: StoredQueue['exclusive']
    /** Whether the configuration has it, and whether the store does. */
    readonly declared: boolean
    readonly stored: boolean
    /** The number of shards that the configuration asks for, if the queue has another. */
    readonly configuredShards?: number
  }

const unused: Use = { waiting: 0, running: 0, workers: 0 }

/** The declared queues in their order, then the others. */
async function queueRows(mill: Mill): Promise<QueueTableRow[]> {
  const stored = await mill.storedQueues()
  const byName = new Map(stored?.map((queue) => [queue.name, queue]))
  const declared = [...mill.queues.values()].map(async ({ name, ordered, order, shards }): Promise<QueueTableRow> => {
    const found = byName.get(name)
    const asIs = { kind: ordered ? 'ordered' : 'plain', order, shards, paused: false, draining: false } as const
    if (stored !== undefined && found === undefined)
      return { queue: name, ...asIs, ...unused, declared: true, stored: false }
    const use = useOf(await mill.queue(name).look())
    // Either the store keeps no records and has what is declared, or the look has failed.
    if (found === undefined) return { queue: name, ...asIs, ...use, declared: true, stored: true }
    return { ...rowOf(found, true), ...use, ...(differs(found, shards) && { configuredShards: shards }) }
  })
  const others = (stored ?? []).filter(({ name }) => !mill.queues.has(name)).map((queue) => rowOf(queue, false))
  return [...(await Promise.all(declared)), ...others]
}

function useOf({ depth, workers }: QueueLook): Use {
  return {
    waiting: waitingIn(depth),
    running: depth.running,
    workers: workersByQueue(attendanceOf(workers).serving).get(depth.queue) ?? 0,
  }
}

function rowOf(
  { name, kind, order, exclusive, shards, paused, draining, resharding }: StoredQueue,
  declared: boolean,
): QueueTableRow {
  const ofOrdered = kind === 'ordered' ? { exclusive } : {}
  const onItsWay = resharding === undefined ? {} : { resharding }
  return { queue: name, kind, order, ...ofOrdered, shards, paused, draining, ...onItsWay, declared, stored: true }
}

/** A line for each queue, with its waiting and running jobs and the number of its workers. */
function queueLines(rows: readonly QueueTableRow[], { colors, columns }: Terminal): string[] {
  const figure = (title: keyof Use, paint: (text: string, row: QueueTableRow) => string): Column<QueueTableRow> => ({
    title,
    align: 'right',
    cell: (row) => (row[title] === undefined ? '-' : count(row[title])),
    paint,
  })
  const shown: Column<QueueTableRow>[] = [
    { title: 'queue', most: 40, cell: ({ queue }) => queue },
    { title: 'kind', cell: ({ kind }) => kind },
    { title: 'order', cell: ({ order }) => order },
    { title: 'exclusive', cell: ({ exclusive = '-' }) => exclusive },
    { title: 'shards', align: 'right', cell: ({ shards }) => String(shards) },
    figure('waiting', (text) => text),
    figure('running', (text, { running = 0 }) => (running > 0 ? colors.green(text) : text)),
    figure('workers', (text, { waiting = 0, workers }) => (workers === 0 && waiting > 0 ? colors.red(text) : text)),
    { title: '', cell: noteOf, paint: (text) => colors.yellow(text) },
  ]
  return table(shown, rows, { width: columns, paintTitle: colors.dim })
}

function noteOf({ paused, draining, resharding, declared, stored, configuredShards }: QueueTableRow): string {
  return [
    paused ? 'paused' : '',
    draining ? 'draining' : '',
    resharding === undefined ? '' : `resharding to ${resharding}`,
    declared ? '' : 'not declared',
    stored ? '' : 'not stored yet',
    configuredShards === undefined ? '' : `${counted(configuredShards, 'shard')} configured`,
  ]
    .filter((word) => word !== '')
    .join(', ')
}

interface GroupFlags extends MillFlags {
  readonly group?: string
}

/** Stop a queue or one of its groups, and let it go on: `pause`, `resume` and `release`. */
function addHolds(queues: Command): void {
  const pause = millCommand(queues, 'pause <queue>', 'Start no jobs from now on; running ones go on')
    .option('--group <group>', 'only the jobs of this group; the others go on')
    .addHelpText(
      'after',
      '\nExamples:\n  $ millrace queues pause default\n  $ millrace queues pause crawl --group example.org',
    )
  withJson(pause, 'print {"queue","group","paused"}').action((name: string, { group, ...flags }: GroupFlags) =>
    withMill(flags, async (mill, terminal) => {
      await mill.queue(name).pause(group === undefined ? undefined : { group })
      const of = group === undefined ? '' : ` --group ${group}`
      terminal.print({ queue: name, ...defined({ group }), paused: true }, () => [
        `${subjectOf(name, group)}: paused until \`millrace queues resume ${name}${of}\`.`,
      ])
    }),
  )
  const resume = millCommand(queues, 'resume <queue>', 'End a pause and a drain')
    .option('--group <group>', 'end the pause of this group alone')
    .addHelpText(
      'after',
      '\nExamples:\n  $ millrace queues resume default\n  $ millrace queues resume crawl --group example.org',
    )
  withJson(resume, 'print {"queue","paused","draining"}; with --group {"queue","group","paused"}').action(
    (name: string, { group, ...flags }: GroupFlags) =>
      withMill(flags, async (mill, terminal) => {
        await mill.queue(name).resume(group === undefined ? undefined : { group })
        const about = group === undefined ? { draining: false } : { group }
        terminal.print({ queue: name, paused: false, ...about }, () => [`${subjectOf(name, group)}: resumed.`])
      }),
  )
  const release = millCommand(queues, 'release <queue>', 'End holds before their time')
    .option('--group <group>', 'only the hold of this group (default: that of the queue, and those of all groups)')
    .addHelpText(
      'after',
      `
  A hold is what \`hold()\` or \`ctx.hold()\` of a handler sets. \`millrace queues throttle\` lists them.
  Paused groups stay paused.

Examples:
  $ millrace queues release default --group shop.example
  $ millrace queues release default`,
    )
  withJson(release, 'print {"queue","group","released"}').action((name: string, { group, ...flags }: GroupFlags) =>
    withMill(flags, async (mill, terminal) => {
      const released = await mill.queue(name).throttle.release(group)
      terminal.print({ queue: name, ...defined({ group }), released }, () => [
        released === 0
          ? `${subjectOf(name, group)}: nothing is held.`
          : `${subjectOf(name, group)}: ${counted(released, 'hold')} ended.`,
      ])
    }),
  )
}

function subjectOf(queue: string, group: string | undefined): string {
  return group === undefined ? queue : `group '${group}' of ${queue}`
}

function addDrain(queues: Command): void {
  const drainIt = millCommand(
    queues,
    'drain <queue>',
    'Refuse new jobs, and wait until none waits or runs',
  ).addHelpText(
    'after',
    `
  After an interruption the queue still refuses new jobs, until \`millrace queues resume\`.

Example:
  $ millrace queues drain default`,
  )
  withJson(drainIt, 'print {"queue","drained"}').action((queue: string, flags: MillFlags) =>
    withMill(flags, (mill, terminal) => drain(mill, terminal, mill.queue(queue).name)),
  )
}

/** The interval at which a drain reports the jobs left. */
const progressMs = 5_000

async function drain(mill: Mill, terminal: Terminal, name: string): Promise<void> {
  const queue = mill.queue(name)
  const depth = await queue.depth()
  if (depth.paused && waitingIn(depth) > 0)
    process.stderr.write(
      `millrace: queue '${name}' is paused: its waiting jobs do not run, so the drain does not end. Interrupt this, run \`millrace queues resume ${name}\`, then drain again.\n`,
    )
  let toldAt: number | undefined
  await queue.drain({
    // Not before the first look: only then does the queue refuse.
    onProgress: (left) => {
      if (terminal.json || left.waiting + left.running === 0) return
      if (toldAt !== undefined && performance.now() < toldAt + progressMs) return
      const what = `${counted(left.waiting, 'job')} waiting, ${count(left.running)} running.`
      terminal.print({}, () => [toldAt === undefined ? `${name}: refuses new jobs; ${what}` : `${name}: ${what}`])
      toldAt = performance.now()
    },
  })
  terminal.print({ queue: name, drained: true }, () => [
    `${name}: drained. It refuses new jobs until \`millrace queues resume ${name}\`.`,
  ])
}

function addClear(queues: Command): void {
  const clear = millCommand(queues, 'clear <queue>', 'Remove the waiting and dead jobs, never running ones')
    .option('--yes', 'do not ask first (only a person at a terminal is asked)')
    .addHelpText('after', '\nExample:\n  $ millrace queues clear default --yes')
  withJson(clear, 'print {"queue","removed"}').action((name: string, flags: MillFlags & { yes?: boolean }) =>
    withMill(flags, async (mill, terminal) => {
      const queue = mill.queue(name)
      await confirm(async () => {
        const depth = await queue.depth()
        return `queues clear ${name}: about ${counted(waitingIn(depth), 'waiting job')} and ${counted(depth.dead, 'dead one')} would be removed. Go on?`
      }, flags)
      const removed = await queue.clear()
      terminal.print({ queue: name, removed }, () => [`${name}: ${counted(removed, 'job')} removed.`])
    }),
  )
}

/** For a store that does not create the declared queues itself. */
function addCreate(queues: Command): void {
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
            ...table(provisionedColumns, made, { width: terminal.columns, paintTitle: terminal.colors.dim }),
            `${counted(count, 'queue')} made.`,
          ]
        })
      }),
  )
}

const provisionedColumns: readonly Column<ProvisionedQueue>[] = [
  { title: 'queue', cell: ({ queue }) => queue },
  { title: 'in the store', cell: ({ name }) => name },
  { title: 'its dead', cell: ({ deadName }) => deadName },
  { title: '', cell: ({ wasMissing }) => (wasMissing ? 'made' : 'was there') },
]

/** Adds a tag to those before it. */
function tagFlag(given: string, tags: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, key, value] = /^([^=]{1,128})=(.{0,256})$/s.exec(given) ?? []
  if (key === undefined || value === undefined)
    throw new UsageError(`--tag must be key=value, with at most 128 and 256 characters; got '${given}'.`)
  return { ...tags, [key]: value }
}

function addReshard(queues: Command): void {
  const command = millCommand(queues, 'reshard', 'Spread an ordered queue over another number of shards')
    .argument('<queue>')
    .argument('<shards>', `1 to ${mostShards}`, wholeFlag(1, mostShards))
    .addHelpText(
      'after',
      `
  Until it is done no job of the queue is started. It waits for running jobs; new ones are accepted. After an interruption
  run the same command again to go on. Then set the same number in the configuration.

Example:
  $ millrace queues reshard orders 24`,
    )
  withJson(command, 'print {"queue","shards","moved"}').action((name: string, shards: number, flags: MillFlags) =>
    withMill(flags, async (mill, terminal) => {
      const queue = mill.queue(name)
      const again = `millrace queues reshard ${name} ${shards}`
      const stays = `no job of queue '${name}' is started until \`${again}\` has been run to its end.`
      const moved = await interruptible(stays, (options) => queue.reshard(shards, options), {
        terminal,
        waits: `${name}: waits for its running jobs to end; no others are started meanwhile.`,
      })
      terminal.print({ queue: name, shards, moved }, () => [
        `${name}: has ${counted(shards, 'shard')}; ${counted(moved, 'job')} moved.`,
      ])
    }),
  )
}

function addMove(queues: Command): void {
  const command = millCommand(queues, 'move', 'Move the waiting and dead jobs of an ordered queue to another')
    .argument('<old>')
    .argument('<new>')
    .addHelpText(
      'after',
      `
  Both must be declared, and ordered. Jobs keep their payloads, scores, times and attempts. If an id is in the new queue
  already, the payloads join it. Running jobs, and jobs still enqueued in the old queue, are left: move again.

Example:
  $ millrace queues move sync-order orders`,
    )
  withJson(command, 'print {"from","to","moved","left"}').action((from: string, to: string, flags: MillFlags) =>
    withMill(flags, async (mill, terminal) => {
      const [queue, { name }] = [mill.queue(from), mill.queue(to)]
      const again = `millrace queues move ${from} ${to}`
      const stays = `the other jobs are still in queue '${from}'; \`${again}\` goes on.`
      const moved = await interruptible(stays, (options) => queue.move(name, options), {
        terminal,
        waits: `${from}: waits for its other jobs.`,
      })
      const depth = await queue.depth()
      const { running } = depth
      const left = waitingIn(depth) + running + depth.dead
      terminal.print({ from, to, moved, left }, () => [
        `${from}: ${counted(moved, 'job')} moved to ${to}.`,
        ...(left === 0
          ? []
          : [
              `${from}: ${counted(left, 'job')} left, ${running} of them running. Move again when producers use ${to} and the running ones have ended.`,
            ]),
      ])
    }),
  )
}

/** A signal ends it between two steps; the error then says what `stays`. A second signal ends the process at once. */
async function interruptible<T>(
  stays: string,
  act: (options: LongActionOptions) => Promise<T>,
  { terminal, waits }: { readonly terminal: Terminal; readonly waits: string },
): Promise<T> {
  const over = new AbortController()
  const stop = (signal: StopSignal) => over.abort(new OperationError(`ended by ${signal}: ${stays}`))
  for (const signal of stopSignals) process.once(signal, stop)
  let told = false
  const onProgress: LongActionOptions['onProgress'] = ({ isWaiting }) => {
    if (!isWaiting || told || terminal.json) return
    told = true
    terminal.print({}, () => [waits])
  }
  try {
    return await act({ signal: over.signal, onProgress })
  } catch (error) {
    if (!hasCode(error, 'store-unavailable')) throw error
    throw new OperationError(`${error.message} It may be half done: then ${stays}`, { cause: error })
  } finally {
    for (const signal of stopSignals) process.off(signal, stop)
  }
}
