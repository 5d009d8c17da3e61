/** A forked worker: one worker process as its supervisor sees it — what it was told, its last sign of life, its end. */

import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { exitCodes, signalExitCode } from './exit-code.js'
import { isWord, type ProcessWord, type Pulse, type SupervisorWord } from './process-word.js'

/** How it has ended. */
export interface End {
  readonly code: number
  readonly signal: NodeJS.Signals | null
  /** As in `process 17 was killed by SIGSEGV`. */
  readonly words: string
}

/** One process as health and the state dump show it. Ages are in ms. */
export interface ProcessReport {
  readonly pid: number
  readonly state: Pulse['state'] | 'recycling'
  readonly upMs: number
  /** How many processes have died in its place before. */
  readonly restarts: number
  /** Since its last sign of life. */
  readonly heardMs: number
  readonly pulse?: Pulse
}

export class ForkedWorker {
  readonly ended: Promise<End>
  readonly forkedAt = performance.now()
  /** It has taken jobs. */
  ready = false
  /** It takes no more jobs; its successor is there. */
  recycling = false
  /** What its supervisor has sent it. */
  told: NodeJS.Signals | undefined
  /** What its supervisor's watched time was at its last sign of life. */
  heardAtWatchedMs = 0
  #pulse: Pulse | undefined
  #heardAt = this.forkedAt
  readonly #restarts: number
  readonly #child: ChildProcess

  /** Forks `millrace` with these arguments. One that cannot be started has ended at once. */
  constructor(args: readonly string[], restarts: number, heard: (word: ProcessWord) => void) {
    this.#restarts = restarts
    const child = fork(fileURLToPath(new URL('./main.js', import.meta.url)), args, {
      // In a session of its own: Ctrl-C reaches the whole group of the terminal, and the process would get it twice.
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    this.#child = child
    child.on('message', (message) => {
      if (!isWord(message) || message.millrace === 'dump') return
      const isLeaving = message.millrace === 'recycling' || message.millrace === 'failing'
      // The user's code in the process may send anything, also ours twice: one process has one successor.
      if (isLeaving && this.recycling) return
      if (message.millrace === 'ready') this.ready = true
      if (isLeaving) this.recycling = true
      if ('pulse' in message) {
        this.#pulse = message.pulse
        this.#heardAt = performance.now()
      }
      heard(message)
    })
    this.ended = new Promise((resolve) => {
      child.on('error', ({ message }) => {
        // A signal or a word that did not arrive is an error too.
        if (child.pid === undefined)
          resolve({ code: exitCodes.failed, signal: null, words: `could not be started: ${message}` })
      })
      child.once('exit', (code, signal) => resolve(endOf(code, signal)))
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  report(now: number): ProcessReport {
    const pulse = this.#pulse
    return {
      pid: this.pid,
      state: this.#state(),
      upMs: now - this.forkedAt,
      restarts: this.#restarts,
      heardMs: now - this.#heardAt,
      ...(pulse === undefined ? {} : { pulse }),
    }
  }

  #state(): ProcessReport['state'] {
    if (this.told !== undefined) return 'stopping'
    if (this.recycling) return 'recycling'
    return this.ready ? (this.#pulse?.state ?? 'starting') : 'starting'
  }

  kill(signal: NodeJS.Signals): void {
    this.told = signal
    this.#child.kill(signal)
  }

  tell(word: SupervisorWord): void {
    // One that has just ended does not hear it, and its end is told anyway.
    if (this.#child.connected) this.#child.send(word, () => {})
  }
}

function endOf(code: number | null, signal: NodeJS.Signals | null): End {
  if (signal !== null) return { code: signalExitCode(signal), signal, words: `was killed by ${signal}` }
  return { code: code ?? exitCodes.failed, signal, words: `exited with code ${code}` }
}
