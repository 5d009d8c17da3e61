/** The command `workers`: the live workers, where each of them runs, the queues it serves, and orders to them. */

import type { Command } from 'commander'
import { defined } from '../../core/values/defined.js'
import type { Mill } from '../../mill/mill.js'
import { processIdentity } from '../../runtime/process/process-identity.js'
import { type Liveness, livenessOf } from '../../runtime/process/process-peers.js'
import type { WorkerRecord, WorkerSignal } from '../../stores/contract/worker-registry.js'
import { type MillFlags, millCommand, withJson, withMill } from '../mill-command.js'
import { printable } from '../printable.js'
import { OperationError } from '../process/exit-code.js'
import { count, counted, fromNow } from '../terminal/figures.js'
import { type Column, table } from '../terminal/table.js'
import type { Terminal } from '../terminal/terminal.js'

interface WorkerRow {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly process: Liveness
  readonly queues: readonly string[]
  readonly slots: number
  readonly running: number
  readonly startedAt: Date
  readonly seenAt: Date
  readonly state?: WorkerRecord['state']
  readonly version?: string
  readonly selector?: string
  readonly tasks?: number
  readonly rssBytes?: number
  readonly loopDelayMs?: number
}

export function addWorkers(program: Command): void {
  const workers = program
    .command('workers')
    .description('List the workers, and stop or recycle them')
    .helpCommand(false)
  const list = millCommand(workers, 'list', 'Show the workers: where they run, what they serve, how busy they are', {
    isDefault: true,
  })
    .option('--queue <queue>', 'only workers that serve this queue')
    .addHelpText(
      'after',
      `
  process: alive or dead on this machine; unknown: on another machine or in a container, see when it was last seen
  A dead worker serves nothing: it is listed until its jobs are taken over, or its record lapses. You may omit \`list\`.

Examples:
  $ millrace workers list
  $ millrace workers list --queue video --json`,
    )
  withJson(
    list,
    'print {"workers":[{"id","host","pid","process","queues","slots","running","startedAt","seenAt","state","version","selector","tasks","rssBytes","loopDelayMs"}]}',
  ).action((flags: MillFlags & { queue?: string }) =>
    withMill(flags, async (mill, terminal) => {
      const workers = await rowsOf(mill, flags.queue)
      terminal.print({ workers }, () => workerLines(workers, terminal))
    }),
  )
  addStop(workers, 'stop', 'Stop a worker: it finishes its jobs in hand, within its grace')
  addStop(workers, 'recycle', 'Stop a worker, and have its supervisor replace it')
}

function addStop(workers: Command, signal: WorkerSignal, summary: string): void {
  const command = millCommand(workers, `${signal} <id>`, summary).addHelpText(
    'after',
    `
  The worker hears of it within 5 s, an idle one on Redis within 20 s. \`millrace workers list\` shows the ids.

Example:
  $ millrace workers ${signal} mill-1/4711/1-5f2c`,
  )
  withJson(command, 'print {"worker","signal"}').action((id: string, flags: MillFlags) =>
    withMill(flags, async (mill, terminal) => {
      if (!(await mill.stopWorker(id, { recycle: signal === 'recycle' })))
        throw new OperationError(
          `there is no worker '${printable(id)}'; \`millrace workers list\` shows the live ones.`,
        )
      terminal.print({ worker: id, signal }, () => [`${printable(id)}: told to ${signal}.`])
    }),
  )
}

/** A queue that is not declared here may be served by others. */
async function rowsOf(mill: Mill, queue: string | undefined): Promise<WorkerRow[]> {
  const here = processIdentity()
  const all = await mill.workers()
  if (all === undefined)
    throw new OperationError(`${mill.store.text} keeps no registry of workers: look at the logs of their processes.`)
  const shown = queue === undefined ? all : all.filter(({ queues }) => queues.includes(queue))
  if (queue !== undefined && shown.length === 0) mill.queue(queue)
  return shown.map((worker) => ({
    id: worker.id,
    host: worker.host,
    pid: worker.pid,
    process: livenessOf(worker, here),
    queues: worker.queues,
    slots: worker.concurrency,
    running: worker.running,
    startedAt: new Date(worker.startedAt),
    seenAt: new Date(worker.seenAt),
    ...saidOf(worker),
  }))
}

function saidOf({ state, version, selector, tasks, rssBytes, loopDelayMs }: WorkerRecord) {
  return {
    ...defined({ state }),
    ...(version && { version }),
    ...(selector && { selector }),
    ...defined({ tasks, rssBytes, loopDelayMs }),
  }
}

function workerLines(workers: readonly WorkerRow[], { colors, columns }: Terminal): string[] {
  const live = workers.filter(({ process }) => process === 'alive' || process === 'unknown')
  const slots = live.reduce((sum, worker) => sum + worker.slots, 0)
  const running = live.reduce((sum, worker) => sum + worker.running, 0)
  const total =
    live.length === 0
      ? 'no worker runs'
      : `${counted(live.length, 'worker')}, ${count(running)} of ${counted(slots, 'slot')} in use`
  if (workers.length === 0) return [total]
  const now = Date.now()
  const paint = { alive: colors.green, dead: colors.red, silent: colors.yellow, unknown: (text: string) => text }
  const shown: Column<WorkerRow>[] = [
    { title: 'host', most: 40, cell: ({ host }) => host },
    { title: 'pid', align: 'right', cell: ({ pid }) => String(pid) },
    {
      title: 'process',
      cell: ({ process, state }) => (state === 'stopping' && /^(?:alive|unknown)$/.test(process) ? state : process),
      paint: (text, { process }) => paint[process](text),
    },
    {
      title: 'memory',
      align: 'right',
      cell: ({ rssBytes }) => (rssBytes === undefined ? '-' : `${count(Math.round(rssBytes / 1e6))} MB`),
    },
    { title: 'slots', align: 'right', cell: ({ running, slots }) => `${count(running)}/${count(slots)}` },
    { title: 'started', cell: ({ startedAt }) => fromNow(startedAt, now) },
    { title: 'heard', cell: ({ seenAt }) => fromNow(seenAt, now) },
    { title: 'queues', most: 60, cell: ({ queues }) => queues.join(', ') },
    { title: 'worker', cell: ({ id }) => id },
  ]
  return [total, ...table(shown, workers, { width: columns, paintTitle: colors.dim })]
}
