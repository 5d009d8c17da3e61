/** A key of the wrong type: it has the name of a key of the store, but contains something else. */

import { StoreCorruptError } from '../../../core/errors.js'
import type { RedisClient } from '../client/redis-client.js'
import { keyNames, keyTypes } from '../layout/redis-keys.js'
import type { RedisShard } from '../layout/redis-layout.js'

/** The error with the queue and key that caused it, or unchanged if no key has another type. Writes nothing. */
export async function namingWrongType(
  client: RedisClient,
  shards: readonly RedisShard[],
  error: StoreCorruptError,
): Promise<StoreCorruptError> {
  const named = shards.flatMap(({ queue, kind, keys }) =>
    keys.map((key, i) => ({ queue, key, type: keyTypes[keyNames(kind)[i]!] })),
  )
  const found = await Promise.all(named.map(async ({ key }) => String(await client.command('TYPE', [key]))))
  const at = found.findIndex((type, i) => type !== 'none' && type !== named[i]!.type)
  if (at < 0) return error
  const { queue, key, type } = named[at]!
  return new StoreCorruptError(
    `queue '${queue}' cannot be used: its key '${key}' holds a ${found[at]} where Millrace keeps a ${type}. ` +
      "It was left as it is. Move or delete what is not Millrace's, or give the store a namespace of its own.",
    { cause: error },
  )
}
