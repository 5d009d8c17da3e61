/** The dead group: the dead jobs of a queue that share their task and the first line of their error. */

import type { Instant } from '../../api/answers.js'

export interface DeadGroup {
  readonly error: string
  readonly task: string
  readonly count: number
  /** The first 1,000 of them. */
  readonly ids: readonly string[]
  /** When the last of them died. */
  readonly lastAt?: Instant
}

export interface DeadGroups {
  /** The number of latest dead jobs that were looked at. */
  readonly scanned: number
  /** There are others. */
  readonly more: boolean
  readonly groups: readonly DeadGroup[]
}

/** Its name among those of its queue. */
export function groupKey({ task, error }: Pick<DeadGroup, 'task' | 'error'>): string {
  return `${task}\0${error}`
}
