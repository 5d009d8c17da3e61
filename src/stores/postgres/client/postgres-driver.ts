/** The driver `pg`, an optional peer: it is loaded when a store is first used. */

import type { Client, ClientConfig } from 'pg'
import { messageOf } from '../../../core/messages/describe.js'
import { unfit } from '../../../core/values/store-address.js'

/**
 * With what its types leave out: two methods by which its socket keeps the process alive or not, and the process of the server
 * that was announced when it connected.
 */
export type PostgresClient = Client & { readonly processID: number | null; ref(): void; unref(): void }

/** The configuration with the option by which pg sends statements without waiting for the answers to those before. */
type PipelinedConfig = ClientConfig & { readonly pipeline: true }

export type MakePostgresClient = (config: PipelinedConfig) => PostgresClient

/** Throws `ConfigError` if pg is not installed. */
export async function loadPostgresDriver(): Promise<MakePostgresClient> {
  try {
    const { default: pg } = await import('pg')
    return (config) => new pg.Client(config) as PostgresClient
  } catch (error) {
    throw unfit(`needs the package 'pg', which cannot be loaded (${messageOf(error)}). Install it: npm install pg`)
  }
}
