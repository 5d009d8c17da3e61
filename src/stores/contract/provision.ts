/**
 * What is made on purpose, before a store is used. Provision: the facet of a store that creates queues only on request; opening
 * a missing queue fails. Migration: the facet of a store in a database where perhaps only an administrator may make tables.
 */

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

/** The roles that are granted rights in the database. The owner of the tables needs none. */
export interface MigrationRoles {
  /** Mills and workers run as these: they may do all but make, change and drop tables and functions. */
  readonly workers: readonly string[]
  /** These may enqueue by SQL, and nothing else. */
  readonly enqueuers: readonly string[]
}

export interface Migrated {
  /** The schema of the store in its database. */
  readonly schema: string
  /** Whether its tables were missing. */
  readonly isNew: boolean
  /** The functions that were missing. */
  readonly functions: readonly string[]
}

export interface Migration {
  /**
   * Makes what the store lacks, and grants; all or nothing. Repeating changes nothing. Throws `InvalidArgumentError` for a
   * role that does not exist, `StoreRefusedError` if this one may not, `StoreVersionError`.
   */
  migrate(roles: MigrationRoles): Promise<Migrated>
  /** The same as one transaction in SQL, for somebody else to run. Asks the database nothing. */
  sql(roles: MigrationRoles): string
}
