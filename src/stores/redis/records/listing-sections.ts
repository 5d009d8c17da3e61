/** The sections of a shard: its keys in the order of a listing by time, and the place of a job in each. Pure. */

import type { JobState } from '../../../core/job.js'
import type { QueueKind } from '../../contract/queue-settings.js'
import type { ListPosition } from '../../rules/listing-cursor.js'
import { numberBytes } from '../format/position-bytes.js'
import type { JobView } from '../format/redis-job.js'

export interface Section {
  readonly name: 'running' | 'ready' | 'suspects' | 'scheduled' | 'completed' | 'dead' | 'retries'
  readonly states: readonly JobState[]
  /** The beginning of a position of this section. Its own numbers and the id follow. */
  readonly head: readonly number[]
  numbersOf(view: JobView, isLifo: boolean): readonly number[]
  /** The bytes before the id in the section's key. */
  bytesOf(numbers: readonly number[], isLifo: boolean): Buffer
}

const readyNumbers = ({ stamp, seq, stored }: JobView, isLifo: boolean) => [
  -stored!.priority,
  isLifo ? -stamp : stamp,
  seq,
]
const readyBytes = ([priority, stamp, seq]: readonly number[], isLifo: boolean) => {
  const bytes = numberBytes(Math.abs(stamp!), 7)
  const inOrder = isLifo ? bytes.map((byte) => 255 - byte) : bytes
  return Buffer.concat([numberBytes(32_767 + priority!, 2), inOrder, numberBytes(seq!, 6)])
}
const endNumbers = ({ seq, stored }: JobView) => [-stored!.finishedAt!, -seq]
const endBytes = ([finishedAt, seq]: readonly number[]) =>
  Buffer.concat([numberBytes(-finishedAt!, 6), numberBytes(-seq!, 6)])

/** Ordered queues have no `completed`, and all sequence numbers are 0: otherwise equal jobs are in the order of ids. */
const sections: readonly Section[] = [
  {
    name: 'running',
    states: ['running'],
    head: [0],
    numbersOf: ({ fence, seq }) => [fence, seq],
    bytesOf: () => Buffer.alloc(0),
  },
  { name: 'ready', states: ['ready'], head: [1, 0], numbersOf: readyNumbers, bytesOf: readyBytes },
  { name: 'suspects', states: ['ready'], head: [1, 1], numbersOf: readyNumbers, bytesOf: readyBytes },
  {
    name: 'scheduled',
    states: ['scheduled'],
    head: [2],
    numbersOf: ({ stamp, seq }) => [stamp, seq],
    bytesOf: ([stamp, seq]) => Buffer.concat([numberBytes(stamp!, 7), numberBytes(seq!, 6)]),
  },
  { name: 'completed', states: ['completed'], head: [3], numbersOf: endNumbers, bytesOf: endBytes },
  { name: 'dead', states: ['dead'], head: [4], numbersOf: endNumbers, bytesOf: endBytes },
]

/** A live job, or the entry in the morgue, which comes after it. A plain queue has its dead jobs among the live. */
export type ListedKind = 'live' | 'dead'

/** The sections in the order of a listing by time. `listed`: only those with jobs of this kind. */
export function sectionsOf(kind: QueueKind, listed?: ListedKind): readonly Section[] {
  if (kind === 'plain') return sections
  return sections.filter(({ name }) => name !== 'completed' && (listed ?? name) !== (name === 'dead' ? 'live' : 'dead'))
}

/** The only section of a listing by retry. */
export const retries: Section = {
  name: 'retries',
  states: ['ready', 'scheduled', 'running'],
  head: [],
  numbersOf: ({ seq, stored }) => [stored!.attempt, seq],
  bytesOf: ([attempt, seq]) => Buffer.concat([numberBytes(attempt!, 3), numberBytes(seq!, 6)]),
}

/**
 * The point where a listing that continues after a position begins in a section: its start (undefined), after these
 * numbers and the id, or not at all (`'past'`).
 */
export function startIn({ head }: Section, after: ListPosition | undefined): ListPosition | undefined | 'past' {
  if (after === undefined) return undefined
  for (const [i, part] of head.entries()) {
    if (part < Number(after[i])) return 'past'
    if (part > Number(after[i])) return undefined
  }
  return after.slice(head.length)
}
