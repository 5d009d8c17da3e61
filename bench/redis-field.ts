/** The field: the contenders of a benchmark on one Redis server, each in a process of its own. */

import type { ContenderName } from './contender.js'
import { ContenderProcess } from './contender-process.js'
import { withoutPretenuring } from './measuring-process.js'

const rivals: ReadonlySet<ContenderName> = new Set(['bullmq', 'bee-queue', 'prototype', 'raw'])

export class RedisField {
  readonly #start: (name: ContenderName) => Promise<ContenderProcess>
  readonly #names: readonly ContenderName[]
  #contenders = new Map<ContenderName, ContenderProcess>()

  /** Nobody is there before `renew`. `baseline`: the folder of the checkout, built, that the contender of that name is. */
  constructor(url: string, names: readonly ContenderName[], baseline?: string) {
    this.#names = names
    // Where Millrace is compared with itself.
    const flags = names.filter((name) => !rivals.has(name)).length > 1 ? withoutPretenuring : []
    this.#start = (name) => ContenderProcess.start(name, url, flags, baseline)
  }

  get names(): readonly ContenderName[] {
    return this.#names
  }

  /** Those that are there, in the order of their names. */
  get contenders(): ReadonlyMap<ContenderName, ContenderProcess> {
    return this.#contenders
  }

  /** All anew: how fast a process runs the same code is in part settled once and for all while it starts. */
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
