/**
 * The command `stats`: the counts of every queue: once, each second, or as a view of the last hour on the whole
 * terminal.
 */

import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import type { QueueHistory } from '../../client/admin/queue-history.js'
import type { QueueHolds, ThrottleStatus } from '../../client/admin/throttle-admin.js'
import { hasCode } from '../../core/errors.js'
import { defined } from '../../core/values/defined.js'
import { formatDuration } from '../../core/values/duration.js'
import { isUnserved, workersByQueue } from '../../measures/worker-counts.js'
import type { Mill } from '../../mill/mill.js'
import { type Attendance, attendanceOf } from '../../runtime/process/process-peers.js'
import type { QueueDepth } from '../../stores/contract/queue-depth.js'
import type { StoredQueue } from '../../stores/contract/queue-settings.js'
import { type QueueCounts, summed } from '../../stores/rules/queue-counts.js'
import { type MillFlags, millCommand, withJson, withMill } from '../mill-command.js'
import { count, counted, fromNow } from '../terminal/figures.js'
import { queueViewLines } from '../terminal/queue-view.js'
import { Screen } from '../terminal/screen.js'
import { type Column, table } from '../terminal/table.js'
import type { Terminal } from '../terminal/terminal.js'
import { holdWords } from '../terminal/throttle-lines.js'
import { windowText } from '../terminal/throttle-text.js'

const everyMs = 1_000
/** The history is read at every n-th look. */
const historyLooks = 5

/** The sums over queues; the lag is the longest. */
type QueueTotals = QueueCounts & { readonly length: number }

/** The limits of a queue, and its holds. */
interface Limits {
  readonly throttle?: ThrottleStatus
  readonly maxRunning?: StoredQueue['maxRunning']
  /** Holds of the queue and of groups, and paused groups; absent: there are none. */
  readonly holds?: QueueHolds
  /** The number of shards to which it is on its way: until then none of its jobs starts. */
  readonly resharding?: number
}

/** `length`: all waiting jobs. `serving`: the workers that take them; absent if the store keeps no registry of workers. */
type QueueStats = QueueDepth & Limits & { readonly length: number; readonly serving?: number }

export interface Stats {
  readonly at: string
  readonly store: string
  readonly queues: readonly QueueStats[]
  readonly totals: QueueTotals
  /**
   * As the workers reported them, the first at `seenAt`: the counts of the queues may be some seconds younger. Absent
   * if the store keeps no registry of workers.
   */
  readonly workers?: WorkerTotals
  /** The calls that this command has made so far, by kind, to a store that charges for calls. */
  readonly apiCalls?: Readonly<Record<string, number>>
}

interface WorkerTotals {
  readonly count: number
  readonly slots: number
  readonly running: number
  readonly seenAt?: Date
  /**
   * Workers of other machines that have not reported for 30 s, and when the first of them was heard last. They are not
   * in `count`. Absent: there are none.
   */
  readonly silent?: { readonly count: number; readonly seenAt: Date }
}

export function addStats(program: Command): void {
  const command = millCommand(program, 'stats', 'Show the counts of every queue')
    .option('--watch', 'repeat each second, until interrupted; in a terminal a view of the last hour (q quits)')
    .option('--shards', 'also show the lag of each shard of ordered queues')
    .addHelpText(
      'after',
      `
  fresh: waiting and never failed · retries: waiting after a failure · lag: age of the oldest job that is due
  waiting: for other jobs or for a signal · length: fresh + retries · payloads: waiting ones of ordered jobs, also of running jobs
  next: when the throttle lets the next job start · started: 7/10 in 1m · full 2/2: as many jobs run as allowed
  failed: attempts that threw or timed out · crashed: jobs whose worker died with them in hand; each then runs alone as a suspect
  expired: jobs cancelled because their time to begin was over (enqueue --expires-in)

Examples:
  $ millrace stats --watch
  $ millrace stats --json | jq .totals.dead`,
    )
  withJson(command, 'print {"at","store","queues","totals","workers","apiCalls"}; with --watch one a line').action(
    (flags: MillFlags & { watch?: boolean; shards?: boolean }) => {
      const { watch: isLong = false, shards = false } = flags
      const use = (mill: Mill, terminal: Terminal) => (isLong ? watch : show)(mill, terminal, shards)
      return withMill(flags, use, { isLong })
    },
  )
}

