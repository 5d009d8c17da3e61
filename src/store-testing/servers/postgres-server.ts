/**
 * A Postgres server process: one real server on a port of its own, with its data in a directory of its own. It can be killed
 * and started again. It ends with the process that started it. Its programs are those in the folder that `POSTGRES_BIN` names,
 * Debian's, or Debian's unpacked once into `node_modules/.cache` without touching the system.
 */

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, chown, cp, mkdir, mkdtemp, readdir, rename, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { freePort, loopback } from './free-port.js'
import { GuardedProcess } from './guarded-process.js'
import { onPath, unpackedProgram } from './machine-program.js'

interface PostgresServerOptions {
  /** Settings besides those of a test, such as `{ fsync: 'on' }`. */
  readonly settings?: Readonly<Record<string, string>>
  /** A running server, of which this one becomes a standby: it follows all that is committed, and takes no writes. */
  readonly standbyOf?: PostgresServer
  /** Absent: any that is free. */
  readonly port?: number
}

const run = promisify(execFile)
const ready = /database system is ready to accept (read-only )?connections/
const portTaken = /Address already in use/
const startWithinMs = 60_000
const mostPortRaces = 5
/** Data of a test need not survive the machine; one that does says so. */
const testSettings = {
  fsync: 'off',
  full_page_writes: 'off',
  jit: 'off',
  shared_buffers: '64MB',
  max_wal_size: '128MB',
  max_connections: '200',
  autovacuum_naptime: '5s',
  unix_socket_directories: '',
  listen_addresses: loopback,
  // In its directory, which is removed: what is elsewhere stays if the server is killed.
  dynamic_shared_memory_type: 'mmap',
}

export class PostgresServer {
  readonly host = loopback
  readonly port: number
  /** Its working directory; the data are in `data`. */
  readonly directory: string
  readonly #binary: PostgresBinary
  readonly #args: readonly string[]
  #process: GuardedProcess | undefined
  #stopped: Promise<void> | undefined

  private constructor(binary: PostgresBinary, directory: string, port: number, args: readonly string[]) {
    this.#binary = binary
    this.directory = directory
    this.port = port
    this.#args = args
  }

  /**
   * Starts a server with an empty database `postgres` of the user `postgres`, who needs no password, or with the data of
   * `standbyOf`; resolves when it answers.
   *
   * Throws `PostgresMissingError`, or an error with the server's output if it does not start.
   */
  static async start({ settings = {}, standbyOf, port: own }: PostgresServerOptions = {}): Promise<PostgresServer> {
    const found = await findPostgres(process.env, process.cwd())
    for (let races = 0; ; races++) {
      const directory = await ownDirectory()
      const binary = await reachable(directory, found)
      const data = join(directory, 'data')
      if (standbyOf === undefined) await run('cp', ['-a', await preparedData(found), data])
      else await standbyOf.#copyTo(data)
      await give(data)
      const port = own ?? (await freePort())
      const all = { ...testSettings, ...settings, port: String(port) }
      const args = ['-D', 'data', ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
      const server = new PostgresServer(binary, directory, port, args)
      try {
        await server.#launch()
        return server
      } catch (error) {
        const hasLostRace = portTaken.test(server.#process?.output ?? '')
        await server.stop()
        if (!hasLostRace || own !== undefined || races === mostPortRaces) throw error
      }
    }
  }

  async #copyTo(data: string): Promise<void> {
    const { folder, env } = this.#binary
    const source = ['-h', this.host, '-p', String(this.port), '-U', 'postgres']
    const args = [...source, '-D', data, ...'--write-recovery-conf --wal-method=stream --checkpoint=fast'.split(' ')]
    await run(join(folder, 'pg_basebackup'), args, { env: { ...process.env, ...env } })
  }

  get url(): string {
    return `postgres://postgres@${this.host}:${this.port}/postgres`
  }

  /** The pid of the running process, or of the last one. */
  get pid(): number {
    return this.#process!.pid
  }

  /** Ends it at once, as a crash of the server does. Its children end by themselves. Resolves when it has ended. */
  async kill(): Promise<void> {
    this.#process!.kill('SIGQUIT')
    await this.#process!.ended
  }

  /** Starts it again on the same port and with its data; resolves when it answers. A running one is killed first. */
  async restart(): Promise<void> {
    await this.kill()
    await this.#launch()
  }

  /** Ends it and removes its data. Stopping twice is harmless. */
  stop(): Promise<void> {
    this.#stopped ??= this.kill().then(() => rm(this.directory, { recursive: true, force: true, maxRetries: 3 }))
    return this.#stopped
  }

  async #launch(): Promise<void> {
    if (this.#stopped !== undefined) throw new Error(`the server of port ${this.port} was stopped and its data removed`)
    const { folder, env } = this.#binary
    const as = owner()
    this.#process = new GuardedProcess({
      ...{ path: join(folder, 'postgres'), env, args: this.#args, directory: this.directory },
      ...(as === undefined ? {} : { as }),
    })
    await this.#process.said(ready, startWithinMs)
  }
}

/** Postgres refuses to run as root: then it runs as `nobody`, who owns its data. Undefined: as this process. */
function owner(): { readonly uid: number; readonly gid: number } | undefined {
  return process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined
}

