/**
 * A full pipe: a pipe of the system without any room left, as one is whose reader is slower than its writer. Whatever is written
 * to it waits for `read`, so a process that ends without waiting loses all of it. Linux and macOS.
 */

import { spawnSync } from 'node:child_process'
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants
const filling = ' '.repeat(4_096)
const chunk = Buffer.alloc(65_536)

export class FullPipe {
  /** For the process that writes; closed by `read`. */
  readonly writeEnd: number
  readonly #readEnd: number

  constructor(folder: string, name: string) {
    const path = join(folder, name)
    if (spawnSync('mkfifo', [path]).status !== 0) throw new Error(`no pipe can be made at ${path}`)
    this.#readEnd = openSync(path, O_RDONLY | O_NONBLOCK)
    this.writeEnd = openSync(path, O_WRONLY | O_NONBLOCK)
    for (let hasRoom = true; hasRoom; ) hasRoom = unlessBlocked(() => writeSync(this.writeEnd, filling)) !== undefined
  }

  /** Reads until every writer has closed it. Resolves with what was written, without what had filled it. */
  async read(): Promise<string> {
    closeSync(this.writeEnd)
    const chunks: Buffer[] = []
    for (;;) {
      const bytes = unlessBlocked(() => readSync(this.#readEnd, chunk))
      if (bytes === 0) break
      if (bytes === undefined) await delay(5)
      else chunks.push(Buffer.from(chunk.subarray(0, bytes)))
    }
    closeSync(this.#readEnd)
    return Buffer.concat(chunks).toString().trimStart()
  }

  /** Ends without having been read. */
  close(): void {
    closeSync(this.writeEnd)
    closeSync(this.#readEnd)
  }
}

function unlessBlocked<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    return undefined
  }
}
