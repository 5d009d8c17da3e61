/** The connection on which nothing passes any more, and nobody is told: half-open. */

import { type FaultProxy, faultProxy, type RedisServer, startRedis } from 'millrace/store-testing'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import type { RedisClient } from '#src/stores/redis/client/redis-client.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { redisScript } from '#src/stores/redis/client/redis-script.js'
import { errorOf, until } from './redis-answers.js'

const never = new AbortController().signal
const count = redisScript('count', "return redis.call('INCR', KEYS[1])")

let server: RedisServer
let proxy: FaultProxy
let through: RedisClient
beforeEach(async () => {
  server = await startRedis()
  proxy = await faultProxy(server)
  through = openRedisClient(redisAddress(proxy.url))
})
afterEach(async () => {
  await through.close()
  await proxy.close()
  await server.stop()
})

it('a connection without answers is given up, and the next one works', async () => {
  await through.run(count, ['n'], [])
  await proxy.inject('blackHole')
  const startedAt = performance.now()
  const error = await errorOf(through.run(count, ['n'], []))
  expect(error).toBeInstanceOf(StoreUnavailableError)
  expect(error.message).toContain('in doubt')
  // Five seconds, and what a busy machine adds.
  expect(performance.now() - startedAt).toBeLessThan(6_000)
  await proxy.inject('none')
  // What was in doubt arrives now, or never.
  await until(async () => Number(await through.run(count, ['n'], [])) >= 2)
})

it('pop gives a silent server up 2 s after it should have answered', async () => {
  expect(await through.pop(['bell'], 500, never)).toBeUndefined()
  await proxy.inject('blackHole')
  const startedAt = performance.now()
  expect(await errorOf(through.pop(['bell'], 500, never))).toBeInstanceOf(StoreUnavailableError)
  expect(performance.now() - startedAt).toBeLessThan(4_000)
})

it('pop ends soon after its signal aborts even if the server is silent', async () => {
  const abort = new AbortController()
  const popping = through.pop(['bell'], 30_000, abort.signal)
  await until(async () => String(await server.ask('CLIENT', 'LIST')).includes('cmd=bzpopmin'))
  await proxy.inject('blackHole')
  const abortedAt = performance.now()
  abort.abort()
  expect(await popping).toBeUndefined()
  expect(performance.now() - abortedAt).toBeLessThan(3_000)
})
