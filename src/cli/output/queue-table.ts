/** The queue table: every declared or stored queue, with its waiting and running jobs and the number of its workers. */

import type { QueueLook } from '../../client/admin/queue-looks.js'
import { workersByQueue } from '../../measures/workers-reading.js'
import type { Mill } from '../../mill/mill.js'
import { attendanceOf } from '../../runtime/liveness.js'
import type { StoredQueue } from '../../stores/contract/queue-settings.js'
import { count, counted } from './figures.js'
import { differs } from './shard-findings.js'
import { type Column, table } from './table.js'
import type { Terminal } from './terminal.js'

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
export async function queueRows(mill: Mill): Promise<QueueTableRow[]> {
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

export function queueLines(rows: readonly QueueTableRow[], { colors, columns }: Terminal): string[] {
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

function useOf({ depth, workers }: QueueLook): Use {
  return {
    waiting: depth.ready + depth.scheduled,
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
