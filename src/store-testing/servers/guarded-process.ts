/** A guarded process: a child process that does not outlive its parent, however the parent ends. */

import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Duplex } from 'node:stream'

interface GuardedCommand {
  readonly path: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** The process runs here. Its guard removes the directory: nobody else would once the parent is gone. */
  readonly directory: string
  /** Whose process it is; absent: that of this process. The directory must be theirs. */
  readonly as?: { readonly uid: number; readonly gid: number }
}

/**
 * The guard is a shell that reads from a pipe whose other end this process holds. After a line the guard leaves; at the
 * end of the pipe the parent is dead. `$$` is the shell that becomes the command, so that there is no gap between them.
 */
const guard = '(read -r _ <&3 || { kill -9 $$; rm -rf "$0"; }) >/dev/null 2>&1 & exec "$@" 3<&-'
const linesKept = 40

export class GuardedProcess {
  readonly pid: number
  /** Resolves with a description of the end once it has ended. */
  readonly ended: Promise<string>
  readonly #child: ChildProcess
  readonly #lines: string[] = []
  readonly #heard = new Set<(line: string) => void>()
  #isRunning = true

  constructor({ path, args, env = {}, directory, as }: GuardedCommand) {
    this.#child = spawn('/bin/sh', ['-c', guard, directory, path, ...args], {
      ...as,
      cwd: directory,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    })
    // If the shell itself cannot be started there is no pid, and `ended` says why.
    this.pid = this.#child.pid ?? 0
    const rope = this.#child.stdio[3] as Duplex
    rope.on('error', () => {})
    for (const output of [this.#child.stdout!, this.#child.stderr!])
      createInterface({ input: output }).on('line', (line) => this.#hear(line))
    this.ended = new Promise((resolve) => {
      this.#child.once('error', (error) => resolve(error.message))
      this.#child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
    })
    void this.ended.then(() => {
      this.#isRunning = false
      rope.end('\n')
    })
  }

  get isRunning(): boolean {
    return this.#isRunning
  }

  /** The last lines of its output. */
  get output(): string {
    return this.#lines.join('\n')
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /**
   * Resolves with the first matching line from now on. Throws if the process ends without one, or none comes in time.
   */
  async said(pattern: RegExp, withinMs: number): Promise<string> {
    let timer: NodeJS.Timeout | undefined
    let hear: (line: string) => void = () => {}
    const line = new Promise<string>((resolve, reject) => {
      hear = (line) => void (pattern.test(line) && resolve(line))
      this.#heard.add(hear)
      timer = setTimeout(() => reject(this.#error(`has not said ${pattern} in ${withinMs} ms`)), withinMs)
      void this.ended.then((how) => reject(this.#error(`has ended (${how})`)))
    })
    return line.finally(() => {
      clearTimeout(timer)
      this.#heard.delete(hear)
    })
  }

  #hear(line: string): void {
    this.#lines.push(line)
    if (this.#lines.length > linesKept) this.#lines.shift()
    for (const hear of this.#heard) hear(line)
  }

  #error(what: string): Error {
    return new Error(`${this.#child.spawnargs.slice(4).join(' ')} ${what}; its last words:\n${this.output}`)
  }
}
