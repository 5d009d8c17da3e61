/** A Redis store made in the user's own module, for clients that need more than an address. */

import { defined } from '../../core/values/defined.js'
import type { Store } from '../contract/store.js'
import type { ConnectRedis } from './client/redis-address.js'
import { type RedisAddressOptions, redisAddress } from './client/redis-address.js'

export type RedisStoreOptions = (
  | { readonly url: string | RedisAddressOptions }
  /** Makes an ioredis client. The store never uses it itself: its connections are copies of it. */
  | { readonly connect: ConnectRedis }
) & {
  /** The prefix of all keys. Default `'millrace'`. */
  readonly namespace?: string
  /** The number of replicas that must have a job before its enqueue is accepted. Default 0. */
  readonly replicas?: number
}

/**
 * Makes a store for the module that `store: { module, export }` names. Every thread and process calls that module for
 * itself, with the mill's `{ namespace, replicas }`. The store connects at its first call. Rejects with `ConfigError`
 * for an invalid address.
 *
 * @example
 * // store.ts, which `store: { module: new URL('./store.ts', import.meta.url), export: 'open' }` names
 * export const open = (given: { namespace?: string }) =>
 *   redisStore({ url: { hosts: ['redis-1:6379', 'redis-2:6379'] }, ...given })
 */
export async function redisStore({ namespace, replicas, ...source }: RedisStoreOptions): Promise<Store> {
  // Loaded here, because mills with another store do not need it.
  const [{ openRedisClient }, { RedisStore }] = await Promise.all([
    import('./client/redis-connection.js'),
    import('./redis-store.js'),
  ])
  const client = openRedisClient('connect' in source ? source.connect : redisAddress(source.url))
  return new RedisStore({ client, ...defined({ namespace, replicas }) })
}
