/** An old Redis: a store refuses the newest that cannot run its scripts, by its version, and leaves nothing there. */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTask, millrace } from 'millrace'
import { expect, it, onTestFinished } from 'vitest'
import { ConfigError } from '#src/core/errors.js'
import { freePort } from '#src/store-testing/servers/free-port.js'
import { GuardedProcess } from '#src/store-testing/servers/guarded-process.js'
import { askOnce } from '#src/store-testing/servers/resp-client.js'
import { debianServer } from '../stores/debian-server.js'

/** No release of Debian had 6.2. */
const old = { server: 'redis', suites: ['bullseye'] } as const
const withDownloadMs = 300_000

it('Redis 6 is refused in one sentence by every command, and no key is created', {
  timeout: withDownloadMs,
}, async () => {
  const port = await freePort()
  const directory = await mkdtemp(join(tmpdir(), 'millrace-old-redis-'))
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '']
  const server = new GuardedProcess({ path: await debianServer(old), args, directory })
  onTestFinished(async () => {
    server.kill('SIGKILL')
    await server.ended
    await rm(directory, { recursive: true })
  })
  await server.said(/Ready to accept connections/, 20_000)

  const greet = defineTask({ name: 'greet', run: async () => {} })
  const mill = millrace({ store: `redis://127.0.0.1:${port}`, tasks: [greet] })
  onTestFinished(() => mill.close())
  for (const ask of [() => mill.ready(), () => mill.enqueue(greet, undefined), () => mill.worker().start()]) {
    const error = await ask().catch((error: unknown) => error)
    expect(error).toBeInstanceOf(ConfigError)
    expect((error as Error).message).toMatch(/is version 6\.0\.\d+; a store needs Redis 7\.0 or .*Upgrade it\.$/)
  }
  expect(await askOnce(port, 'DBSIZE')).toBe(0)
})
