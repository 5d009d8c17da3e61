/** The field: the contenders of a benchmark on one Redis server, each in a process of its own. */

import { type ContenderName, promiseNames } from '../contenders/contender.js'
import { ContenderProcess } from '../contenders/contender-process.js'
import { withoutPretenuring } from '../measuring-process.js'

const rivals: ReadonlySet<ContenderName> = new Set(['bullmq', 'bee-queue', 'prototype', 'raw', ...promiseNames])

export class RedisField {
  readonly #start: (name: ContenderName) => Promise<ContenderProcess>
  readonly #names: readonly ContenderName[]
  #contenders = new Map<ContenderName, ContenderProcess>()

  /** Starts no process: `renew` does. `baseline`: the folder of the built checkout for the contender `baseline`. */
  constructor(url: string, names: readonly ContenderName[], baseline?: string) {
    this.#names = names
    // Two builds of Millrace are compared with each other.
    const flags = names.filter((name) => !rivals.has(name)).length > 1 ? withoutPretenuring : []
    this.#start = (name) => ContenderProcess.start(name, url, flags, baseline)
  }

  get names(): readonly ContenderName[] {
    return this.#names
  }

  /** The running contenders, in the order of their names. */
  get contenders(): ReadonlyMap<ContenderName, ContenderProcess> {
    return this.#contenders
  }

  /**
   * Starts all processes anew: the speed of a process at the same code is partly settled once and for all while it
   * starts.
   */
  async renew(): Promise<void> {
    await this.end()
    for (const name of this.#names) this.#contenders.set(name, await this.#start(name))
  }

  async end(): Promise<void> {
    const leaving = [...this.#contenders.values()]
    this.#contenders = new Map()
    for (const contender of leaving) await contender.end()
  }
}
