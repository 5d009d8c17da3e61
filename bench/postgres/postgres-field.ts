/** The field: the contenders of a benchmark on one Postgres server, each in a process and with a database of its own. */

import { ContenderProcess } from '../contenders/contender-process.js'
import { type PostgresName, runnerOf } from './postgres-contenders.js'
import type { PostgresSpent } from './postgres-meter.js'

export type PostgresContender = ContenderProcess<PostgresName, PostgresSpent>

export class PostgresField {
  readonly contenders = new Map<PostgresName, PostgresContender>()
  readonly #url: string
  readonly #names: readonly PostgresName[]

  /** Starts no process: `start` does. */
  constructor(url: string, names: readonly PostgresName[]) {
    this.#url = url
    this.#names = names
  }

  async start(): Promise<void> {
    for (const name of this.#names) {
      const url = new URL(name.replaceAll(/\W/g, '_'), this.#url).href
      this.contenders.set(name, await ContenderProcess.start(name, url, [], undefined, runnerOf(name)))
    }
  }

  async end(): Promise<void> {
    for (const contender of this.contenders.values()) await contender.end()
  }
}
