/**
 * A program of this machine: the one on the PATH, or one from a Debian package, unpacked once into `node_modules/.cache`
 * without touching the system.
 */

import { type ExecFileOptions, execFile } from 'node:child_process'
import { constants, existsSync } from 'node:fs'
import { access, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { promisify } from 'node:util'

/** @internal */
export interface MachineProgram {
  readonly path: string
  /** Variables that it needs besides the usual ones: the place of its libraries. */
  readonly env: Readonly<Record<string, string>>
}

interface DebianProgram {
  readonly packages: readonly string[]
  /**
   * The suites of Debian that the packages come from, such as `trixie`. All that they need comes with them, even the C
   * library, so `program` must start it by that library's own loader. Default: this machine's, less what it has installed.
   */
  readonly suites?: readonly string[]
  /** Its path in the unpacked tree; it tells its version by `--version`. */
  readonly program: string
  /** The folder below `node_modules/.cache`. */
  readonly folder: string
  /** Work in the unpacked tree before the program is run. */
  prepare?(tree: string): Promise<void>
}

const run = promisify(execFile)
/** Updating the package lists and loading a browser of 120 MB take seconds; a mirror that is too slow is given up. */
const longestStepMs = 180_000
const debianMirror = 'http://deb.debian.org/debian'
const debianKeys = '/usr/share/keyrings/debian-archive-keyring.gpg'

/**
 * The place of the program: a path is used unchanged, a bare name is looked up.
 * @internal
 */
export async function onPath(name: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
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

/**
 * The program from Debian's package; the package around `directory` keeps it in its `node_modules`. The first time
 * takes some seconds, for a browser half a minute.
 *
 * Throws an error whose message says why there is none.
 * @internal
 */
export async function unpackedProgram(
  debian: DebianProgram,
  env: NodeJS.ProcessEnv,
  directory: string,
): Promise<MachineProgram> {
  const cache = join(nearestModules(directory), '.cache')
  const root = join(cache, debian.folder)
  const path = join(root, debian.program)
  if (!existsSync(path)) await unpack(debian, cache, root, env)
  return { path, env: await environment(debian, root, env) }
}

function nearestModules(directory: string): string {
  for (let at = directory; ; at = dirname(at)) {
    const modules = join(at, 'node_modules')
    if (existsSync(modules)) return modules
    if (at === dirname(at)) return join(directory, 'node_modules')
  }
}

/**
 * Built next to its place and moved there by one rename: another process that does the same finds a whole one, theirs
 * or ours.
 */
async function unpack(debian: DebianProgram, cache: string, root: string, env: NodeJS.ProcessEnv): Promise<void> {
  await mkdir(cache, { recursive: true })
  const directory = await mkdtemp(join(cache, `${debian.folder}-`))
  try {
    const tree = join(directory, 'tree')
    const settings = { env: { ...env, LC_ALL: 'C' }, timeout: longestStepMs }
    for (const file of await download(debian, directory, settings)) await run('dpkg', ['-x', file, tree], settings)
    await debian.prepare?.(tree)
    await run(join(tree, debian.program), ['--version'], { env: { ...env, ...(await environment(debian, tree, env)) } })
    await rename(tree, root).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
    })
  } catch (error) {
    throw new Error(`none is on the PATH, and Debian's could not be unpacked (${lastLine(error)})`)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** The packages and all that they need and this machine has not. Lists, cache and locks are private: no root is needed. */
async function download(
  { packages, suites }: DebianProgram,
  directory: string,
  settings: ExecFileOptions,
): Promise<string[]> {
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
    ...(suites === undefined ? {} : await otherRelease(suites, directory)),
  }
  const flags = ['-q', ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])]
  await run('apt-get', [...flags, 'update'], settings)
  // A package that is installed without the program is fetched all the same.
  await run('apt-get', [...flags, '-y', '--download-only', '--reinstall', 'install', ...packages], settings)
  return (await readdir(archives)).filter((file) => file.endsWith('.deb')).map((file) => join(archives, file))
}

/** Options of apt: it knows these suites alone, and takes nothing for installed. */
async function otherRelease(suites: readonly string[], directory: string): Promise<Record<string, string>> {
  const [sources, nothing] = [join(directory, 'sources.list'), join(directory, 'status')]
  const lines = suites.map((suite) => `deb [signed-by=${debianKeys}] ${debianMirror} ${suite} main\n`)
  await writeFile(sources, lines.join(''))
  await writeFile(nothing, '')
  return { 'Dir::Etc::sourcelist': sources, 'Dir::Etc::sourceparts': '-', 'Dir::State::status': nothing }
}

/** None for a program of another release: it finds its own libraries, which would break the shell that starts it. */
async function environment({ suites }: DebianProgram, root: string, env: NodeJS.ProcessEnv) {
  return suites === undefined ? libraries(root, env) : {}
}

/** Debian keeps libraries in a directory named for the machine (`x86_64-linux-gnu`), and some in folders of it. */
async function libraries(root: string, env: NodeJS.ProcessEnv): Promise<Record<string, string>> {
  const under = ['usr/lib', 'lib'].map((path) => join(root, path)).filter((path) => existsSync(path))
  const machine = (await Promise.all(under.map(foldersOf))).flat().filter((path) => path.includes('-linux-'))
  const inner = (await Promise.all(machine.map(foldersOf))).flat()
  const inherited = env['LD_LIBRARY_PATH'] ?? ''
  return { LD_LIBRARY_PATH: [...under, ...machine, ...inner, ...(inherited === '' ? [] : [inherited])].join(delimiter) }
}

async function foldersOf(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(path, name))
}

/** The last output of a failed command. */
function lastLine(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message: string }
  return (stderr?.trim() || message).split('\n').at(-1)!
}
