/** The store of the drills on Redis, as every process and thread of them opens it: with the audit around its scripts. */

import { auditedClient } from '#src/store-testing/harness/redis-audit.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'

/** What a store module exports: makes the store on the server at `url`. */
export function auditedRedis(url) {
  return (access) =>
    new RedisStore({ client: auditedClient(openRedisClient(redisAddress(url)), access.namespace), ...access })
}
