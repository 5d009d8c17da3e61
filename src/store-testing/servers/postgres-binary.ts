/**
 * The Postgres server of this machine: the one in the folder that `POSTGRES_BIN` names, Debian's, or Debian's unpacked once
 * into `node_modules/.cache` without touching the system.
 */

import { existsSync } from 'node:fs'
import { cp, readdir, symlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { onPath, unpackedProgram } from './machine-program.js'

/** Thrown if no server is found and none can be unpacked. */
export class PostgresMissingError extends Error {
  override readonly name = 'PostgresMissingError'
}

/** @internal */
export interface PostgresBinary {
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

/**
 * The programs in `directory`, for a user who may not look into the project; those that are installed stay where they are.
 * @internal
 */
export async function copiedInto(directory: string, { folder, env, tree }: PostgresBinary): Promise<PostgresBinary> {
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
