/** A process group: several worker processes of the same command line under one parent, which passes signals on and waits for all. */

import { type ChildProcess, fork } from 'node:child_process'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { exitCodes } from './exit-code.js'
import type { StopCause } from './stop-request.js'
import type { Terminal } from './terminal.js'

/** How a child has ended. */
interface End {
  readonly code: number
  readonly words: string
}

export class ProcessGroup {
  readonly #terminal: Terminal
  readonly #running = new Set<ChildProcess>()
  readonly #size: number
  /** What was passed on, once the group is stopping. */
  #passed: NodeJS.Signals | undefined

  constructor(size: number, terminal: Terminal) {
    this.#size = size
    this.#terminal = terminal
  }

  /** Starts all of them; resolves with the highest of their exit codes when the last has ended. */
  async run(args: readonly string[]): Promise<number> {
    const children = Array.from({ length: this.#size }, () => this.#start(args))
    const pids = children.map(({ child }) => child.pid)
    this.#terminal.event('processes.started', { pids }, () => `${pids.length} processes: ${pids.join(', ')}`)
    const codes = await Promise.all(children.map(({ ended }) => ended))
    return Math.max(...codes)
  }

  /** Asks all of them to stop. */
  stop(cause: StopCause): void {
    this.#passed = cause === 'disconnect' ? 'SIGTERM' : cause
    for (const child of this.#running) child.kill(this.#passed)
  }

  /** Ends all of them, whatever they do. */
  kill(): void {
    for (const child of this.#running) child.kill('SIGKILL')
  }

  #start(args: readonly string[]): { child: ChildProcess; ended: Promise<number> } {
    const child = fork(fileURLToPath(new URL('./main.js', import.meta.url)), args, {
      // In a session of its own: Ctrl-C reaches the whole group of the terminal, and the child would get it twice.
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    this.#running.add(child)
    const ended = new Promise<End>((resolve) => {
      child.once('error', (error) =>
        resolve({ code: exitCodes.failed, words: `could not be started: ${error.message}` }),
      )
      child.once('exit', (code, signal) => resolve(this.#endOf(code, signal)))
    })
    return {
      child,
      ended: ended.then(({ code, words }) => {
        this.#running.delete(child)
        if (this.#passed === undefined) this.#report(child.pid, code, words)
        return code
      }),
    }
  }

  #endOf(code: number | null, signal: NodeJS.Signals | null): End {
    if (signal === null) return { code: code ?? exitCodes.failed, words: `exited with code ${code}` }
    // It was told to stop before it listened to signals, and had nothing in hand.
    if (signal === this.#passed) return { code: exitCodes.ok, words: 'stopped' }
    return { code: 128 + constants.signals[signal], words: `was killed by ${signal}` }
  }

  #report(pid: number | undefined, code: number, words: string): void {
    const left = this.#running.size
    const rest = left === 0 ? 'none is left' : `${left} of ${this.#size} go on`
    this.#terminal.event(
      'process.exited',
      { child: pid, code, running: left },
      () => `process ${pid} ${words}; ${rest}`,
    )
  }
}

/** The command line of a child: the parent's without `--processes`. */
export function childArgs(args: readonly string[]): string[] {
  return args.filter((arg, i) => {
    const isValue = args[i - 1] === '--processes'
    return !isValue && arg !== '--processes' && !arg.startsWith('--processes=')
  })
}
