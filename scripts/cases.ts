/**
 * The cases: small programs of one defect each, run as a user would, against the packed package.
 * `npm run cases [-- FOLDER] [--only TEXT] [--package TARBALL]` packs Millrace, installs it in an empty project and runs every
 * program (`.mjs`, `.sh`) of the folder (default `test/cases`): once on each store if it reads `STORE` from the environment. A line of
 * its output that begins with or holds `WRONG` fails it, as an exit code does; one with `ok` passes it. Exits with 1 if one fails.
 *
 * A program finds in its environment: STORE, REDIS and REDIS_URL (an empty server), TARBALL (also its first argument), and
 * `redis-server` and `redis-cli` on the PATH. Its folder has the package, and the samples of its pages that the program names.
 */

import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { startRedis } from 'millrace/store-testing'
import { redisServerBinary } from '#src/store-testing/servers/redis-server-binary.js'

interface Outcome {
  readonly verdict: 'ok' | 'WRONG' | 'no verdict'
  readonly seconds: number
  readonly lines: readonly string[]
}

const root = join(import.meta.dirname, '..')
const longestMs = 180_000
const besides = ['ioredis', 'fauxqs', 'bullmq', 'zod', '@aws-sdk/client-sqs'] as const

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string', default: '' }, package: { type: 'string' } },
})
const folder = resolve(positionals[0] ?? join(root, 'test/cases'))
const programs = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.(?:mjs|sh)$/.test(file) && file.includes(values.only))
  .sort()

const workplace = mkdtempSync(join(tmpdir(), 'millrace-cases-'))
// Some programs run as two users.
chmodSync(workplace, 0o755)
const tarball = values.package === undefined ? packed() : resolve(values.package)
const project = installed()
const redis = await startRedis()
const path = `${await serverTools()}:${process.env['PATH']}`

let failed = 0
try {
  for (const program of programs) {
    const text = readFileSync(join(folder, program), 'utf8')
    const stores = text.includes('process.env.STORE') ? ['memory:', 'sqlite:jobs.db', redis.url] : ['']
    for (const store of stores) {
      const { verdict, seconds, lines } = await run(program, text, store)
      if (verdict !== 'ok') failed += 1
      const name = program.padEnd(52)
      console.log(`${name} ${store.split(':')[0]!.padEnd(7)} ${verdict.padEnd(10)} ${seconds.toFixed(0).padStart(4)} s`)
      if (verdict !== 'ok') for (const line of lines.slice(-6)) console.log(`    ${line.slice(0, 200)}`)
    }
  }
} finally {
  await redis.stop()
  rmSync(workplace, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
}
console.log(failed === 0 ? 'All cases are right.' : `Cases that are not right: ${failed}.`)
process.exitCode = failed === 0 ? 0 : 1

function packed(): string {
  const output = command(root, 'npm', ['pack', '--pack-destination', workplace])
  return join(workplace, output.trim().split('\n').at(-1)!)
}

/** A project with the package, the modules that programs use beside it, and the versions of those that the repository tests with. */
function installed(): string {
  const directory = join(workplace, 'project')
  mkdirSync(directory)
  writeFileSync(join(directory, 'package.json'), '{ "type": "module", "private": true }')
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const modules = besides.map((name) => `${name}@${devDependencies[name]}`)
  command(directory, 'npm', ['install', '--no-audit', '--no-fund', tarball, ...modules])
  return directory
}

/** A folder with `redis-server` and `redis-cli`, for programs that start a server of their own. */
async function serverTools(): Promise<string> {
  const directory = join(workplace, 'bin')
  mkdirSync(directory)
  const server = await redisServerBinary()
  const variables = Object.entries(server.env).map(([name, value]) => `${name}='${value}' `)
  for (const tool of ['redis-server', 'redis-cli']) {
    const binary = join(server.path, '..', tool)
    writeFileSync(join(directory, tool), `#!/bin/sh\n${variables.join('')}exec '${binary}' "$@"\n`, { mode: 0o755 })
  }
  return directory
}

async function run(program: string, text: string, store: string): Promise<Outcome> {
  const place = mkdtempSync(join(workplace, 'case-'))
  chmodSync(place, 0o755)
  copyFileSync(join(folder, program), join(place, basename(program)))
  // A program that installs the package itself begins in an empty folder.
  if (!(program.endsWith('.sh') && /^[^#\n]*\bnpm (?:init|install)\b/m.test(text))) {
    symlinkSync(join(project, 'node_modules'), join(place, 'node_modules'))
    writeFileSync(join(place, 'package.json'), '{ "type": "module", "private": true }')
    for (const [name, sample] of samplesIn(text)) writeFileSync(join(place, name), sample)
  }
  await emptyRedis()
  const environment: NodeJS.ProcessEnv = {
    ...process.env,
    PATH: path,
    TARBALL: tarball,
    REDIS: `${redis.url}/9`,
    REDIS_URL: redis.url,
  }
  for (const name of Object.keys(environment)) if (/^(?:npm_|MILLRACE_|NODE_)/.test(name)) delete environment[name]
  if (store !== '') environment['STORE'] = store
  const startedAt = performance.now()
  const [interpreter, ...rest] = program.endsWith('.sh')
    ? ['sh', basename(program), tarball]
    : ['node', basename(program)]
  const child = spawn(interpreter!, rest, { cwd: place, env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (piece) => (output += piece))
  const limit = setTimeout(() => {
    output += `\nWRONG: it did not end within ${longestMs / 1_000} s`
    endAllIn(place)
    child.kill('SIGKILL')
  }, longestMs)
  const code = await new Promise<number | null>((ended) => {
    // Not 'close': what the program left behind may hold the pipe.
    child.on('exit', (status) => setImmediate(() => ended(status)))
  })
  clearTimeout(limit)
  endAllIn(place)
  rmSync(place, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  const lines = output.trim().split('\n')
  return { verdict: verdictOf(lines, code), seconds: (performance.now() - startedAt) / 1_000, lines }
}

function verdictOf(lines: readonly string[], code: number | null): Outcome['verdict'] {
  if (lines.some((line) => /\bWRONG\b/.test(line)) || code !== 0) return 'WRONG'
  return lines.some((line) => /\bok\b/.test(line)) ? 'ok' : 'no verdict'
}

/** Code blocks of the package's pages that begin with `// name`, of those names that the program mentions. */
function samplesIn(text: string): Array<[string, string]> {
  const docs = join(project, 'node_modules/millrace/docs')
  const pages = readdirSync(docs, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.md'))
  return pages.flatMap((page) =>
    [...readFileSync(join(docs, page), 'utf8').matchAll(/^```\w+\n(\/\/ ([\w-]+\.mjs)\n.+?)^```/gms)]
      .filter(([, , name]) => text.includes(`${name} from the page`))
      .map(([, sample, name]): [string, string] => [name!, sample!]),
  )
}

async function emptyRedis(): Promise<void> {
  const client = new Redis(redis.url)
  await client.flushall()
  client.disconnect()
}

/** What a program started, wherever its session is: it works in this folder. */
function endAllIn(place: string): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (readlinkSync(`/proc/${pid}/cwd`).startsWith(place)) process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It has ended, or is not ours.
    }
  }
}

function command(cwd: string, name: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(name, args, { cwd, encoding: 'utf8', maxBuffer: 2 ** 26 })
  if (status !== 0) throw new Error(`${name} ${args.join(' ')} ended with ${status}: ${stderr}`)
  return stdout
}