/** `nobody` may not look into a project of root. */
async function reachable(directory: string, binary: PostgresBinary): Promise<PostgresBinary> {
  if (owner() === undefined) return binary
  const copied = await copiedInto(directory, binary)
  // Whose directory it is removes it.
  if (copied.tree !== undefined) await give(copied.tree)
  return copied
}

async function give(path: string): Promise<void> {
  const as = owner()
  if (as !== undefined) await run('chown', ['-R', `${as.uid}:${as.gid}`, path])
}

async function ownDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-postgres-'))
  const as = owner()
  if (as !== undefined) await chown(directory, as.uid, as.gid)
  await chmod(directory, 0o700)
  return directory
}

async function versionOf({ folder, env }: PostgresBinary): Promise<string> {
  const { stdout } = await run(join(folder, 'postgres'), ['--version'], { env: { ...process.env, ...env } })
  return /[\d.]+/.exec(stdout)![0]
}

/**
 * A data folder that no server has used, made once and kept in `node_modules/.cache`: making one takes seconds, copying it
 * half of one. Another process that makes it at the same moment finds a whole one, theirs or ours.
 */
async function preparedData(found: PostgresBinary): Promise<string> {
  const version = await versionOf(found)
  const cache = resolve('node_modules/.cache')
  const kept = join(cache, `millrace-postgres-data-${version}`)
  if (existsSync(kept)) return kept
  await mkdir(cache, { recursive: true })
  const directory = await ownDirectory()
  const made = `${kept}-${process.pid}`
  try {
    const { folder, env } = await reachable(directory, found)
    const data = join(directory, 'data')
    const args = ['-D', data, ...'-U postgres -A trust -E UTF8 --locale=C --no-sync --no-instructions'.split(' ')]
    await run(join(folder, 'initdb'), args, { ...owner(), cwd: directory, env: { ...process.env, ...env } })
    await run('cp', ['-a', data, made])
    await rename(made, kept).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
    })
  } finally {
    await rm(directory, { recursive: true, force: true })
    await rm(made, { recursive: true, force: true })
  }
  return kept
}

/** Thrown if no server is found and none can be unpacked. */
class PostgresMissingError extends Error {
  override readonly name = 'PostgresMissingError'
}

interface PostgresBinary {
  /** The folder of `postgres` and `initdb`. */
  readonly folder: string
  /** Variables that they need besides the usual ones: the place of their libraries. */
  readonly env: Readonly<Record<string, string>>
  /** The tree that they were unpacked into. Absent: they are installed. */
  readonly tree?: string
}

const versions = 'usr/lib/postgresql'

/** The folder of the programs has the version in its name: the link has not. */
const debian = {
  packages: ['postgresql'],
  program: 'usr/bin/postgres',
  folder: 'millrace-postgres',
  async prepare(tree: string): Promise<void> {
    const newest = await newestIn(join(tree, versions))
    await symlink(join('..', 'lib', 'postgresql', newest!, 'bin', 'postgres'), join(tree, 'usr/bin/postgres'))
  },
}

/**
 * `directory` is in the package whose `node_modules` would keep a server. The first look on a machine without one takes half a
 * minute.
 *
 * Throws `PostgresMissingError`, which says how to get one.
 * @internal
 */
export async function findPostgres(env: NodeJS.ProcessEnv, directory: string): Promise<PostgresBinary> {
  const named = env['POSTGRES_BIN']
  if (named !== undefined && named !== '') {
    if ((await onPath(join(named, 'postgres'), env)) === undefined)
      throw missing(`POSTGRES_BIN is '${named}', where no program 'postgres' is`)
    return { folder: named, env: {} }
  }
  const newest = await newestIn(join('/', versions))
  if (newest !== undefined) return { folder: join('/', versions, newest, 'bin'), env: {} }
  const { path, env: libraries } = await unpackedProgram(debian, env, directory).catch((error: Error) => {
    throw missing(error.message)
  })
  const tree = resolve(dirname(path), '../..')
  return { folder: join(tree, versions, (await newestIn(join(tree, versions)))!, 'bin'), env: libraries, tree }
}

/** The programs in `directory`, for a user who may not look into the project; those that are installed stay where they are. */
async function copiedInto(directory: string, { folder, env, tree }: PostgresBinary): Promise<PostgresBinary> {
  if (tree === undefined) return { folder, env }
  const copy = join(directory, 'programs')
  await cp(tree, copy, { recursive: true, verbatimSymlinks: true })
  const moved = (text: string) => text.replaceAll(tree, copy)
  return {
    folder: moved(folder),
    env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, moved(value)])),
    tree: copy,
  }
}

async function newestIn(folder: string): Promise<string | undefined> {
  if (!existsSync(folder)) return undefined
  const found = (await readdir(folder)).filter((version) => existsSync(join(folder, version, 'bin', 'postgres')))
  return found.sort((a, b) => Number(a) - Number(b)).at(-1)
}

function missing(why: string): PostgresMissingError {
  return new PostgresMissingError(
    `no Postgres server to test with: ${why}; install postgresql, or set POSTGRES_BIN to the folder of its programs`,
  )
}
