/** A process of its own that takes measures. It reports when it is ready, then answers one order after the other. */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/**
 * For the comparison of two builds. Early in a process V8 decides for good which objects it allocates in the old
 * generation of the heap, by the objects that survived a collection so far. Two processes of one build differ by a
 * quarter for that alone.
 */
export const withoutPretenuring = ['--no-allocation-site-pretenuring'] as const

/** What runs a measuring process: a program, and its words before the entry. */
export type Runner = readonly [program: string, ...words: string[]]

/** `node`: the program, by default the one that runs this process. */
export function nodeRunner(node: string = process.execPath): Runner {
  return [node, join(import.meta.dirname, '../node_modules/jiti/lib/jiti-cli.mjs')]
}

export class MeasuringProcess {
  readonly #name: string
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>

  private constructor(name: string, child: ChildProcess) {
    this.#name = name
    this.#child = child
    this.#exited = once(child, 'exit')
  }

  /** Resolves when its modules are loaded. `name`: the name in error messages. `flags`: of the program. */
  static async start(
    name: string,
    entry: string,
    args: readonly string[],
    flags: readonly string[] = [],
    [program, ...words]: Runner = nodeRunner(),
  ): Promise<MeasuringProcess> {
    const made = new MeasuringProcess(name, fork(entry, args, { execPath: program, execArgv: [...flags, ...words] }))
    await made.#message()
    return made
  }

  /** Sends an order and resolves to its answer; only one at a time. Rejects when the process has ended. */
  async ask(order: string | object): Promise<unknown> {
    this.#child.send(order)
    return this.#message()
  }

  /** Ends the process, whatever it is doing. */
  async end(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  async #message(): Promise<unknown> {
    const lost = this.#exited.then(() => {
      throw new Error(`the process of ${this.#name} ended in the middle of a measure; what it said stands above`)
    })
    lost.catch(() => {})
    const [message] = (await Promise.race([once(this.#child, 'message'), lost])) as [unknown]
    return message
  }
}
