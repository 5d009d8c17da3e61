/**
 * The bell's rope: tells those who wait in other processes, by files that they watch. Each queue that is rung gets a token;
 * when jobs end, one byte is written to one file, for all who wait for a result, and to another when there are live messages.
 */

import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { makeBellDirectories, resultsDirectory } from './sqlite-bell-directory.js'
import { SqliteWakeTokens } from './sqlite-wake-token.js'

const byte = Buffer.from('..')
/** Never through a link, and nothing is cut: whatever lies there loses one byte at the most. */
const openFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW

export class BellWriter {
  readonly #file: string
  readonly #tokens: SqliteWakeTokens
  readonly #told = new Map<string, number>()

  constructor(file: string) {
    this.#file = file
    this.#tokens = new SqliteWakeTokens(file)
  }

  /** Never throws: who is not rung looks by himself within a second. */
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
    const descriptor = openSync(join(resultsDirectory(this.#file), name), openFlags, 0o600)
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
        // It was closed all the same (close(2)); the next ring opens the file anew.
      }
    }
  }
}
