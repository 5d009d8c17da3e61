/** Reaching a Redis: through sentinels that are silent, and where there is little time. */

import { faultProxy } from 'millrace/store-testing'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import { RedisServer } from '#src/store-testing/servers/redis-server-process.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'

const never = new AbortController().signal

let server: RedisServer
beforeEach(async () => {
  server = await RedisServer.start()
})
afterEach(() => server.stop())

it('a connected but silent sentinel is skipped, and the next one is asked', async () => {
  const watch = [`sentinel monitor mymaster ${server.host} ${server.port} 1`]
  const sentinel = await RedisServer.start({ isSentinel: true, config: watch })
  const silent = await faultProxy({ port: sentinel.port })
  await silent.inject('blackHole')
  const client = openRedisClient(
    redisAddress(`redis+sentinel://127.0.0.1:${silent.port},127.0.0.1:${sentinel.port}/mymaster`),
  )
  // The first call may end before the silent one was given up; the connection is being made all the same.
  await client.reach().catch(() => client.reach())
  await client.close()
  await silent.close()
  await sentinel.stop()
})

it('a pop on an absent server reports that, however little time is left', async () => {
  const client = openRedisClient(redisAddress(`redis://127.0.0.1:${server.port}`))
  expect(await client.pop(['bell'], 500, never)).toBeUndefined()
  await server.kill()
  for (const forMs of [1.5, 20.7, 60.3])
    await expect(client.pop(['bell'], forMs, never)).rejects.toBeInstanceOf(StoreUnavailableError)
  await client.close()
})
