/** Waiting jobs, worked off by one worker: how long that takes, and in how many claims. */

import type { Mill } from 'millrace'

export interface WorkedOff {
  /** From the start of the worker to its last completion. */
  readonly seconds: number
  readonly claims: number
}

export async function workedOff(mill: Mill, jobs: number, concurrency: number): Promise<WorkedOff> {
  let claims = 0
  let completed = 0
  mill.on('queue.claimed', () => {
    claims += 1
  })
  const done = new Promise<void>((resolve) => {
    mill.on('job.completed', () => {
      completed += 1
      if (completed === jobs) resolve()
    })
  })
  const startedAt = performance.now()
  await mill.worker({ concurrency }).start()
  await done
  return { seconds: (performance.now() - startedAt) / 1_000, claims }
}
