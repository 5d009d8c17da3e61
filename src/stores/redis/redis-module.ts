/** A Redis store made in the user's own module: for clients that need more than an address. */

import type { Store } from '../contract/store.js'
import type { ConnectRedis } from './client/redis-address.js'
import { type RedisAddressOptions, redisAddress } from './client/redis-address.js'

export type RedisStoreOptions = (
  | { readonly url: string | RedisAddressOptions }
  /** Makes an ioredis client; it is the pattern for the connections, which are copies of it. */
  | { readonly connect: ConnectRedis }
) & {
  /** What all keys begin with. Default `'millrace'`. */
  readonly namespace?: string
  /** Replicas that must have a job before its enqueue is accepted. Default 0. */
  readonly replicas?: number
}

/**
 * A store, for the module that `store: { module, export }` names: every thread and process calls that module for itself,
 * with the mill's `{ namespace, replicas }`. Connects at its first call. Rejects with `ConfigError` for an address that is none.
 */
export async function redisStore({ namespace, replicas, ...source }: RedisStoreOptions): Promise<Store> {
  // Loaded here: whoever has another store has no use for it.
  const [{ openRedisClient }, { RedisStore }] = await Promise.all([
    import('./client/redis-connection.js'),
    import('./redis-store.js'),
  ])
  const client = openRedisClient('connect' in source ? source.connect : redisAddress(source.url))
  return new RedisStore({
    client,
    ...(namespace === undefined ? {} : { namespace }),
    ...(replicas === undefined ? {} : { replicas }),
  })
}
