/** A command process: the built `millrace` as a real child process, with its lines, its end, and a bound on every wait. */

import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import { root } from './project.js'

const longestWaitMs = 20_000

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** The words after `millrace`: a text where no word has a space. */
export type Command = string | readonly string[]

export const wordsOf = (command: Command): readonly string[] =>
  typeof command === 'string' ? command.split(' ') : command

export interface CommandOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** More input may be written to `child.stdin`. */
  readonly moreInput?: boolean
  /** What is run instead of the command. */
  readonly script?: string
}

export type Line = Readonly<Record<string, unknown>>

export class CommandProcess {
  readonly child: ChildProcess
  /** Resolves when it has ended and nobody holds its output any more: none of its own children either. */
  readonly ended: Promise<Ended>
  readonly #lines: string[] = []
  readonly #looks = new Set<() => void>()
  readonly #stdout: () => string
  readonly #stderr: () => string

  constructor(
    command: Command,
    { cwd, env = {}, input, moreInput = false, script = join(root, 'dist/cli/main.js') }: CommandOptions,
  ) {
    const { MILLRACE_CONFIG: _config, MILLRACE_STORE: _store, ...rest } = process.env
    this.child = spawn(process.execPath, [script, ...wordsOf(command)], {
      cwd,
      env: { ...rest, ...env },
      stdio: 'pipe',
    })
    const [out, err] = [collected(this.child.stdout!), collected(this.child.stderr!)]
    this.#stdout = out
    this.#stderr = err
    createInterface({ input: this.child.stdout! }).on('line', (line) => {
      this.#lines.push(line)
      for (const look of [...this.#looks]) look()
    })
    this.ended = new Promise((resolve) => {
      this.child.once('close', (code, signal) => {
        resolve({ code, signal, stdout: out(), stderr: err() })
        for (const look of [...this.#looks]) look()
      })
    })
    onTestFinished(() => void this.child.kill('SIGKILL'))
    // One that has ended reads nothing more.
    this.child.stdin!.on('error', () => {})
    if (input !== undefined) this.child.stdin!.write(input)
    if (!moreInput) this.child.stdin!.end()
  }

  get pid(): number {
    return this.child.pid!
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal)
  }

  /** How it ended. Throws where it has not in time. */
  end(): Promise<Ended> {
    return bounded(this.ended, () => `the command has not ended; it said:\n${this.#lines.join('\n')}`)
  }

  /** The first `count` lines of JSON about this event, as soon as they are there. */
  async events(event: string, count = 1): Promise<Line[]> {
    const found = () => this.#json().filter((line) => line['event'] === event)
    let over = false
    void this.ended.then(() => {
      over = true
    })
    await bounded(
      new Promise<void>((resolve, reject) => {
        const look = () => {
          if (found().length < count && !over) return
          this.#looks.delete(look)
          if (found().length >= count) resolve()
          else void this.ended.then(({ stderr }) => reject(new Error(`ended without ${count} × ${event}: ${stderr}`)))
        }
        this.#looks.add(look)
        look()
      }),
      () => `no ${count} × ${event}; it said:\n${this.#lines.join('\n')}`,
    )
    return found().slice(0, count)
  }

  /** Resolves with the match as soon as stdout does. Throws where it ends without, or does not in time. */
  stdoutMatches(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#matches(this.child.stdout!, this.#stdout, pattern)
  }

  /** The same of stderr. The match's `input` is all that was said there. */
  stderrMatches(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#matches(this.child.stderr!, this.#stderr, pattern)
  }

  #matches(stream: NodeJS.ReadableStream, text: () => string, pattern: RegExp): Promise<RegExpExecArray> {
    const found = new Promise<RegExpExecArray>((resolve, reject) => {
      const look = () => {
        const match = pattern.exec(text())
        if (match !== null) resolve(match)
      }
      stream.on('data', look)
      void this.ended.then(() => {
        look()
        reject(new Error(`ended without ${pattern}; it said:\n${text()}`))
      })
      look()
    })
    return bounded(found, () => `no ${pattern}; it said:\n${text()}`)
  }

  #json(): Line[] {
    return this.#lines.map((line) => JSON.parse(line) as Line)
  }
}

/** Runs a command to its end in a process of its own. */
export function runProcess(args: readonly string[], options: CommandOptions): Promise<Ended> {
  return new CommandProcess(args, options).end()
}

/** The same with `--json`: gives the document it printed. Throws where it failed. */
export async function runProcessJson<T>(args: readonly string[], options: CommandOptions): Promise<T> {
  return parsedJson<T>(args, await runProcess([...args, '--json'], options))
}

export function parsedJson<T>(args: readonly string[], { code, stdout, stderr }: Ended): T {
  if (code !== 0) throw new Error(`millrace ${args.join(' ')} exited with ${code}: ${stderr}`)
  return JSON.parse(stdout) as T
}

function collected(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  return () => Buffer.concat(chunks).toString()
}

async function bounded<T>(wait: Promise<T>, message: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(message())), longestWaitMs)
  })
  return Promise.race([wait, late]).finally(() => clearTimeout(timer))
}