async function show(mill: Mill, terminal: Terminal, shards: boolean): Promise<void> {
  const stats = await statsOf(mill)
  terminal.redraw(stats, () => [
    ...statsLines(stats, terminal),
    ...limitLines(stats.queues.filter(isLimited), terminal),
    ...(shards ? shardLines(stats, terminal) : []),
  ])
}

async function watch(mill: Mill, terminal: Terminal, shards: boolean): Promise<void> {
  const over = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => over.abort())
  if (terminal.live && !shards && (await keepsHistory(mill))) return view(mill, terminal, over)
  while (!over.signal.aborted) {
    await show(mill, terminal, shards)
    await delay(everyMs, undefined, { signal: over.signal }).catch(() => {})
  }
}

/** Draws on the whole terminal, until `over` aborts or a key ends the view. */
async function view(mill: Mill, terminal: Terminal, over: AbortController): Promise<void> {
  let wake = () => {}
  const screen = new Screen(
    () => {
      over.abort()
      wake()
    },
    () => wake(),
  )
  try {
    for (let looks = 0, histories: QueueHistory[] = []; !over.signal.aborted; looks += 1) {
      // The history changes once a minute, so it is not read each second.
      if (looks % historyLooks === 0) histories = await mill.histories()
      const stats = await statsOf(mill)
      const below = limitLines(stats.queues.filter(isLimited), terminal)
      const title = titleOf(stats)
      screen.draw(
        queueViewLines(
          { title, at: new Date(), depths: stats.queues, histories, below },
          { columns: screen.columns, rows: screen.rows, colors: terminal.colors },
        ),
      )
      const woken = new Promise<void>((resolve) => {
        wake = resolve
      })
      await Promise.race([woken, delay(everyMs, undefined, { signal: over.signal }).catch(() => {})])
    }
  } finally {
    screen.close()
  }
}

async function keepsHistory(mill: Mill): Promise<boolean> {
  try {
    await mill.histories()
    return true
  } catch (error) {
    if (hasCode(error, 'unsupported-by-store')) return false
    throw error
  }
}

async function statsOf(mill: Mill): Promise<Stats> {
  const [depths, known] = await Promise.all([mill.depths(), mill.workers()])
  const limits = await limitsOf(mill)
  const apiCalls = await mill.apiCalls()
  const attendance = known && attendanceOf(known)
  const workersOf = attendance && workersByQueue(attendance.serving)
  const queues = depths.map((depth) => ({
    ...depth,
    length: depth.fresh + depth.retries,
    ...(workersOf && { serving: workersOf.get(depth.queue) ?? 0 }),
    ...limits.get(depth.queue),
  }))
  const totals = summed(queues)
  return {
    at: new Date().toISOString(),
    store: mill.store.text,
    queues,
    totals: { length: totals.fresh + totals.retries, ...totals },
    ...(attendance && { workers: totalsOf(attendance) }),
    ...defined({ apiCalls }),
  }
}

function totalsOf({ serving, silent }: Attendance): WorkerTotals {
  const sum = (name: 'concurrency' | 'running') => serving.reduce((total, worker) => total + worker[name], 0)
  const firstSeen = (workers: Attendance['serving']) => new Date(Math.min(...workers.map(({ seenAt }) => seenAt)))
  return {
    count: serving.length,
    slots: sum('concurrency'),
    running: sum('running'),
    ...(serving.length > 0 && { seenAt: firstSeen(serving) }),
    ...(silent.length > 0 && { silent: { count: silent.length, seenAt: firstSeen(silent) } }),
  }
}

