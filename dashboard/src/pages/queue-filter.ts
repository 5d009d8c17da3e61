/** The queue filter: chooses queues by a part of their names and by their state; and the sums over their minutes. Pure. */

import { isUnserved, type Overview, type QueueRow, type Spark } from '../api/answers.js'

const kinds: Readonly<Record<string, (queue: QueueRow) => boolean>> = {
  waiting: ({ ready, lagMs }) => ready > 0 || lagMs > 0,
  running: ({ running }) => running > 0,
  dead: ({ dead }) => dead > 0,
  paused: ({ paused, draining }) => paused || draining,
  unserved: isUnserved,
  damaged: ({ damaged }) => damaged !== undefined,
  ordered: ({ kind }) => kind === 'ordered',
  undeclared: ({ declared }) => !declared,
}

/** The choices; the first shows all. */
export const filterChoices: readonly (readonly [value: string, text: string])[] = [
  ['', 'All queues'],
  ['waiting', 'With waiting jobs'],
  ['running', 'With running jobs'],
  ['dead', 'With dead jobs'],
  ['paused', 'Paused or draining'],
  ['unserved', 'Without a worker'],
  ['damaged', 'Damaged'],
  ['ordered', 'Ordered'],
  ['undeclared', 'Undeclared'],
]

/** `text`: each of its words must occur in the name. */
export function filteredQueues(queues: readonly QueueRow[], text: string, kind: string): readonly QueueRow[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const isOfKind = kinds[kind]
  if (words.length === 0 && isOfKind === undefined) return queues
  return queues.filter((queue) => {
    const name = queue.name.toLowerCase()
    return words.every((word) => name.includes(word)) && (isOfKind?.(queue) ?? true)
  })
}

/** The count of the last whole minute; the counts of the present one have not come yet. */
export function perMinute(values: readonly number[]): number | undefined {
  return values.at(-2)
}

/** The sparks of all queues together. */
interface SummedSparks extends Spark {
  /** The beginning of each minute, in ms since 1970. */
  readonly times: readonly number[]
}

const minuteMs = 60_000

/** The sums over all queues for each whole minute, oldest first; nothing if no queue has a history. */
export function summedSparks({ at, queues }: Pick<Overview, 'at' | 'queues'>): SummedSparks {
  // The counts of the present minute have not come yet.
  const minutes = Math.max(0, ...queues.map(({ spark }) => spark.done.length - 1))
  const present = Math.floor(Date.parse(at) / minuteMs) * minuteMs
  const sum = (key: keyof Spark) =>
    Array.from({ length: minutes }, (_, i) => queues.reduce((total, { spark }) => total + (spark[key][i] ?? 0), 0))
  return {
    times: Array.from({ length: minutes }, (_, i) => present - (minutes - i) * minuteMs),
    ...{ enqueued: sum('enqueued'), done: sum('done'), failed: sum('failed') },
  }
}
