/**
 * Start latency: ms from before the call of an enqueue to the start of its handler in another process, also while every
 * core is busy.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace } from 'millrace'
import { forkedProgram } from '../forked-program.js'

const timed = defineTask({ name: 'timed' })

export interface Latency {
  readonly p50: number
  readonly p99: number
  readonly worst: number
}

/**
 * `jobs` jobs, one every `everyMs`, on a new SQLite file or the store at `url`. With `busy`, one process per core does
 * nothing but compute.
 */
export async function startLatency(
  plan: { readonly jobs: number; readonly everyMs: number; readonly busy: boolean },
  url?: string,
): Promise<Latency> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-latency-'))
  const store = url ?? `sqlite:${join(folder, 'jobs.db')}`
  const mill = millrace({ store, tasks: [timed] })
  const worker = forkedProgram(join(import.meta.dirname, '../../bench/sqlite/latency-worker.ts'), [store])
  const hogs: ChildProcess[] = []
  try {
    await once(worker, 'message')
    if (plan.busy) for (const _ of cpus()) hogs.push(spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }))
    for (let i = 0; i < plan.jobs; i += 1) {
      await mill.enqueue(timed, String(process.hrtime.bigint()))
      await delay(plan.everyMs)
    }
    worker.send('stop')
    const [latencies] = (await once(worker, 'message')) as [number[]]
    // The first jobs pay for one-time compilation and opening.
    const sorted = latencies.slice(Math.ceil(plan.jobs / 10)).sort((a, b) => a - b)
    const at = (share: number) =>
      Number(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!.toFixed(1))
    return { p50: at(0.5), p99: at(0.99), worst: at(1) }
  } finally {
    for (const hog of hogs) hog.kill('SIGKILL')
    worker.kill('SIGKILL')
    await mill.close()
    rmSync(folder, { recursive: true })
  }
}