/** The limits of the declared queues, in their stored form: these hold, whatever is declared. */
async function limitsOf(mill: Mill): Promise<ReadonlyMap<string, Limits>> {
  const stored = ((await mill.storedQueues()) ?? []).filter(({ name }) => mill.queues.has(name))
  const canHold = (await mill.adminParts.look()).throttles !== undefined
  return new Map(
    await Promise.all(
      stored.map(async ({ name, throttle: has, maxRunning, resharding }): Promise<[string, Limits]> => {
        const admin = mill.queue(name).throttle
        const [throttle, holds] = await Promise.all([
          has && admin.get(),
          canHold ? admin.holds({ limit: 1 }) : undefined,
        ])
        const bounds = {
          ...(holds !== undefined && holds.total > 0 && { holds }),
          ...defined({ maxRunning, resharding }),
        }
        return [name, { ...defined({ throttle }), ...bounds }]
      }),
    ),
  )
}

function isLimited({ throttle, maxRunning }: { readonly [K in 'throttle' | 'maxRunning']?: unknown }) {
  return throttle !== undefined || maxRunning !== undefined
}

type StatsRow = QueueTotals & { readonly queue: string; readonly note: string }

function statsLines(stats: Stats, { colors, columns }: Terminal): string[] {
  const { queues, totals } = stats
  const column = (title: keyof QueueTotals, paint?: (text: string) => string): Column<StatsRow> => ({
    title,
    align: 'right',
    cell: (row) => count(row[title]),
    ...(paint && { paint: (text, row) => (row[title] > 0 ? paint(text) : text) }),
  })
  // Plain jobs have one payload each, so the column would say nothing new.
  const ofOrdered = queues.some(isOrdered) ? [column('payloads')] : []
  const shown: Column<StatsRow>[] = [
    { title: 'queue', most: 40, cell: ({ queue }) => queue },
    ...(ofOrdered.length > 0 ? [column('length')] : []),
    column('ready'),
    column('scheduled'),
    ...(queues.some(({ waiting }) => waiting > 0) ? [column('waiting')] : []),
    column('running', colors.green),
    column('dead', colors.red),
    column('fresh'),
    column('retries', colors.yellow),
    ...ofOrdered,
    { title: 'lag', align: 'right', cell: ({ lagMs }) => lagText(lagMs) },
    column('processed'),
    column('failed'),
    column('crashed', colors.red),
    ...(queues.some(({ expired }) => expired > 0) ? [column('expired')] : []),
    { title: '', cell: ({ note }) => note, paint: (text) => colors.yellow(text) },
  ]
  const rows: StatsRow[] = queues.map((queue) => ({ ...queue, note: noteOf(queue) }))
  const all = queues.length > 1 ? [{ ...totals, queue: 'total', note: '' }] : []
  return [titleOf(stats), ...table(shown, [...rows, ...all], { width: columns, paintTitle: colors.dim })]
}

function titleOf({ store, workers, apiCalls }: Stats): string {
  return [store, ...(workers ? [workersText(workers)] : []), ...(apiCalls ? [callsText(apiCalls)] : [])].join(' · ')
}

function callsText(apiCalls: Readonly<Record<string, number>>): string {
  const made = Object.values(apiCalls).reduce((sum, calls) => sum + calls, 0)
  return `${counted(made, 'call')} of its API to look`
}

function workersText({ count: workers, slots, running, seenAt, silent }: WorkerTotals): string {
  const now = Date.now()
  return [
    counted(workers, 'worker'),
    ...(seenAt ? [`${count(running)} of ${counted(slots, 'slot')} in use`, `heard ${fromNow(seenAt, now)}`] : []),
    ...(silent ? [`${count(silent.count)} silent, heard ${fromNow(silent.seenAt, now)}`] : []),
  ].join(', ')
}

function isOrdered({ shardLagsMs }: QueueDepth): boolean {
  return shardLagsMs !== undefined
}

