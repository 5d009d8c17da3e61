/** The messages between a SQLite store and its thread. */

import type { DriverName } from '../file/sqlite-driver.js'
import type { CarriedError } from '../file/sqlite-errors.js'
import type { OperationName } from './sqlite-thread-api.js'

export interface ThreadSettings {
  readonly file: string
  /** URL of a module that exports `clock`. */
  readonly clock: string | undefined
  /** Absent: the default of this Node. */
  readonly driver?: DriverName | undefined
  /** The weight, in bytes, at which a claim is full. Default 1 MiB. */
  readonly mostClaimBytes?: number | undefined
  /** Shared by both sides: its first cell is 1 from the moment the store is being closed. */
  readonly closing: Int32Array
}

/** A call: its number, its operation, and the arguments. */
export type ThreadCall = readonly [number: number, name: OperationName, args: readonly unknown[]]

/** The calls of one tick, or the request to finish. */
export type Request = readonly ThreadCall[] | 'close'

export type Answer = readonly [number: number, value: unknown, error?: CarriedError]

/**
 * The result of one commit: the answers to its calls, the queues that it rang, whether jobs ended, and whether there
 * are live messages.
 */
export interface Reply {
  readonly answers: readonly Answer[]
  readonly rung: readonly string[]
  readonly hasEnds: boolean
  readonly hasMessages: boolean
}
