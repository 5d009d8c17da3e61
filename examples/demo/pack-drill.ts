/**
 * The drill of the demo's archive: while it is being packed the worker process that began it is killed, and then the process
 * that packs it.
 */

import { setTimeout as delay } from 'node:timers/promises'
import type { JobHandle, JobRecord } from 'millrace'
import type { Gate } from './gate.js'
import type { Packed } from './tasks.js'
import type { Workers } from './workers.js'

const lookEveryMs = 100

export type PackRecord = JobRecord<unknown, Packed>

export interface Losses {
  /** What was killed, by their numbers. */
  readonly worker: number
  readonly child: number
  /** How many files were packed for certain then. */
  readonly kept: number
}

/** About a third of the way, and at the gate. Throws where the process did not outlive its worker. */
export async function drill(job: JobHandle<Packed>, gate: Gate, workers: Workers): Promise<Losses> {
  const third = await recordThat(
    job,
    ({ log, worker, progress }) =>
      // What it has logged comes from the process itself, which the record then names.
      log !== undefined && workers.knows(worker!) && (gate.isReached || (progress?.fraction ?? 0) >= 1 / 3),
  )
  const worker = workers.kill(third.worker!)
  const adopted = await recordThat(job, (record) => record.worker !== third.worker)
  if (adopted.pid !== third.pid)
    throw new Error(
      `process ${third.pid} was not adopted when its worker was killed: process ${adopted.pid} has its job`,
    )
  await gate.reached
  process.kill(third.pid!, 'SIGKILL')
  const failed = await recordThat(job, ({ attempt }) => attempt === 2)
  gate.open()
  return { worker, child: third.pid!, kept: (failed.checkpoint as Packed | undefined)?.files ?? 0 }
}

/** The record as soon as it is like that. Throws where the job has ended before. */
async function recordThat(job: JobHandle<Packed>, is: (record: PackRecord) => boolean): Promise<PackRecord> {
  for (;;) {
    const record = await job.record()
    if (record === undefined || hasEnded(record))
      throw new Error(`job ${job.id} has ended before its processes were killed`)
    if (is(record)) return record
    await delay(lookEveryMs)
  }
}

export function hasEnded({ state }: PackRecord): boolean {
  return state === 'completed' || state === 'dead' || state === 'cancelled'
}
