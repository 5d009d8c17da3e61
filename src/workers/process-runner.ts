/** The runner of an isolated job: starts its process, watches it, and says how it ended. */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { StringDecoder } from 'node:string_decoder'
import { serialize } from 'node:v8'
import { inTime } from '../runtime/patience.js'
import { drainMark, openCapture, tailFd } from './capture.js'
import { childEnvironment, childFlags } from './child-environment.js'
import {
  type Assignment,
  assignmentFd,
  type ChildVerdict,
  type ChildWord,
  isChildWord,
  type WorkerWord,
} from './child-word.js'
import { isTooLarge, mostBytes, ranOutOfMemory } from './memory-bound.js'
import { Tail } from './tail.js'

export interface RunnerSettings {
  /** The program of the process. */
  readonly entry: URL
  readonly assignment: Assignment
  /** Names of environment variables that it is given besides the usual ones. */
  readonly env: readonly string[]
  readonly maxHeapBytes: number | undefined
  readonly heard: (word: ChildWord) => void
}

/** How the process of a job ended. */
export type ProcessEnd =
  | { readonly kind: 'settled'; readonly verdict: ChildVerdict }
  | { readonly kind: 'unable'; readonly error: string }
  | {
      readonly kind: 'died'
      readonly code: number | null
      readonly signal: NodeJS.Signals | null
      readonly isOutOfMemory: boolean
      /** The last that it printed. */
      readonly tail: string
      /** What of that the store has not got from it. */
      readonly unsent: string
    }

/** What it printed last is read before its end is told, if it comes soon. */
const tailMs = 200
const memoryMs = 500

/** It may have died while it was asked what it had printed last. */
function withoutMark(text: string): string {
  return text.replace(drainMark, '').toWellFormed()
}

export class ProcessRunner {
  readonly ended: Promise<ProcessEnd>
  readonly #child: ChildProcess
  /** What the process passes on of what it prints. */
  readonly #tail: Socket
  /** What it has printed and has not read itself: it is read here once the process is dead. */
  readonly #unread: Socket
  readonly #watch: NodeJS.Timeout | undefined
  readonly #printed = new Tail()
  #last: ProcessEnd | undefined
  /** It was ended for its size. */
  #wasTooLarge = false

  /** Rejects where no process can be started. */
  static async start(settings: RunnerSettings): Promise<ProcessRunner> {
    const { printing, reading } = await openCapture()
    const { entry, env, maxHeapBytes } = settings
    try {
      const child = fork(entry, [], {
        // A session and a group of its own: it lives on without us, and is ended with all it has started.
        detached: true,
        env: childEnvironment(process.env, env),
        execArgv: childFlags(process.execArgv, maxHeapBytes),
        serialization: 'advanced',
        stdio: ['ignore', printing, printing, 'ipc', reading, 'pipe', 'pipe'],
      })
      return new ProcessRunner(child, reading, settings)
    } catch (error) {
      reading.destroy()
      throw error
    } finally {
      printing.destroy()
    }
  }

  private constructor(child: ChildProcess, reading: Socket, { assignment, maxHeapBytes, heard }: RunnerSettings) {
    this.#child = child
    this.#unread = reading
    this.#tail = this.#pipe(tailFd)
    if (maxHeapBytes !== undefined) {
      const most = mostBytes(maxHeapBytes)
      this.#watch = setInterval(() => this.#weigh(most), memoryMs)
    }
    const told = this.#pipe(assignmentFd)
    told.on('error', () => {})
    told.end(serialize(assignment))
    const decoder = new StringDecoder('utf8')
    this.#tail.on('data', (bytes: Buffer) => this.#printed.read(decoder.write(bytes)))
    for (const socket of [this.#tail, this.#unread]) socket.on('error', () => {})
    child.on('message', (word) => {
      if (!isChildWord(word)) return
      if (word.word === 'settled') this.#last = { kind: 'settled', verdict: word.verdict }
      if (word.word === 'unable') this.#last = { kind: 'unable', error: word.error }
      heard(word)
    })
    this.ended = new Promise((resolve) => {
      // A word that it did not hear is an error too; its end tells more.
      child.on('error', (error) => {
        if (child.pid === undefined) resolve({ kind: 'unable', error: error.message })
      })
      child.once('exit', async (code, signal) => {
        clearInterval(this.#watch)
        this.kill()
        await inTime(tailMs, this.#readAll())
        this.#unread.destroy()
        resolve(this.#last ?? this.#died(code, signal))
      })
    })
  }

  /** Undefined where it could not be started. */
  get pid(): number | undefined {
    return this.#child.pid
  }

  #pipe(fd: number): Socket {
    return (this.#child.stdio as readonly unknown[])[fd] as Socket
  }

  tell(word: WorkerWord): void {
    // One that has just ended does not hear it, and its end is told anyway.
    if (this.#child.connected) this.#child.send(word, () => {})
  }

  /** Ends it at once, with all that it has started and that has stayed in its group. */
  kill(): void {
    if (this.#child.pid === undefined) return
    try {
      process.kill(-this.#child.pid, 'SIGKILL')
    } catch {
      // Nobody is left in it.
    }
  }

  /** In the order in which it was printed. */
  async #readAll(): Promise<void> {
    if (!this.#tail.closed) await once(this.#tail, 'close')
    const decoder = new StringDecoder('utf8')
    this.#unread.on('data', (bytes: Buffer) => this.#printed.print(decoder.write(bytes))).resume()
    await once(this.#unread, 'end')
  }

  /** It goes on without us. */
  leave(): void {
    clearInterval(this.#watch)
    this.#unread.destroy()
    if (this.#child.connected) this.#child.disconnect()
    this.#tail.destroy()
    this.#child.unref()
  }

  #died(code: number | null, signal: NodeJS.Signals | null): ProcessEnd {
    const { last: tail, unsent } = this.#printed
    const isOutOfMemory = ranOutOfMemory({ code, signal, tail, wasTooLarge: this.#wasTooLarge })
    return { kind: 'died', code, signal, isOutOfMemory, tail, unsent: withoutMark(unsent) }
  }

  #weigh(most: number): void {
    try {
      if (!isTooLarge(readFileSync(`/proc/${this.#child.pid}/status`, 'utf8'), most)) return
      this.#wasTooLarge = true
      this.kill()
    } catch {
      // It has just ended, or the system does not tell.
    }
  }
}
