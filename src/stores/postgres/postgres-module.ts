/** A Postgres store made in the user's own module: for a pool, or for more than an address can say. */

import { defined } from '../../core/values/defined.js'
import type { Duration } from '../../core/values/duration.js'
import { refuseStore } from '../../core/values/store-address.js'
import type { Store } from '../contract/store.js'
import { idlePollOf, listenOf, type PostgresAddress, postgresAddress, schemaOf } from './client/postgres-address.js'

export type PostgresStoreOptions = (
  | { readonly url: string }
  | {
      /**
       * A pool of pg, or the configuration of one. The store reads from it how to connect (host, port, user, password,
       * database, ssl, stream), and never uses or closes it: its connections are its own, two for each process.
       */
      readonly pool: object
      /** As in an address: `'host:port'` past a pooler, or `'none'`. */
      readonly listen?: string
    }
) & {
  /** The schema of all tables and functions. Default: the one of the address, otherwise `'millrace'`. */
  readonly namespace?: string
  /**
   * For a database that goes to sleep: for how long a process with nothing to do leaves it alone, from `'1m'` to `'1d'`. Default: the one
   * of the address; without either, such a process looks every 2 s.
   */
  readonly idlePoll?: Duration
}

/** The schema that a mill uses unless it is told another. */
const defaultSchema = 'millrace'

/**
 * Makes a store for the module that `store: { module, export }` names. Every thread and process calls that module for
 * itself, with the mill's `{ namespace }`. The store connects at its first call, and makes its schema if it is missing.
 * Rejects with `ConfigError` for an invalid address, and, for a pool, if pg is not installed.
 *
 * @example
 * // store.ts, which `store: { module: new URL('./store.ts', import.meta.url), export: 'open' }` names
 * export const open = ({ namespace }: { namespace?: string }) =>
 *   postgresStore({ pool: { host: 'db', database: 'shop', password: () => freshToken() }, namespace })
 */
export async function postgresStore({ namespace, idlePoll, ...source }: PostgresStoreOptions): Promise<Store> {
  const address = 'pool' in source ? await addressOfPool(source.pool, source.listen) : postgresAddress(source.url)
  // Loaded here, because mills with another store do not need it.
  const { PostgresStore } = await import('./postgres-store.js')
  const idlePollMs = idlePoll === undefined ? address.idlePollMs : idlePollOf(idlePoll)
  return new PostgresStore({
    address: { ...address, ...defined({ idlePollMs }), schema: schemaFor(address, namespace) },
  })
}

/** The schema that an address and a namespace name together. Throws `ConfigError` if they name two. */
export function schemaFor({ schema }: PostgresAddress, namespace: string = defaultSchema): string {
  const named = schemaOf(namespace, '`namespace`')
  if (schema === undefined || schema === named) return named
  if (named === defaultSchema) return schema
  return refuseStore(
    `its address names the schema '${schema}', and \`namespace\` another, '${named}'. Leave one of them out: in Postgres the namespace is the schema`,
  )
}

/** What pg makes of the configuration, and of the variables of the environment that it reads, such as `PGHOST`. */
async function addressOfPool(pool: object, listen?: string): Promise<PostgresAddress> {
  const { loadPostgresDriver } = await import('./client/postgres-driver.js')
  const given = 'options' in pool && typeof pool.options === 'object' ? pool.options! : pool
  const makeClient = await loadPostgresDriver()
  const { host, port, user, password, database, ssl } = makeClient(given as Parameters<typeof makeClient>[0])
  return {
    hosts: [{ host, port }],
    database: database ?? 'postgres',
    tls: typeof ssl === 'object' ? ssl : ssl ? 'verify-full' : 'disable',
    ...defined({
      user,
      password: (password ?? undefined) as PostgresAddress['password'],
      stream: (given as { readonly stream?: () => object }).stream,
      listen: listen === undefined ? undefined : listenOf(listen),
    }),
  }
}
