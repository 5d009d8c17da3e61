/**
 * moto: another emulator of SQS, in Python. Debian's packages of it are unpacked once into `node_modules/.cache`, without touching the
 * system: those of Debian 12, and moto itself of Debian 13. Its wall clock can be moved where there is a gcc.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { freePort } from '#src/store-testing/servers/free-port.js'
import { ClockShim } from '../starts/clock-shim.js'

export interface MotoServer {
  readonly version: string
  readonly endpoint: string
  /** Its wall clock, which all but stands. Undefined where it goes by itself, as nobody can move it. */
  readonly clock: Pick<ClockShim, 'advance'> | undefined
  stop(): Promise<void>
}

const run = promisify(execFile)
const python = '/usr/bin/python3'
const moto = '5.1.1'
const cache = join(import.meta.dirname, '../../node_modules/.cache')
const root = join(cache, `millrace-moto-${moto}`)
const modules = join(root, 'usr/lib/python3/dist-packages')
const sources = ['bookworm', 'trixie'].map(
  (suite) =>
    `deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian ${suite} main`,
)
const needed =
  'flask flask-cors werkzeug boto3 botocore responses xmltodict jinja2 markupsafe itsdangerous click dateutil six s3transfer jmespath urllib3 requests certifi chardet charset-normalizer idna cryptography cffi-backend yaml simplejson colorama'
const packages = [`python3-moto=${moto}-4`, ...needed.split(' ').map((name) => `python3-${name}/bookworm`)]
const longestStepMs = 120_000
const startWithinMs = 30_000

/** `startAt`: where its clock begins, if it can be moved. Throws where no moto can be had, and says what is missing. */
export async function startMoto(startAt: number): Promise<MotoServer> {
  if (!existsSync(modules)) await unpack()
  const folder = await mkdtemp(join(tmpdir(), 'millrace-moto-'))
  const shim = movableClock(folder)
  shim?.slow(startAt)
  const port = await freePort()
  const server = spawn(python, ['-m', 'moto.server', '-p', String(port)], {
    env: { ...process.env, PYTHONPATH: modules, ...shim?.env },
    stdio: 'ignore',
  })
  await answered(server, port)
  return {
    version: moto,
    endpoint: `http://127.0.0.1:${port}`,
    clock: shim,
    async stop() {
      server.kill('SIGKILL')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Undefined where there is no gcc. */
function movableClock(folder: string): ClockShim | undefined {
  try {
    return ClockShim.made(folder)
  } catch {
    return undefined
  }
}

async function unpack(): Promise<void> {
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(cache, 'millrace-moto-'))
  try {
    const [tree, lists, debs] = [join(folder, 'tree'), join(folder, 'lists'), join(folder, 'debs')]
    for (const made of [tree, debs, join(lists, 'partial')]) await mkdir(made, { recursive: true })
    await writeFile(join(folder, 'sources.list'), `${sources.join('\n')}\n`)
    const options = {
      'Dir::Etc::sourcelist': join(folder, 'sources.list'),
      'Dir::Etc::sourceparts': '-',
      'Dir::State::lists': lists,
      'Dir::Cache': join(folder, 'cache'),
      'Debug::NoLocking': '1',
      // As root, apt would download as a user who may not write here.
      'APT::Sandbox::User': 'root',
      'Acquire::http::Timeout': '20',
    }
    const flags = ['-q', ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])]
    const settings = { cwd: debs, timeout: longestStepMs, env: { ...process.env, LC_ALL: 'C' } }
    await run('apt-get', [...flags, 'update'], settings)
    await run('apt-get', [...flags, 'download', ...packages], settings)
    for (const file of await readdir(debs)) await run('dpkg', ['-x', file, tree], settings)
    await run(python, ['-c', 'import moto.server'], {
      env: { ...process.env, PYTHONPATH: join(tree, 'usr/lib/python3/dist-packages') },
    })
    await rename(tree, root)
  } catch (error) {
    const { stderr, message } = error as { readonly stderr?: string; readonly message: string }
    const said = (stderr?.trim() || message).split('\n').at(-1)
    throw new Error(
      `moto cannot be had (${said}). It needs apt-get, dpkg, a way to deb.debian.org, Debian's keyring, and the Python 3.11 of Debian 12 as ${python}.`,
    )
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function answered(server: ChildProcess, port: number): Promise<void> {
  for (let ms = 0; ms < startWithinMs; ms += 100) {
    if (server.exitCode !== null) throw new Error(`moto ended with ${server.exitCode} when it was started`)
    const answer = await fetch(`http://127.0.0.1:${port}/moto-api/`).catch(() => undefined)
    if (answer?.ok) return
    await delay(100)
  }
  server.kill('SIGKILL')
  throw new Error(`moto did not answer within ${startWithinMs} ms`)
}
