/** The clock shim: a library that moves the wall clock of the processes it is preloaded into, and the file that says how. */

import { execFileSync } from 'node:child_process'
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

export class ClockShim {
  readonly #directory: string
  readonly #file: string

  private constructor(directory: string, file: string) {
    this.#directory = directory
    this.#file = file
  }

  /** Compiles the library into `directory`. Throws where there is no gcc. */
  static made(directory: string): ClockShim {
    const library = join(directory, 'clock-shim.so')
    try {
      execFileSync('gcc', ['-shared', '-fPIC', '-O2', '-o', library, join(import.meta.dirname, 'clock-shim.c')])
    } catch (error) {
      throw new Error('the clock shim needs gcc, and a libc to compile against. Install `gcc` and `libc6-dev`.', {
        cause: error,
      })
    }
    const file = join(directory, 'shift')
    writeFileSync(file, Buffer.alloc(16))
    return new ClockShim(directory, file)
  }

  /** What a process is started with that is to have this clock. */
  get env(): { readonly LD_PRELOAD: string; readonly CLOCK_SHIM: string } {
    return { LD_PRELOAD: join(this.#directory, 'clock-shim.so'), CLOCK_SHIM: this.#file }
  }

  /** By how many ms the wall clock is wrong from now on. */
  set(ms: number): void {
    this.#write(ms, false)
  }

  /** The wall clock stands at this instant from now on. */
  stand(at: number): void {
    this.#write(at, true)
  }

  #write(ms: number, stands: boolean): void {
    const bytes = Buffer.alloc(16)
    bytes.writeBigInt64LE(BigInt(ms) * 1_000_000n)
    bytes.writeBigInt64LE(stands ? 1n : 0n, 8)
    const descriptor = openSync(this.#file, 'r+')
    writeSync(descriptor, bytes, 0, bytes.length, 0)
    closeSync(descriptor)
  }
}
