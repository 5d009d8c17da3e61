/** A secured Redis: TLS that asks for a client's certificate, a user with the least rights, Sentinels with a login of their own. */

import { defineTask, type MillOptions, millrace } from 'millrace'
import { expect, it, onTestFinished } from 'vitest'
import { freePort, loopback } from '#src/store-testing/servers/free-port.js'
import { RedisServer } from '#src/store-testing/servers/redis-server-process.js'
import { userLine } from '#src/stores/redis/health/redis-acl.js'
import { Certificates } from './certificates.js'

type Config = readonly string[]

/** A port of its own speaks TLS; the server's first port stays plain, for the test. */
async function securePort(certificates: Certificates, name: string) {
  const port = await freePort()
  const { cert, key } = certificates.signed(name)
  const files = [`tls-cert-file ${cert}`, `tls-key-file ${key}`, `tls-ca-cert-file ${certificates.authority}`]
  return { port, config: [`tls-port ${port}`, ...files, 'tls-auth-clients yes'] }
}

async function started(config: Config, isSentinel = false): Promise<RedisServer> {
  const server = await RedisServer.start({ config, isSentinel })
  onTestFinished(() => server.stop())
  return server
}

const greet = defineTask({ name: 'greet', run: async (name: string) => `hello ${name}` })

function millOn(store: NonNullable<MillOptions['store']>) {
  const mill = millrace({ store, tasks: [greet] })
  onTestFinished(() => mill.close())
  return mill
}

/** A job goes in, a worker runs it, and its result comes back. */
async function runsOneJob(store: NonNullable<MillOptions['store']>): Promise<void> {
  const mill = millOn(store)
  await mill.worker({ concurrency: 1 }).start()
  const job = await mill.enqueue(greet, 'Ada')
  expect(await job.result({ timeout: '10s' })).toBe('hello Ada')
}

it('TLS with a client certificate carries jobs, and a client without one is refused', async () => {
  const certificates = new Certificates()
  const { port, config } = await securePort(certificates, 'server')
  await started(config)
  const hosts = [`${loopback}:${port}`]
  const { ca, ...own } = certificates.client('worker')
  await runsOneJob({ hosts, tls: { ca, ...own } })
  await expect(millOn({ hosts, tls: { ca } }).ready()).rejects.toThrow(
    /requires a client certificate .*check the store's 'tls'/,
  )
  await expect(millOn({ hosts, tls: own }).ready()).rejects.toThrow(/certificate/)
})

it('Sentinels with their own login lead over TLS to a master, on which a user with the fewest rights runs jobs', async () => {
  const certificates = new Certificates()
  const tls = certificates.client('worker')
  const data = await securePort(certificates, 'server')
  const master = await started([...data.config, 'user watcher on >sees allkeys allchannels +@all'])
  await master.ask(...userLine('millrace', false).replace('>PASSWORD', '>works').split(' '))
  const watch = [
    `sentinel monitor mymaster ${loopback} ${data.port} 1`,
    'sentinel auth-user mymaster watcher',
    'sentinel auth-pass mymaster sees',
    'tls-replication yes',
    'user default off',
    'user guide on >leads allchannels +@all',
  ]
  const sentinel = await securePort(certificates, 'sentinel')
  await started([...sentinel.config, ...watch], true)
  const kind = { kind: 'sentinel', hosts: [`${loopback}:${sentinel.port}`], master: 'mymaster', tls } as const
  const user = { username: 'millrace', password: 'works' }
  await runsOneJob({ ...kind, ...user, sentinelUsername: 'guide', sentinelPassword: 'leads' })
  await expect(millOn({ ...kind, ...user }).ready()).rejects.toThrow(
    /NOAUTH.*check the store's 'sentinelUsername' and 'sentinelPassword'/,
  )
})
