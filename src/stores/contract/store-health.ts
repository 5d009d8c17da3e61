/** The health of a store: the facet of a store that examines what it runs on, checks what it holds and mends what is safe to mend. */

import type { QueueSettings } from './queue-settings.js'

/** Something that is, or is not, as it should be. */
export interface Finding {
  /** `'ok'`: as it should be · `'warning'`: works, with what the text says · `'error'`: jobs may be lost, or are wrong. */
  readonly level: 'ok' | 'warning' | 'error'
  /** What was looked at, in a few words, such as `eviction policy`. */
  readonly what: string
  /** What was found, and where it is no `'ok'` what to do. */
  readonly text: string
}

/** Something that was wrong and is right now. */
export interface Mended {
  /** What was mended, in the words of the finding that it ends, such as `queue mail`. */
  readonly what: string
  /** What was done, to how many, with up to three ids. */
  readonly text: string
}

export interface Repair {
  /** In the order in which it was done. Empty: there was nothing to mend. */
  readonly mended: readonly Mended[]
  /** What `check` finds after that: what is still wrong needs a person. */
  readonly left: readonly Finding[]
}

export interface StoreHealth {
  /**
   * What the store runs on: version, settings, rights, clock; and, where queues are made on purpose, whether the `declared` ones are
   * there and as they should be. Only reads.
   */
  examine(declared?: readonly QueueSettings[]): Promise<Finding[]>
  /** Whether what it holds fits together; `queue` absent: all queues. Only reads. Takes as long as there are jobs. */
  check(queue?: string): Promise<Finding[]>
  /**
   * Mends what can be mended without losing a job or running one twice, while work goes on: counters are counted again, a
   * running job without a lease gets one after whose end a claim takes it back: on Redis of 30 s, since its worker may live,
   * on SQLite one that has ended, if no worker is known. Each step is atomic and
   * decided by what the store holds at that moment, so that it may be broken off and asked for again. `queue` absent: all
   * queues. Absent where the store can mend nothing.
   */
  repair?(queue?: string): Promise<Repair>
}
