/**
 * The health of a store: the facet that examines the server or file, checks the stored data and repairs what is safe to
 * repair.
 */

import type { QueueSettings } from './queue-settings.js'

/** The result of looking at one thing. */
export interface FsckFinding {
  /**
   * `'ok'`: as it should be · `'warning'`: works, with the drawback that the text names · `'error'`: jobs may be lost,
   * or are wrong.
   */
  readonly level: 'ok' | 'warning' | 'error'
  /** The thing examined, in a few words, such as `eviction policy`. */
  readonly what: string
  /** The result, and if it is not `'ok'` the remedy. */
  readonly text: string
}

/** A repaired fault. */
export interface FsckRepair {
  /** The repaired thing, in the words of the finding, such as `queue mail`. */
  readonly what: string
  /** The repair and how many things it changed, with up to three ids. */
  readonly text: string
}

export interface Repair {
  /** In the order of the repairs. Empty: nothing needed repair. */
  readonly mended: readonly FsckRepair[]
  /** The findings of `check` after the repairs: these need a person. */
  readonly left: readonly FsckFinding[]
}

export interface StoreHealth {
  /**
   * Examines version, settings, rights and clock of the server or file. If queues are created on request, it also
   * checks that the `declared` ones exist and have the right settings. Only reads.
   */
  examine(declared?: readonly QueueSettings[]): Promise<FsckFinding[]>
  /**
   * Checks whether the stored data is consistent; `queue` absent: all queues. Only reads. The time grows with the
   * number of jobs.
   */
  check(queue?: string): Promise<FsckFinding[]>
  /**
   * Repairs what can be repaired without losing a job or running one twice, while work goes on. It counts counters
   * again, and gives a lease to a running job without one, so that a claim recovers the job. On Redis that lease is 30
   * s, since the worker may live; on SQLite it has already ended, if no worker is known. Each step is atomic and
   * depends only on the present state, so a repair may be interrupted and called again. `queue` absent: all queues. The
   * method is absent if the store can repair nothing.
   */
  repair?(queue?: string): Promise<Repair>
}
