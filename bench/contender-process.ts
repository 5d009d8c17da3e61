/** A contender in a process of its own, so that what it spends is its own, as the benchmark speaks to it. */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { ContenderName } from './contender.js'
import type { Measures } from './measures.js'

export interface MeasureOrder {
  readonly measure: keyof Measures
  readonly plan: unknown
}

export type MeasureAnswer = { readonly value: unknown } | { readonly error: string }

export class ContenderProcess {
  readonly name: ContenderName
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>

  private constructor(name: ContenderName, child: ChildProcess) {
    this.name = name
    this.#child = child
    this.#exited = once(child, 'exit')
  }

  /** Resolves when its modules are loaded. `baseline`: the folder of the checkout, built, that the baseline is. */
  static async start(name: ContenderName, url: string, baseline?: string): Promise<ContenderProcess> {
    const jiti = join(import.meta.dirname, '../node_modules/jiti/lib/jiti-cli.mjs')
    const folder = baseline === undefined ? import.meta.dirname : join(baseline, 'bench')
    const child = fork(join(folder, 'contender-entry.ts'), [name === 'baseline' ? 'millrace' : name, url], {
      execArgv: [jiti],
    })
    const contender = new ContenderProcess(name, child)
    await contender.#message()
    return contender
  }

  /** Takes one measure; one at a time. Rejects with what it threw there, or when the process has ended. */
  async take<M extends keyof Measures>(
    measure: M,
    plan: Parameters<Measures[M]>[0],
  ): Promise<Awaited<ReturnType<Measures[M]>>> {
    const order: MeasureOrder = { measure, plan }
    this.#child.send(order)
    const answer = (await this.#message()) as MeasureAnswer
    if ('error' in answer) throw new Error(`${this.name} cannot take the measure '${measure}': ${answer.error}`)
    return answer.value as Awaited<ReturnType<Measures[M]>>
  }

  /** Ends the process, whatever it is at. */
  async end(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  async #message(): Promise<unknown> {
    const lost = this.#exited.then(() => {
      throw new Error(`the process of ${this.name} ended in the middle of a measure; what it said stands above`)
    })
    lost.catch(() => {})
    const [message] = (await Promise.race([once(this.#child, 'message'), lost])) as [unknown]
    return message
  }
}
