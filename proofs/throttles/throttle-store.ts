/** The store of a run under a throttle, as each of its processes opens it: with a test clock that they all share. */

import { auditedClient } from '#src/store-testing/harness/redis-audit.js'
import type { Store } from '#src/stores/contract/store.js'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'

export type StoreWords =
  | { readonly kind: 'sqlite'; readonly file: string; readonly clockUrl: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly schema: string }
  | { readonly kind: 'redis'; readonly url: string; readonly namespace: string }

export interface ClockedStore {
  readonly store: Store
  /** Sets the instant of the next call. A store with a clock of its own reads the instant from there. */
  setNow(now: number): void
}

export function storeOf(words: StoreWords): ClockedStore {
  if (words.kind === 'sqlite')
    return { store: new SqliteStore({ file: words.file, clock: words.clockUrl }), setNow() {} }
  if (words.kind === 'postgres') {
    const { url, schema } = words
    return { store: new PostgresStore({ address: { ...postgresAddress(url), schema } }), setNow() {} }
  }
  const { url, namespace } = words
  let now = 0
  const client = auditedClient(openRedisClient(redisAddress(url)), namespace, () => now)
  return {
    store: new RedisStore({ client, namespace }),
    setNow(instant) {
      now = instant
    },
  }
}
