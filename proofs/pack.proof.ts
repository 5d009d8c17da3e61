/**
 * Proof of the package: the tarball installs into an empty project. There the README's example and a TypeScript
 * configuration work on every supported Node that can be had here, and no install script needs to run. It needs the registry.
 * It packs a copy of the working tree.
 */
import { spawn, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { npmNode } from './grounds/npm-package.js'
import { testGrounds } from './grounds/test-grounds.js'
import type { Report, Summary } from './report.js'

export const seed = 0

const root = join(import.meta.dirname, '..')
const longestMs = 120_000
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const result = /^<[0-9A-Z]{26}@example\.com>\n$/
/** What the handler of the configuration prints. */
const sent = 'mail to ada@example.com'

interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export async function prove(report: Report): Promise<Summary> {
  const home = mkdtempSync(join(tmpdir(), 'millrace-pack-'))
  try {
    const tarball = packed(report, home)
    const nodes = [process.execPath, ...(await supportedNodes(report))]
    const runs: Summary[] = []
    for (const flags of [[], ['--ignore-scripts']]) {
      const project = installed(report, join(home, `project${flags.length}`), tarball, flags)
      // The Nodes differ in what runs, not in what is installed.
      for (const node of flags.length === 0 ? nodes : nodes.slice(0, 1))
        runs.push(await tried(report, project, node, ran(home, node, ['-v']).stdout.trim()))
      typed(report, project)
    }
    return { bytes: statSync(tarball).size, runs }
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** The Nodes of the test grounds, from npm. One that cannot be had is named. */
async function supportedNodes(report: Report): Promise<string[]> {
  const found: string[] = []
  for (const { node } of testGrounds) {
    if (node === undefined) continue
    try {
      found.push(join(await npmNode(node), 'node'))
    } catch (error) {
      report.say(`not tried: Node ${node}, which npm does not give here: ${(error as Error).message.split('\n')[0]}`)
    }
  }
  return found
}

/** Packs a copy, because the script `prepack` empties `dist`, which others may use. */
function packed(report: Report, home: string): string {
  const copy = join(home, 'copy')
  mkdirSync(copy)
  for (const name of [
    'src',
    'docs',
    'dashboard',
    'scripts',
    'package.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'README.md',
    'CHANGELOG.md',
    'LICENSE',
  ])
    cpSync(join(root, name), join(copy, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  const { code, stdout, stderr } = ran(copy, 'npm', ['pack', '--json', '--foreground-scripts=false'])
  const [pack] = Object.values(JSON.parse(stdout || '{}') as Record<string, { filename: string; files: object[] }>)
  report.claim(`npm pack builds and packs ${pack?.files.length ?? 0} files`, code === 0)
  if (pack === undefined) throw new Error(stderr)
  return join(copy, pack.filename)
}

/** Follows the README in an empty folder: `npm init`, `npm install`. */
function installed(report: Report, project: string, tarball: string, flags: readonly string[]): string {
  mkdirSync(project)
  ran(project, 'npm', ['init', '-y'])
  ran(project, 'npm', ['pkg', 'set', 'type=module'])
  const { code, stdout, stderr } = ran(project, 'npm', ['install', ...flags, tarball, 'zod'])
  report.say('')
  report.claim(`npm ${['install', ...flags].join(' ')} <tarball> zod: ${stdout.trim().split('\n')[0]}`, code === 0)
  if (code !== 0) throw new Error(stderr)
  for (const [, name, text] of readme.matchAll(/```(?:js|ts)\n\/\/ (\S+)\n([\s\S]*?)```/g))
    writeFileSync(join(project, name!), text!)
  return project
}

/**
 * Follows the README in this project on this Node: the first job, then the command line with a TypeScript
 * configuration.
 */
async function tried(report: Report, project: string, node: string, version: string): Promise<Summary> {
  rmSync(join(project, '.millrace'), { recursive: true, force: true })
  const first = ran(project, node, ['first-job.mjs'])
  report.claim(
    `${version}: first-job.mjs prints ${shown(first)}`,
    first.code === 0 && result.test(first.stdout) && first.stderr === '',
  )
  const command = join(project, 'node_modules/.bin/millrace')
  report.claim(`${version}: the command is executable`, (statSync(command).mode & 0o111) === 0o111)
  const millrace = (...args: string[]) => ran(project, node, [command, ...args])
  const added = millrace('enqueue', 'send-email', '{"to":"ada@example.com","subject":"Hello"}', '--queue', 'high')
  report.claim(
    `${version}: millrace enqueue with millrace.config.ts prints ${shown(added)}`,
    added.code === 0 && added.stderr === '',
  )
  const worked = await work(project, node, command)
  report.claim(
    `${version}: millrace work runs it: ${shown(worked)}`,
    worked.code === 0 && worked.stderr === '' && worked.stdout.includes(sent),
  )
  const stats = millrace('stats', '--json')
  const { totals } = JSON.parse(stats.stdout || '{}') as { totals?: Record<string, number> }
  report.claim(
    `${version}: millrace stats tells ${totals?.['processed']} done, ${totals?.['failed']} failed`,
    totals?.['processed'] === 2 && totals?.['failed'] === 0,
  )
  const refused = millrace('enqueue', 'send-email', '{"to":"nobody"}')
  report.claim(
    `${version}: a wrong input is refused with code ${refused.code}: ${refused.stderr.trim().split('\n')[0]}`,
    refused.code === 2,
  )
  return { node: version, firstJob: first.stdout.trim().split('\n').at(-1), processed: totals?.['processed'] }
}

/** Works until a handler has printed something, then stops. */
function work(cwd: string, node: string, command: string): Promise<Ran> {
  const child = spawn(node, [command, 'work'], { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  const lines: string[] = []
  let stderr = ''
  const patience = setTimeout(() => child.kill('SIGKILL'), longestMs)
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line)
    if (line === sent) child.kill('SIGTERM')
  })
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
  })
  return new Promise((resolve) =>
    child.once('close', (code) => {
      clearTimeout(patience)
      resolve({ code, stdout: lines.join('\n'), stderr })
    }),
  )
}

/** Type-checks the installed package, libraries included, with this repository's compiler. */
function typed(report: Report, project: string): void {
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    target: 'es2023',
    module: 'nodenext',
    typeRoots: [join(root, 'node_modules/@types')],
    types: ['node'],
  }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['millrace.config.ts'] }))
  const { code, stdout } = ran(project, process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', '.'])
  report.claim(
    `tsc accepts millrace.config.ts with the installed types${stdout === '' ? '' : `: ${stdout}`}`,
    code === 0,
  )
  report.claim(
    'the optional SQLite package was installed',
    existsSync(join(project, 'node_modules/@photostructure/sqlite')),
  )
}

/** Runs a program to its end, without the `npm` settings of the caller of this proof. */
function ran(cwd: string, program: string, args: readonly string[]): Ran {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:npm_|MILLRACE_)/.test(name)))
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, env, encoding: 'utf8', timeout: longestMs })
  return { code: status, stdout: stdout ?? '', stderr: stderr ?? String(error) }
}

function shown({ stdout, stderr }: Ran): string {
  return JSON.stringify((stdout + stderr).trim().split('\n'))
}
