/**
 * The Redis server binary of this machine: the one that `REDIS_SERVER` names, `valkey-server` or `redis-server` on the
 * PATH, or Debian's, unpacked once into `node_modules/.cache` without touching the system.
 */

import { type ExecFileOptions, execFile } from 'node:child_process'
import { constants, existsSync } from 'node:fs'
import { access, copyFile, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { promisify } from 'node:util'

/** @internal */
export interface RedisServerBinary {
  readonly path: string
  /** What its environment needs beside the usual: where its libraries are. */
  readonly env: Readonly<Record<string, string>>
}

/** No server is found, and none can be unpacked. */
export class RedisServerMissingError extends Error {
  override readonly name = 'RedisServerMissingError'
}

const run = promisify(execFile)
/** An update of the package lists and three small packages take seconds; a mirror that hangs is given up. */
const longestStepMs = 120_000
/** The server, under the name of one of its tools: the name that it is started by decides what it is. */
const packageName = 'redis-tools'
const serverInPackage = 'redis-check-rdb'

let found: Promise<RedisServerBinary> | undefined

/**
 * Looks once per process. The first look on a machine without a server takes some seconds.
 *
 * Throws `RedisServerMissingError`, which says how to get one.
 * @internal
 */
export function redisServerBinary(): Promise<RedisServerBinary> {
  found ??= findRedisServer(process.env, process.cwd())
  return found
}

/**
 * The look itself, in this environment; `directory` is in the package whose `node_modules` would keep a server.
 * @internal
 */
export async function findRedisServer(env: NodeJS.ProcessEnv, directory: string): Promise<RedisServerBinary> {
  const named = env['REDIS_SERVER']
  if (named !== undefined && named !== '') {
    const path = await onPath(named, env)
    if (path === undefined) throw missing(`REDIS_SERVER is '${named}', where no program is`)
    return { path, env: {} }
  }
  const path = (await onPath('valkey-server', env)) ?? (await onPath('redis-server', env))
  if (path !== undefined) return { path, env: {} }
  const cache = join(nearestModules(directory), '.cache')
  const root = join(cache, 'millrace-redis')
  const unpacked = join(root, 'usr', 'bin', 'redis-server')
  if (!existsSync(unpacked)) await unpack(cache, root, env)
  return { path: unpacked, env: await libraries(root, env) }
}

/** Where the program is: a path is taken as it stands, a bare name is looked up. */
async function onPath(name: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const directories = name.includes('/') ? ['.'] : (env['PATH'] ?? '').split(delimiter).filter(isAbsolute)
  for (const directory of directories) {
    const path = resolve(directory, name)
    const runs = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (runs) return path
  }
  return undefined
}

function nearestModules(directory: string): string {
  for (let at = directory; ; at = dirname(at)) {
    const modules = join(at, 'node_modules')
    if (existsSync(modules)) return modules
    if (at === dirname(at)) return join(directory, 'node_modules')
  }
}

/** Built beside its place and put there by one rename: whoever else does the same finds a whole one, theirs or ours. */
async function unpack(cache: string, root: string, env: NodeJS.ProcessEnv): Promise<void> {
  await mkdir(cache, { recursive: true })
  const directory = await mkdtemp(join(cache, 'millrace-redis-'))
  try {
    const [tree, bin] = [join(directory, 'tree'), join(directory, 'tree', 'usr', 'bin')]
    const settings = { env: { ...env, LC_ALL: 'C' }, timeout: longestStepMs }
    for (const file of await download(directory, settings)) await run('dpkg', ['-x', file, tree], settings)
    await copyFile(join(bin, serverInPackage), join(bin, 'redis-server'))
    await run(join(bin, 'redis-server'), ['--version'], { env: { ...env, ...(await libraries(tree, env)) } })
    await rename(tree, root).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
    })
  } catch (error) {
    throw missing(`none is on the PATH, and Debian's could not be unpacked (${lastLine(error)})`)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** The package and all that it needs and this machine has not. Lists, cache and locks are private: no root is needed. */
async function download(directory: string, settings: ExecFileOptions): Promise<string[]> {
  const [lists, cache, archives] = [join(directory, 'lists'), join(directory, 'cache'), join(directory, 'archives')]
  for (const made of [join(lists, 'partial'), cache, join(archives, 'partial')]) await mkdir(made, { recursive: true })
  const options = {
    'Dir::State::lists': lists,
    'Dir::Cache': cache,
    'Dir::Cache::archives': archives,
    'Debug::NoLocking': '1',
    // As root, apt would download as a user who may not write here.
    'APT::Sandbox::User': 'root',
    'APT::Install-Recommends': '0',
    'Acquire::Retries': '2',
    'Acquire::http::Timeout': '20',
  }
  const flags = ['-q', ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])]
  await run('apt-get', [...flags, 'update'], settings)
  // Where the package is installed without a server, it is fetched all the same.
  await run('apt-get', [...flags, '-y', '--download-only', '--reinstall', 'install', packageName], settings)
  return (await readdir(archives)).filter((file) => file.endsWith('.deb')).map((file) => join(archives, file))
}

/** Debian keeps libraries in a directory named for the machine (`x86_64-linux-gnu`). */
async function libraries(root: string, env: NodeJS.ProcessEnv): Promise<Record<string, string>> {
  const under = ['usr/lib', 'lib'].map((path) => join(root, path)).filter((path) => existsSync(path))
  const directories = await Promise.all(
    under.map(async (path) => [
      path,
      ...(await readdir(path)).filter((name) => name.includes('-linux-')).map((name) => join(path, name)),
    ]),
  )
  const inherited = env['LD_LIBRARY_PATH'] ?? ''
  const all = [...directories.flat(), ...(inherited === '' ? [] : [inherited])]
  return { LD_LIBRARY_PATH: all.join(delimiter) }
}

function missing(why: string): RedisServerMissingError {
  return new RedisServerMissingError(
    `no Redis server to test with: ${why}; install redis-server or valkey-server, or set REDIS_SERVER to the path of one`,
  )
}

/** What a failed command said last. */
function lastLine(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message: string }
  return (stderr?.trim() || message).split('\n').at(-1)!
}
