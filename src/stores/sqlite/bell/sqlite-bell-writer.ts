/**
 * The writer of the bell: notifies waiters in other processes through files that they watch. Each queue that is rung
 * gets a token. When jobs end, one byte is written to a file for all that wait for results; when there are live
 * messages, one is written to another.
 */

import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { giveRightsTo } from '../file/sqlite-sharing.js'
import { makeBellDirectories, resultsDirectory } from './sqlite-bell-directory.js'
import { SqliteWakeTokens } from './sqlite-wake-token.js'

const byte = Buffer.from('..')
/** Never through a link, and nothing is truncated: a file that is there loses at most one byte. */
const openFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW

export class BellWriter {
  readonly #file: string
  readonly #tokens: SqliteWakeTokens
  readonly #told = new Map<string, number>()

  constructor(file: string) {
    this.#file = file
    this.#tokens = new SqliteWakeTokens(file)
  }

  /** Never throws: a waiter that is not rung looks by itself within a second. */
  ring(queues: readonly string[], hasEnds: boolean, hasMessages: boolean): void {
    for (const queue of queues) this.#tokens.put(queue)
    if (hasEnds) this.#tell('ended')
    if (hasMessages) this.#tell('messages')
  }

  #tell(name: 'ended' | 'messages'): void {
    try {
      writeSync(this.#told.get(name) ?? this.#open(name), byte, 0, 1, 0)
    } catch {
      this.close()
    }
  }

  #open(name: string): number {
    makeBellDirectories(this.#file)
    const directory = resultsDirectory(this.#file)
    const descriptor = openSync(join(directory, name), openFlags, 0o600)
    giveRightsTo(descriptor, directory)
    this.#told.set(name, descriptor)
    return descriptor
  }

  close(): void {
    const descriptors = [...this.#told.values()]
    this.#told.clear()
    for (const descriptor of descriptors) {
      try {
        closeSync(descriptor)
      } catch {
        // It was closed all the same (close(2)). The next ring opens the file anew.
      }
    }
  }
}
