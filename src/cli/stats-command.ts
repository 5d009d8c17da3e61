/** The command `stats`: every queue's counts, once or again each second. */

import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Mill } from '../config/mill.js'
import { formatDuration } from '../core/duration.js'
import type { Depth } from '../stores/store.js'
import { count, counted } from './figures.js'
import { type MillFlags, millCommand, withJson, withMill } from './mill-command.js'
import { type Column, table } from './table.js'
import type { Terminal } from './terminal.js'

const everyMs = 1_000

/** Counts that add up over queues, in the order they are shown. */
const sums = ['ready', 'scheduled', 'running', 'dead', 'fresh', 'retries', 'processed', 'failed', 'crashed'] as const

type Totals = Readonly<Record<(typeof sums)[number], number>>

export interface Stats {
  readonly at: string
  readonly store: string
  readonly queues: readonly Depth[]
  readonly totals: Totals
  readonly workers: { readonly count: number; readonly slots: number; readonly running: number }
}

export function addStats(program: Command): void {
  const command = millCommand(program, 'stats', 'Show the counts of every queue')
    .option('--watch', 'again each second, until interrupted')
    .addHelpText(
      'after',
      `
  fresh: waiting and never failed · retries: waiting after a failure · lag: age of the oldest job that is due
  failed: attempts that threw or timed out · crashed: jobs whose worker died with them in hand; each then runs alone as a suspect

Examples:
  $ millrace stats --watch
  $ millrace stats --json | jq .totals.dead`,
    )
  withJson(command, 'print {"at","store","queues","totals","workers"}; with --watch one a line').action(
    (flags: MillFlags & { watch?: boolean }) =>
      withMill(flags, (mill, terminal) => (flags.watch ? watch(mill, terminal) : show(mill, terminal))),
  )
}

async function show(mill: Mill, terminal: Terminal): Promise<void> {
  const stats = await statsOf(mill)
  terminal.redraw(stats, () => statsLines(stats, terminal))
}

async function watch(mill: Mill, terminal: Terminal): Promise<void> {
  const over = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => over.abort())
  while (!over.signal.aborted) {
    await show(mill, terminal)
    await delay(everyMs, undefined, { signal: over.signal }).catch(() => {})
  }
}

async function statsOf(mill: Mill): Promise<Stats> {
  const [queues, workers] = await Promise.all([mill.depths(), mill.workers()])
  const sum = (numbers: readonly number[]) => numbers.reduce((total, n) => total + n, 0)
  return {
    at: new Date().toISOString(),
    store: mill.store.text,
    queues,
    totals: Object.fromEntries(sums.map((name) => [name, sum(queues.map((queue) => queue[name]))])) as Totals,
    workers: {
      count: workers.length,
      slots: sum(workers.map(({ concurrency }) => concurrency)),
      running: sum(workers.map(({ running }) => running)),
    },
  }
}

type Row = Totals & { readonly queue: string; readonly lagMs: number; readonly note: string }

function statsLines({ store, queues, totals, workers }: Stats, { colors, columns }: Terminal): string[] {
  const column = (title: (typeof sums)[number], paint?: (text: string) => string): Column<Row> => ({
    title,
    align: 'right',
    cell: (row) => count(row[title]),
    ...(paint && { paint: (text, row) => (row[title] > 0 ? paint(text) : text) }),
  })
  const shown: Column<Row>[] = [
    { title: 'queue', most: 40, cell: ({ queue }) => queue },
    column('ready'),
    column('scheduled'),
    column('running', colors.green),
    column('dead', colors.red),
    column('fresh'),
    column('retries', colors.yellow),
    { title: 'lag', align: 'right', cell: ({ lagMs }) => (lagMs === 0 ? '-' : formatDuration(lagMs)) },
    column('processed'),
    column('failed'),
    column('crashed', colors.red),
    { title: '', cell: ({ note }) => note, paint: (text) => colors.yellow(text) },
  ]
  const rows: Row[] = queues.map((queue) => ({ ...queue, note: noteOf(queue) }))
  const lagMs = Math.max(0, ...queues.map((queue) => queue.lagMs))
  const all = queues.length > 1 ? [{ ...totals, queue: 'total', lagMs, note: '' }] : []
  return [
    `${store} · ${counted(workers.count, 'worker')}${workers.count > 0 ? `, ${count(workers.running)} of ${counted(workers.slots, 'slot')} in use` : ''}`,
    ...table(shown, [...rows, ...all], { width: columns, paintTitle: colors.dim }),
  ]
}

function noteOf({ paused, draining, suspects }: Depth): string {
  const words = [paused ? 'paused' : '', draining ? 'draining' : '', suspects > 0 ? counted(suspects, 'suspect') : '']
  return words.filter((word) => word !== '').join(', ')
}
