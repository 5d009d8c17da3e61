/** Provision: the facet of a store that creates queues only on request. Opening a missing queue fails. */

import type { QueueSettings } from './queue-settings.js'

/** A queue that was requested. */
export interface ProvisionedQueue {
  readonly queue: string
  /** The names of the queue and of its morgue in the service. */
  readonly name: string
  readonly deadName: string
  /** Whether the queue, or its morgue, was missing. */
  readonly wasMissing: boolean
}

export interface Provision {
  /**
   * Creates missing queues and their morgues, with these tags. Existing ones stay as they are, tags included. Repeating
   * changes nothing.
   */
  create(queues: readonly QueueSettings[], tags?: Readonly<Record<string, string>>): Promise<ProvisionedQueue[]>
}
