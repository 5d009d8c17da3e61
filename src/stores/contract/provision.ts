/** Provision: the facet of a store that makes queues only when it is told to. Opening one that is missing fails. */

import type { QueueSettings } from './queue-settings.js'

/** A queue that was to be made. */
export interface ProvisionedQueue {
  readonly queue: string
  /** What it is called in the service, and what its morgue is. */
  readonly name: string
  readonly deadName: string
  /** Whether it, or its morgue, was missing. */
  readonly wasMissing: boolean
}

export interface Provision {
  /**
   * Makes queues with their morgues where they are missing, with these tags. What is there is left as it is, its tags too.
   * Repeating changes nothing.
   */
  create(queues: readonly QueueSettings[], tags?: Readonly<Record<string, string>>): Promise<ProvisionedQueue[]>
}