function lagText(lagMs: number): string {
  return lagMs === 0 ? '-' : formatDuration(lagMs)
}

function noteOf(queue: QueueStats): string {
  const { paused, draining, suspects, resharding, holds, serving } = queue
  const words = [
    paused ? 'paused' : '',
    draining ? 'draining' : '',
    isUnserved(queue, serving) ? 'no worker' : '',
    resharding === undefined ? '' : `resharding to ${resharding}`,
    holds === undefined ? '' : holdWords(holds),
    suspects > 0 ? counted(suspects, 'suspect') : '',
  ]
  return words.filter((word) => word !== '').join(', ')
}

/** A queue with limits, and their usage. */
interface Limited extends Pick<QueueDepth, 'queue' | 'running'> {
  readonly throttle?: ThrottleStatus
  readonly maxRunning?: StoredQueue['maxRunning']
}

/** The usage of the limits, one line for each queue that has some; empty if there is none. */
function limitLines(limited: readonly Limited[], { colors, columns }: Terminal): string[] {
  if (limited.length === 0) return []
  const shown: Column<Limited>[] = [
    { title: 'queue', most: 40, cell: ({ queue }) => queue },
    ...(limited.some(({ maxRunning }) => maxRunning !== undefined) ? [runningColumn(colors.yellow)] : []),
    { title: 'next', align: 'right', cell: nextText },
    { title: 'started', cell: budgetText },
  ]
  return ['', ...table(shown, limited, { width: columns, paintTitle: colors.dim })]
}

function runningColumn(paint: (text: string) => string): Column<Limited> {
  const isFull = ({ running, maxRunning }: Limited) => typeof maxRunning === 'number' && running >= maxRunning
  return {
    title: 'running',
    cell: (row) => {
      const { running, maxRunning } = row
      if (maxRunning === undefined) return '-'
      if (typeof maxRunning === 'object') return `≤ ${count(maxRunning.perGroup)} a group`
      return `${isFull(row) ? 'full ' : ''}${count(running)}/${count(maxRunning)}`
    },
    paint: (text, row) => (isFull(row) ? paint(text) : text),
  }
}

function nextText({ throttle }: Limited): string {
  if (throttle === undefined) return '-'
  const { forMs, quietForMs } = throttle
  if (quietForMs > 0) return `silent ${formatDuration(quietForMs)}`
  if (forMs > 0) return `in ${formatDuration(forMs)}`
  return throttle.by === 'group' ? '-' : 'now'
}

function budgetText({ throttle }: Limited): string {
  if (throttle === undefined) return '-'
  const { by, rules, eachGroup, hits, groups = 0, own } = throttle
  const rated =
    own === undefined ? '' : `, ${count(own.groups)} with a rate of ${own.groups === 1 ? 'its' : 'their'} own`
  const each = (by === 'group' ? rules : eachGroup)?.map(windowText).join(', ')
  const ofGroups = each === undefined ? [] : [`${each} for each group, ${counted(groups, 'group')} counted${rated}`]
  const whole = by === 'queue' ? rules.map((rule, i) => `${count(hits[i]!)}/${windowText(rule)}`) : []
  return [...whole, ...ofGroups].join(', ')
}

interface ShardLag {
  readonly queue: string
  readonly shard: number
  readonly lagMs: number
}

function shardLines({ queues }: Stats, { colors, columns }: Terminal): string[] {
  const lags = queues.flatMap(({ queue, shardLagsMs = [] }) =>
    shardLagsMs.map((lagMs, shard): ShardLag => ({ queue, shard, lagMs })),
  )
  if (lags.length === 0) return []
  const shown: Column<ShardLag>[] = [
    { title: 'queue', most: 40, cell: ({ queue }) => queue },
    { title: 'shard', align: 'right', cell: ({ shard }) => String(shard) },
    { title: 'lag', align: 'right', cell: ({ lagMs }) => lagText(lagMs) },
  ]
  return ['', ...table(shown, lags, { width: columns, paintTitle: colors.dim })]
}
