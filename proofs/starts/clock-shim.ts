/**
 * The clock shim: a library that moves the wall clock of each process that preloads it, and the file that controls it.
 */

import { execFileSync } from 'node:child_process'
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const nsPerMs = 1_000_000n
const slowness = 1_000n

export class ClockShim {
  readonly #directory: string
  readonly #file: string
  #slowShiftNs = 0n

  private constructor(directory: string, file: string) {
    this.#directory = directory
    this.#file = file
  }

  /** Compiles the library into `directory`. Throws if there is no gcc. */
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
    const shim = new ClockShim(directory, file)
    writeFileSync(file, shiftBytes(0n, 1n))
    return shim
  }

  /** The environment of a process with this clock. */
  get env(): { readonly LD_PRELOAD: string; readonly CLOCK_SHIM: string } {
    return { LD_PRELOAD: join(this.#directory, 'clock-shim.so'), CLOCK_SHIM: this.#file }
  }

  /** Sets the error of the wall clock, in ms. */
  set(ms: number): void {
    this.#write(shiftBytes(BigInt(ms) * nsPerMs, 1n))
  }

  /** Slows the wall clock down: it shows this instant, and runs a thousand times slower from then on. */
  slow(at: number): void {
    this.#slowShiftNs = BigInt(at) * nsPerMs - (BigInt(Date.now()) * nsPerMs) / slowness
    this.advance(0)
  }

  /** Sets the slow clock forward by this number of ms. */
  advance(ms: number): void {
    this.#slowShiftNs += BigInt(ms) * nsPerMs
    this.#write(shiftBytes(this.#slowShiftNs, slowness))
  }

  #write(bytes: Buffer): void {
    const descriptor = openSync(this.#file, 'r+')
    writeSync(descriptor, bytes, 0, bytes.length, 0)
    closeSync(descriptor)
  }
}

function shiftBytes(shiftNs: bigint, slower: bigint): Buffer {
  const bytes = Buffer.alloc(16)
  bytes.writeBigInt64LE(shiftNs)
  bytes.writeBigInt64LE(slower, 8)
  return bytes
}
