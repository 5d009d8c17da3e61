/**
 * The bell's rope: tells those who wait in other processes, by files that they watch. Each queue that is rung gets a token;
 * when jobs end, one byte is written to one file, for all who wait for a result.
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
  #ended: number | undefined

  constructor(file: string) {
    this.#file = file
    this.#tokens = new SqliteWakeTokens(file)
  }

  /** Never throws: who is not rung looks by himself within a second. */
  ring(queues: readonly string[], hasEnds: boolean): void {
    for (const queue of queues) this.#tokens.put(queue)
    if (hasEnds) this.#tellEnds()
  }

  #tellEnds(): void {
    try {
      this.#ended ??= this.#openEnded()
      writeSync(this.#ended, byte, 0, 1, 0)
    } catch {
      this.close()
    }
  }

  #openEnded(): number {
    makeBellDirectories(this.#file)
    return openSync(join(resultsDirectory(this.#file), 'ended'), openFlags, 0o600)
  }

  close(): void {
    const descriptor = this.#ended
    this.#ended = undefined
    try {
      if (descriptor !== undefined) closeSync(descriptor)
    } catch {
      // It was closed all the same (close(2)); the next ring opens the file anew.
    }
  }
}
