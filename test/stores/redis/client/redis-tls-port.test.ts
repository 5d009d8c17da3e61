/** Addresses that speak TLS to a port without it, and the other way round. */

import { startRedis } from 'millrace/store-testing'
import { expect, it, onTestFinished } from 'vitest'
import { freePort, loopback } from '#src/store-testing/servers/free-port.js'
import { RedisServer } from '#src/store-testing/servers/redis-server-process.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { Certificates } from '../../../end-to-end/certificates.js'

async function refusalAt(url: string): Promise<string> {
  const client = openRedisClient(redisAddress(url))
  onTestFinished(() => client.close())
  return client.command('PING', []).then(
    () => 'it answers',
    (error: Error) => error.message,
  )
}

it('an address with TLS for a port without it makes the error name TLS', async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())

  expect(await refusalAt(server.url.replace('redis:', 'rediss:'))).toMatch(
    /at this port without TLS, the address begins with 'redis:'/,
  )
})

it('an address without TLS for a port with it makes the error name TLS', async () => {
  const certificates = new Certificates()
  const { cert, key } = certificates.signed('server')
  const port = await freePort()
  const files = [`tls-cert-file ${cert}`, `tls-key-file ${key}`, `tls-ca-cert-file ${certificates.authority}`]
  const server = await RedisServer.start({ config: [`tls-port ${port}`, ...files] })
  onTestFinished(() => server.stop())

  expect(await refusalAt(`redis://${loopback}:${port}`)).toMatch(/only with TLS, the address begins with 'rediss:'/)
})
