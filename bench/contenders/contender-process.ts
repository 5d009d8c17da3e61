/**
 * A contender in a process of its own, as the benchmark sees it. Its CPU time is counted apart from the others.
 */

import { join } from 'node:path'
import { MeasuringProcess, type Runner } from '../measuring-process.js'
import type { Spent } from '../redis/redis-meter.js'
import type { ContenderName } from './contender.js'
import type { Measures } from './measures.js'

export interface MeasureOrder {
  readonly measure: keyof Measures
  readonly plan: unknown
}

export type MeasureAnswer = { readonly value: unknown } | { readonly error: string }

export class ContenderProcess<Name extends string = ContenderName, Cost = Spent> {
  readonly name: Name
  readonly #process: MeasuringProcess

  private constructor(name: Name, process: MeasuringProcess) {
    this.name = name
    this.#process = process
  }

  /**
   * Resolves when its modules are loaded. `flags`: of Node. `baseline`: the folder of the built checkout for the
   * contender `baseline`. `runner`: by default the Node that runs this process.
   */
  static async start<Name extends string = ContenderName, Cost = Spent>(
    name: Name,
    url: string,
    flags: readonly string[] = [],
    baseline?: string,
    runner?: Runner,
  ): Promise<ContenderProcess<Name, Cost>> {
    const args = [name, url, ...(name === 'baseline' ? [baseline!] : [])]
    const entry = join(import.meta.dirname, 'contender-entry.ts')
    return new ContenderProcess(name, await MeasuringProcess.start(name, entry, args, flags, runner))
  }

  /** Takes one measure; only one at a time. Rejects with the error of the contender, or when the process has ended. */
  async take<M extends keyof Measures<Cost>>(
    measure: M,
    plan: Parameters<Measures<Cost>[M]>[0],
  ): Promise<Awaited<ReturnType<Measures<Cost>[M]>>> {
    const answer = (await this.#process.ask({ measure, plan } satisfies MeasureOrder)) as MeasureAnswer
    if ('error' in answer) throw new Error(`${this.name} cannot take the measure '${measure}': ${answer.error}`)
    return answer.value as Awaited<ReturnType<Measures<Cost>[M]>>
  }

  /** Ends the process, whatever it is doing. */
  end(): Promise<void> {
    return this.#process.end()
  }
}
