/**
 * The state dump: what a supervisor's processes, and every slot of a worker, are doing at this moment. A signal asks
 * for it.
 */

import { formatDuration } from '../../core/values/duration.js'
import { printable } from '../printable.js'
import { count, counted, timeOfDay } from '../terminal/figures.js'
import { type Column, table } from '../terminal/table.js'
import type { Terminal } from '../terminal/terminal.js'
import type { ProcessReport } from './forked-worker.js'
import type { WorkerStatus } from './supervisor-messages.js'

const dumpSignals = ['SIGUSR2', 'SIGTTIN'] as const

/** More rows would hide the interesting ones. */
const mostRows = 1_000

/** Listens from now on. */
export function onDumpRequest(dump: () => void): void {
  for (const signal of dumpSignals) process.on(signal, dump)
}

/** Prints the processes of this supervisor, which has run for `upMs`. */
export function dumpProcesses(terminal: Terminal, processes: readonly ProcessReport[], upMs: number): void {
  print(terminal, { processes, upMs: Math.round(upMs) }, () => [
    `supervises ${processes.length === 1 ? '1 process' : `${processes.length} processes`}, up for ${formatDuration(upMs)}`,
    ...table(processColumns, processes).map(indented),
  ])
}

/** Prints a worker of this process; undefined: it is being started. */
export function dumpWorker(terminal: Terminal, status: WorkerStatus | undefined): void {
  print(terminal, status ?? { state: 'starting' }, () =>
    status === undefined ? ['starting: nothing in hand'] : workerLines(status),
  )
}

/** Prints the last message of a process that does not answer. */
export function dumpSilent(terminal: Terminal, { pid, heardMs, state, pulse }: ProcessReport): void {
  print(terminal, { ...pulse, child: pid, state, blockedMs: Math.round(heardMs) }, () => {
    const silent = `process ${pid} does not answer: its event loop has been blocked, or it has been stopped, for ${formatDuration(heardMs)}`
    if (pulse === undefined) return [`${silent}; it is still starting`]
    // The job that blocks it may have begun after that, and those in hand then may have ended.
    return [
      `${silent}; its last report, which may be older than what it does now, said:`,
      `  worker ${printable(pulse.id)} ${pulse.state}, ${inHand(pulse.running, pulse.concurrency)}, ${storeSilence(pulse.silentMs)}`,
      ...pulse.damaged.map((queue) => `  queue ${printable(queue)} is damaged and left out: see 'millrace fsck'`),
      ...pulse.oldest.map(
        (job) => `  ${printable(`${job.queue} ${job.task} ${job.id}`)}, for ${formatDuration(job.forMs)} then`,
      ),
      ...(pulse.running > pulse.oldest.length ? [`  and ${count(pulse.running - pulse.oldest.length)} more`] : []),
    ]
  })
}

type Job = WorkerStatus['jobs'][number]

const processColumns: readonly Column<ProcessReport>[] = [
  { title: 'PID', align: 'right', cell: ({ pid }) => String(pid) },
  { title: 'STATE', cell: ({ state }) => state },
  { title: 'UP', align: 'right', cell: ({ upMs }) => formatDuration(upMs) },
  { title: 'RESTARTS', align: 'right', cell: ({ restarts }) => count(restarts) },
  { title: 'ALIVE', align: 'right', cell: ({ heardMs }) => `${formatDuration(heardMs)} ago` },
  {
    title: 'IN HAND',
    align: 'right',
    cell: ({ pulse }) => (pulse === undefined ? '' : `${pulse.running} of ${pulse.concurrency}`),
  },
  { title: 'WORKER', cell: ({ pulse }) => pulse?.id ?? '' },
]

const jobColumns: readonly Column<Job>[] = [
  { title: 'QUEUE', most: 24, cell: ({ queue }) => queue },
  { title: 'TASK', most: 32, cell: ({ task }) => task },
  { title: 'ID', most: 40, cell: ({ id }) => id },
  { title: 'ATTEMPT', align: 'right', cell: ({ attempt }) => (attempt === undefined ? '' : count(attempt)) },
  { title: 'PHASE', cell: ({ phase }) => phase },
  { title: 'FOR', align: 'right', cell: ({ forMs }) => formatDuration(forMs) },
  { title: 'PROGRESS', most: 60, cell: ({ progress }) => progressText(progress) },
]

function workerLines(status: WorkerStatus): string[] {
  const { id, state, concurrency, retired, jobs, unsettled, silentMs } = status
  const begun = jobs.filter(({ phase }) => phase !== 'claimed').length
  const facts = [
    inHand(begun, concurrency),
    ...(jobs.length > begun ? [`${counted(jobs.length - begun, 'job')} more claimed`] : []),
    ...(retired > 0 ? [`${counted(retired, 'slot')} retired`] : []),
    `${counted(unsettled, 'report')} unsettled`,
    storeSilence(silentMs),
  ]
  const shown = [...jobs].sort((a, b) => b.forMs - a.forMs).slice(0, mostRows)
  return [
    `worker ${printable(id)} ${state}, ${facts.join(', ')}`,
    ...(shown.length === 0 ? [] : table(jobColumns, shown).map(indented)),
    ...(jobs.length > shown.length ? [`  and ${count(jobs.length - shown.length)} more`] : []),
  ]
}

function inHand(running: number, concurrency: number): string {
  return `${count(running)} of ${count(concurrency)} slots busy`
}

function storeSilence(silentMs: number): string {
  return `the store answered ${formatDuration(silentMs)} ago`
}

function progressText(progress: Job['progress']): string {
  if (progress === undefined) return ''
  const { fraction, note } = progress
  return `${Math.round(fraction * 100)}%${note === undefined ? '' : ` ${note}`}`
}

function indented(line: string): string {
  return `  ${line}`
}

/**
 * Prints on stderr in one piece, so that the states of several processes do not mix; with `--json` as an event on
 * stdout.
 */
function print(terminal: Terminal, fields: object, lines: () => readonly string[]): void {
  if (terminal.json) {
    terminal.event('state.dumped', { ...fields }, () => '')
    return
  }
  const [first, ...rest] = lines()
  process.stderr.write(`${[`${timeOfDay(new Date())} ${process.pid} ${first}`, ...rest].join('\n')}\n`)
}
