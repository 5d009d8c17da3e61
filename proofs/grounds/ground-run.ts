/** A ground run: the tests of one ground, run by its Node, on its server, in its file system. */

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { debianServer } from '../../test/stores/debian-server.js'
import { npmNode, npmPackage } from './npm-package.js'
import type { Outcome } from './outcome-reporter.js'
import type { TestGround } from './test-grounds.js'
import { TestVolume } from './test-volume.js'

export interface GroundRun {
  readonly ground: TestGround
  /** What ran: the version of the server, of Node and SQLite or of TypeScript, or the file system. */
  readonly version: string
  readonly outcome: Outcome
}

const root = join(import.meta.dirname, '../..')
const vitest = join(root, 'node_modules/vitest/vitest.mjs')
const longestMs = 900_000

/** Throws where the ground is not to be had. */
export async function groundRun(ground: TestGround): Promise<GroundRun> {
  const programs = ground.node === undefined ? dirname(process.execPath) : await npmNode(ground.node)
  const server = ground.server && (await debianServer(ground.server))
  const typescript = ground.typescript && (await npmPackage('typescript', ground.typescript))
  const volume = ground.volume && (await TestVolume.of(ground.volume))
  try {
    const env = {
      ...process.env,
      // A server that is missing is a failure then.
      CI: 'true',
      PATH: [programs, process.env['PATH']].join(delimiter),
      ...(server === undefined ? {} : { [ground.part === 'PostgreSQL' ? 'POSTGRES_BIN' : 'REDIS_SERVER']: server }),
      ...(typescript === undefined ? {} : { TYPESCRIPT: typescript }),
      // Said in any case: on a ground without one, too, tests keep off the memory.
      TMPDIR: volume?.folder ?? tmpdir(),
    }
    const program = join(programs, 'node')
    return {
      ground,
      version: await versionOf(ground.part, program, env),
      outcome: await outcomeOf(ground, program, env),
    }
  } finally {
    volume?.close()
  }
}

async function outcomeOf({ files }: TestGround, program: string, env: NodeJS.ProcessEnv): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-ground-'))
  try {
    const file = join(folder, 'outcome.json')
    const reporter = ['--reporter', join(import.meta.dirname, 'outcome-reporter.ts')]
    const child = spawn(program, [vitest, 'run', '--mode', 'whole', ...reporter, ...files], {
      cwd: root,
      env: { ...env, OUTCOME_FILE: file },
      stdio: ['ignore', 'ignore', 'inherit'],
      timeout: longestMs,
    })
    const [code, signal] = await once(child, 'close')
    if (!existsSync(file))
      return { files: 0, passed: 0, failed: [], skipped: {}, troubles: [`vitest: ${signal ?? code}`] }
    return JSON.parse(readFileSync(file, 'utf8')) as Outcome
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const sqliteWords = `
import { sqliteDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
const { name, open } = sqliteDriver()
const { version } = open(':memory:').prepare('SELECT sqlite_version() AS version').get()
console.log(process.version.slice(1) + ', SQLite ' + version + ' of ' + name)
`

const run = promisify(execFile)

async function versionOf(part: TestGround['part'], node: string, env: NodeJS.ProcessEnv): Promise<string> {
  const said = async (program: string, ...args: string[]) =>
    (await run(program, args, { env, cwd: root })).stdout.trim()
  if (part === 'Node') return said(node, '--input-type=module', '--eval', sqliteWords)
  if (part === 'Redis and Valkey') return /v=(\S+)/.exec(await said(env['REDIS_SERVER']!, '--version'))![1]!
  if (part === 'PostgreSQL') return (await said(join(env['POSTGRES_BIN']!, 'postgres'), '--version')).split(' ')[2]!
  if (part === 'TypeScript') return /\S+$/.exec(await said(node, join(env['TYPESCRIPT']!, 'bin/tsc'), '--version'))![0]
  return said('findmnt', '--noheadings', '--output', 'FSTYPE', '--target', env['TMPDIR']!)
}
