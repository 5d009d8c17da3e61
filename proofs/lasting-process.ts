/** A lasting process: a program that is started again whenever it dies, until it ends by itself or is told to. */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { forkedProgram, killed } from './forked-program.js'

export class LastingProcess {
  isDone = false
  /** It has sent a message since it was started: before that it has nothing in hand. */
  isReady = false
  readonly #path: string
  readonly #args: readonly string[]
  readonly #env: Readonly<Record<string, string>>
  #process: ChildProcess

  /** `path`: the absolute path of its file. */
  constructor(path: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    this.#path = path
    this.#args = args
    this.#env = env
    this.#process = this.#start()
  }

  #start(): ChildProcess {
    const started = forkedProgram(this.#path, this.#args, { env: this.#env })
    started.once('message', () => {
      this.isReady = true
    })
    started.once('exit', (code) => {
      this.isReady = false
      if (this.isDone) return
      if (code === 0) this.isDone = true
      else this.#process = this.#start()
    })
    return started
  }

  kill(): Promise<void> {
    return killed(this.#process)
  }

  async end(): Promise<void> {
    this.isDone = true
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const ended = once(this.#process, 'exit')
    this.#process.kill('SIGTERM')
    await ended
  }
}
