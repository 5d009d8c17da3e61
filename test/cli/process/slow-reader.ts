/** A slow reader: runs commands whose output nobody reads before they have nothing left to do but wait for it, or have ended. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { root } from '../project.js'

/** A process that has used no processor for so long waits for its reader. */
const idleMs = 400
/** On a busy machine a worker is never idle for so long; by then it has logged. */
const mostMs = 10_000
let pipes = 0

export interface SlowlyRead {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command to its end. `meanwhile`: called when it waits for its reader, before that begins to read. */
export async function readSlowly(
  args: readonly string[],
  cwd: string,
  meanwhile: (child: ChildProcess) => unknown = () => {},
): Promise<SlowlyRead> {
  pipes += 1
  const [out, err] = [new FullPipe(cwd, `out-${pipes}`), new FullPipe(cwd, `err-${pipes}`)]
  const stdio = ['ignore', out.writeEnd, err.writeEnd] as const
  const child = spawn(process.execPath, [join(root, 'dist/cli/main.js'), ...args], { cwd, stdio: [...stdio] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const exited = once(child, 'exit') as Promise<[number | null]>
  await Promise.race([exited, idle(child.pid!)])
  await meanwhile(child)
  const [stdout, stderr, [code]] = await Promise.all([out.read(), err.read(), exited])
  return { code, stdout, stderr }
}

async function idle(pid: number): Promise<void> {
  const until = performance.now() + mostMs
  let [before, since] = [-1, performance.now()]
  while (performance.now() < Math.min(until, since + idleMs)) {
    await delay(50)
    const used = usedTicks(pid)
    if (used !== before) [before, since] = [used, performance.now()]
  }
}

function usedTicks(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(fields[11]) + Number(fields[12])
  } catch {
    return 0
  }
}

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants
const filling = ' '.repeat(4_096)
const chunk = Buffer.alloc(65_536)

/**
 * A pipe of the system without any room left, as one is whose reader is slower than its writer. Whatever is written
 * to it waits for `read`, so a process that ends without waiting loses all of it. Linux and macOS.
 */
class FullPipe {
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
