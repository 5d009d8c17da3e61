/** The queue filter: chooses queues by a part of their names and by their state. Pure. */

import { isUnserved, type QueueRow } from '../api/answers.js'

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
