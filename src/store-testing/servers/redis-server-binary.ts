/**
 * The Redis server binary of this machine: the one that `REDIS_SERVER` names, `valkey-server` or `redis-server` on the
 * PATH, or Debian's, unpacked once into `node_modules/.cache` without touching the system.
 */

import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type MachineProgram, onPath, unpackedProgram } from './machine-program.js'

/** Thrown if no server is found and none can be unpacked. */
export class RedisServerMissingError extends Error {
  override readonly name = 'RedisServerMissingError'
}

/** The server under the name of one of its tools: the name with which it is started decides its role. */
const debian = {
  packages: ['redis-tools'],
  program: 'usr/bin/redis-server',
  folder: 'millrace-redis',
  prepare: (tree: string) => copyFile(join(tree, 'usr/bin/redis-check-rdb'), join(tree, 'usr/bin/redis-server')),
}

let found: Promise<MachineProgram> | undefined

/**
 * Looks once per process. The first look on a machine without a server takes some seconds.
 *
 * Throws `RedisServerMissingError`, which says how to get one.
 * @internal
 */
export function redisServerBinary(): Promise<MachineProgram> {
  found ??= findRedisServer(process.env, process.cwd())
  return found
}

/**
 * The look itself, in this environment; `directory` is in the package whose `node_modules` would keep a server.
 * @internal
 */
export async function findRedisServer(env: NodeJS.ProcessEnv, directory: string): Promise<MachineProgram> {
  const named = env['REDIS_SERVER']
  if (named !== undefined && named !== '') {
    const path = await onPath(named, env)
    if (path === undefined) throw missing(`REDIS_SERVER is '${named}', where no program is`)
    return { path, env: {} }
  }
  const path = (await onPath('valkey-server', env)) ?? (await onPath('redis-server', env))
  if (path !== undefined) return { path, env: {} }
  return unpackedProgram(debian, env, directory).catch((error: Error) => {
    throw missing(error.message)
  })
}

function missing(why: string): RedisServerMissingError {
  return new RedisServerMissingError(
    `no Redis server to test with: ${why}; install redis-server or valkey-server, or set REDIS_SERVER to the path of one`,
  )
}
