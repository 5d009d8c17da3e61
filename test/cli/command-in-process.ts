/**
 * A command in this process: the built `millrace` without the start of a process, which is most of what a command costs. It
 * has the folder, the environment, the input and the output of its own that a process would have. What is about signals, or
 * about what is printed while it still runs, needs the real one: see `command-process`.
 */

import { createRequire, register } from 'node:module'
import { Readable, Writable } from 'node:stream'
import { expect } from 'vitest'
import { stopSignals } from '#src/cli/process/exit-code.js'
import { runCommand } from '#src/cli/program.js'
import { type Command, type CommandOptions, type Ended, parsedJson, wordsOf } from './command-process.js'

/** A process loads the user's files anew; here a mill that a command before has closed would come out of the cache. */
const freshEntries = `
let loads = 0
export async function resolve(specifier, context, next) {
  const resolved = await next(specifier, context)
  if (!context.parentURL?.endsWith('/mill/configuration/user-modules.js') || !specifier.startsWith('file:')) return resolved
  return { ...resolved, url: resolved.url + '?load=' + ++loads }
}`
register(`data:text/javascript,${encodeURIComponent(freshEntries)}`)

/** Where the transpiler keeps the user's TypeScript. */
const { cache } = createRequire(import.meta.url)

type Options = Omit<CommandOptions, 'script'>

/** They replace handlers of this process, or start others. */
const processOnly = new Set(['work', 'exec'])

/** What a command may listen for until its process ends. */
const heard: readonly string[] = [...stopSignals, 'disconnect']

let before: Promise<unknown> = Promise.resolve()

/** Runs a command to its end, after those that were asked for before. */
export function run(command: Command, options: Options): Promise<Ended> {
  const args = wordsOf(command)
  if (processOnly.has(args[0]!) && !args.includes('--help')) throw new Error(`'${args[0]}' needs a process of its own`)
  const ended = before.then(() => runInPlace(args, options))
  before = ended.catch(() => {})
  return ended
}

/** Runs a command with `--json` and gives the document it printed. Throws where it failed. */
export async function runJson<T>(command: Command, options: Options): Promise<T> {
  const args = wordsOf(command)
  return parsedJson<T>(args, await run([...args, '--json'], options))
}

/** The lines that a command prints which ends with 0 and has nothing to say on stderr. */
export async function printed(command: Command, options: Options): Promise<string[]> {
  const { code, stdout, stderr } = await run(command, options)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout.trimEnd().split('\n')
}

async function runInPlace(args: readonly string[], { cwd, env = {}, input = '' }: Options): Promise<Ended> {
  const own = { cwd: process.cwd(), env: { ...process.env }, exitCode: process.exitCode }
  const globals = new Set(Object.keys(globalThis))
  const ears = new Map(heard.map((event) => [event, new Set(process.rawListeners(event))]))
  const { MILLRACE_CONFIG: _config, MILLRACE_STORE: _store, ...rest } = own.env
  const [stdout, stderr] = [new Collected(), new Collected()]
  const streams = { stdin: Readable.from([Buffer.from(input)]), stdout, stderr }
  const restore = Object.entries(streams).map(([name, stream]) => replaced(name as keyof typeof streams, stream))
  replaceEnv({ ...rest, ...env })
  process.chdir(cwd)
  process.exitCode = undefined
  for (const file of Object.keys(cache)) if (file.startsWith(`${process.cwd()}/`)) delete cache[file]
  try {
    const code = await runCommand(args)
    return { code, signal: null, stdout: stdout.text, stderr: stderr.text }
  } finally {
    process.exitCode = own.exitCode
    process.chdir(own.cwd)
    replaceEnv(own.env)
    for (const back of restore) back()
    for (const event of heard)
      for (const ear of process.rawListeners(event) as (() => void)[])
        if (!ears.get(event)!.has(ear)) process.off(event, ear)
    for (const name of Object.keys(globalThis)) if (!globals.has(name)) Reflect.deleteProperty(globalThis, name)
  }
}

class Collected extends Writable {
  #text = ''

  get text(): string {
    return this.#text
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#text += chunk.toString()
    done()
  }
}

function replaced(name: 'stdin' | 'stdout' | 'stderr', stream: object): () => void {
  const own = Object.getOwnPropertyDescriptor(process, name)!
  Object.defineProperty(process, name, { value: stream, configurable: true })
  return () => void Object.defineProperty(process, name, own)
}

function replaceEnv(env: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name]
  Object.assign(process.env, env)
}
