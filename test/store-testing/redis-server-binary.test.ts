/** Where a Redis server is looked for. What is unpacked is not run here: every other test of a real server does that. */

import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { findRedisServer, RedisServerMissingError } from '#src/store-testing/servers/redis-server-binary.js'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-'))
})
afterEach(() => rm(directory, { recursive: true }))

async function program(...path: string[]): Promise<string> {
  const file = join(directory, ...path)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, '')
  await chmod(file, 0o755)
  return file
}

test('REDIS_SERVER is preferred to the PATH, and valkey-server to redis-server', async () => {
  const env = { PATH: join(directory, 'bin') }
  const redis = await program('bin', 'redis-server')
  expect(await findRedisServer(env, directory)).toEqual({ path: redis, env: {} })
  const valkey = await program('bin', 'valkey-server')
  expect(await findRedisServer(env, directory)).toEqual({ path: valkey, env: {} })
  const own = await program('own')
  expect(await findRedisServer({ ...env, REDIS_SERVER: own }, directory)).toEqual({ path: own, env: {} })
  expect(await findRedisServer({ ...env, REDIS_SERVER: 'redis-server' }, directory)).toEqual({ path: redis, env: {} })
})

test('a wrong REDIS_SERVER is reported, and no other server is used instead', async () => {
  await program('bin', 'redis-server')
  const env = { PATH: join(directory, 'bin'), REDIS_SERVER: '/nowhere/redis-server' }
  await expect(findRedisServer(env, directory)).rejects.toThrow(
    "no Redis server to test with: REDIS_SERVER is '/nowhere/redis-server', where no program is",
  )
})

test('an unpacked server is found in the nearest node_modules upwards, with its libraries', async () => {
  const root = join('node_modules', '.cache', 'millrace-redis', 'usr')
  const path = await program(root, 'bin', 'redis-server')
  const library = await program(root, 'lib', 'x86_64-linux-gnu', 'liblzf.so.1')
  const inner = await program(root, 'lib', 'x86_64-linux-gnu', 'pulseaudio', 'libpulsecommon.so')
  const deep = join(directory, 'packages', 'app')
  const { path: found, env } = await findRedisServer({ PATH: '/nowhere', LD_LIBRARY_PATH: '/own' }, deep)
  expect(found).toBe(path)
  expect(env['LD_LIBRARY_PATH']?.split(':')).toEqual([
    join(directory, root, 'lib'),
    dirname(library),
    dirname(inner),
    '/own',
  ])
})

test('without a server and without Debian the error says in one sentence how to get one', async () => {
  const missing = findRedisServer({ PATH: '/nowhere' }, directory)
  await expect(missing).rejects.toThrow(RedisServerMissingError)
  await expect(missing).rejects.toThrow(/apt-get.*install redis-server or valkey-server, or set REDIS_SERVER/)
})
