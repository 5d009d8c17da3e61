/** A slow reader: runs commands whose output nobody reads before they have nothing left to do but wait for it, or have ended. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { FullPipe } from './full-pipe.js'
import { root } from './project.js'

/** A process that has used no processor for so long waits for its reader. */
const idleMs = 400
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
  let [before, since] = [-1, performance.now()]
  while (performance.now() < since + idleMs) {
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
