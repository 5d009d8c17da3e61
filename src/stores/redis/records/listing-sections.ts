/** The sections of a shard: its keys, in the order of a listing by time, and where a job stands in each. Pure. */

import type { JobState } from '../../../core/job.js'
import type { QueueKind } from '../../contract/queue-settings.js'
import type { ListPosition } from '../../rules/listing-cursor.js'
import { numberBytes } from '../format/position-bytes.js'
import type { JobView } from '../format/redis-job.js'

export interface Section {
  readonly name: 'running' | 'ready' | 'suspects' | 'scheduled' | 'completed' | 'dead' | 'retries'
  readonly states: readonly JobState[]
  /** What a position of this section begins with. Then come its own numbers and the id. */
  readonly head: readonly number[]
  numbersOf(view: JobView, isLifo: boolean): readonly number[]
  /** The bytes that stand before the id in the section's key. */
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

/** An ordered queue has no `completed`, and 0 for each sequence number: what is alike otherwise stands in the order of ids. */
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

/** A live job, and the entry in the morgue behind it. A plain queue has its dead among the live. */
export type ListedKind = 'live' | 'dead'

/** In the order of a listing by time. `listed`: those with jobs of one kind alone. */
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

/** Where a listing that goes on after a position begins in a section: at its start (undefined), behind numbers and id, or not at all. */
export function startIn({ head }: Section, after: ListPosition | undefined): ListPosition | undefined | 'past' {
  if (after === undefined) return undefined
  for (const [i, part] of head.entries()) {
    if (part < Number(after[i])) return 'past'
    if (part > Number(after[i])) return undefined
  }
  return after.slice(head.length)
}
