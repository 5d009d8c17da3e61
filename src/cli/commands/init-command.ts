/** The command `init`: writes a new project. It overwrites nothing and asks nothing. */

import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import type { Command } from 'commander'
import { messageOf } from '../../core/messages/describe.js'
import { packageManifest } from '../../core/package-files.js'
import { storeMistakes } from '../../mill/store-source.js'
import { withJson } from '../mill-command.js'
import { printable } from '../printable.js'
import { OperationError, UsageError } from '../process/exit-code.js'
import { Terminal } from '../terminal/terminal.js'
import type { ScaffoldRequest } from './scaffold.js'

interface InitFlags {
  readonly store: string
  readonly json?: boolean
}

/** Of a user of Linux. */
const longestName = 32

type Done = 'written' | 'filled in' | 'kept'

export function addInit(program: Command): void {
  const command = program
    .command('init [folder]')
    .description('Write a new project: a configuration, a task, a test, and files to deploy it')
    .option('--store <store>', 'the store of its jobs', 'sqlite:.millrace/jobs.db')
    .addHelpText(
      'after',
      `
  Writes missing files and leaves existing ones; a package.json gets the entries that it lacks.

Examples:
  $ npx millrace init mailer && cd mailer && npm install && npm test
  $ millrace init --store redis://localhost:6379`,
    )
  withJson(command, 'print {"folder","files":[{"file","done"}]}').action(
    (folder: string | undefined, flags: InitFlags) => init(folder ?? '.', flags),
  )
}

async function init(folder: string, { store, json = false }: InitFlags): Promise<void> {
  const [mistake] = storeMistakes(store)
  if (mistake !== undefined) throw new UsageError(`--store: ${mistake.message}.`)
  const target = resolve(folder)
  const { scaffoldFiles, withoutPasswords } = await import('./scaffold.js')
  const request = requestFor(target, store)
  const files: { file: string; done: Done }[] = [await packageIn(target, request)]
  for (const [file, text] of Object.entries(scaffoldFiles(request)))
    files.push({ file, done: (await written(join(target, file), text)) ? 'written' : 'kept' })
  const terminal = new Terminal({ json })
  terminal.print({ folder: target, files }, () => [
    ...files.map(({ file, done }) => `${paintOf(done, terminal)(done.padEnd(9))} ${printable(file)}`),
    '',
    ...(withoutPasswords(store) === store
      ? []
      : ['The password of the store was written nowhere: set MILLRACE_STORE to the whole address.']),
    `Next: ${folder === '.' ? '' : `cd ${printable(relative('.', target) || '.')} && `}${['install', 'test', 'run work'].map((step) => `${packageManager()} ${step}`).join(' && ')}`,
  ])
}

function requestFor(target: string, store: string): ScaffoldRequest {
  const own = packageManifest()!
  const needed = Object.entries(storePackages).find(([scheme]) => store.startsWith(scheme))?.[1]
  // The name of the package, the namespace, the systemd unit and the user.
  const name =
    basename(target)
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .slice(0, longestName)
      .replace(/^-|-$/g, '') || 'jobs'
  return {
    name,
    version: own.version,
    store,
    storePackages: needed === undefined ? {} : { [needed]: own.peerDependencies[needed]! },
    isPnpmRoot: packageManager() === 'pnpm' && !foldersFrom(target).some((one) => existsSync(join(one, pnpmFile))),
  }
}

const pnpmFile = 'pnpm-workspace.yaml'

/** Package managers name themselves to the programs that they start. */
function packageManager(): 'npm' | 'pnpm' {
  return process.env['npm_config_user_agent']?.startsWith('pnpm/') ? 'pnpm' : 'npm'
}

/** The folder, and those above it. */
function foldersFrom(folder: string): string[] {
  const above = dirname(folder)
  return above === folder ? [folder] : [folder, ...foldersFrom(above)]
}

/** The packages that a store needs besides Millrace, by the beginning of its address. */
const storePackages = { redis: 'ioredis', postgres: 'pg', 'sqs:': '@aws-sdk/client-sqs' }

async function packageIn(target: string, request: ScaffoldRequest): Promise<{ file: string; done: Done }> {
  const { scaffoldPackage } = await import('./scaffold.js')
  const file = join(target, 'package.json')
  const present = existsSync(file) ? presentPackage(file) : undefined
  const wanted = scaffoldPackage(request, present)
  if (wanted === undefined) return { file: 'package.json', done: 'kept' }
  const text = `${JSON.stringify(wanted, undefined, 2)}\n`
  if (present === undefined) await written(file, text)
  else await orRefused(file, () => writeFile(file, text))
  return { file: 'package.json', done: present === undefined ? 'written' : 'filled in' }
}

function presentPackage(file: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<string, unknown>>
  } catch (error) {
    throw new UsageError(`'${file}' is there and cannot be read as JSON: ${messageOf(error)}. Nothing was written.`)
  }
}

/** False if the file is there already. */
async function written(file: string, text: string): Promise<boolean> {
  return orRefused(file, async () => {
    await mkdir(dirname(file), { recursive: true })
    try {
      await writeFile(file, text, { flag: 'wx' })
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
      throw error
    }
  })
}

async function orRefused<T>(file: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    throw new OperationError(`'${file}' could not be written: ${messageOf(error)}`)
  }
}

function paintOf(done: Done, { colors }: Terminal): (text: string) => string {
  return done === 'kept' ? colors.yellow : colors.green
}
