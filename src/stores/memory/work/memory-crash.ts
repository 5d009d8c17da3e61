/** A crash in the memory store: the next state of a running job whose lease expired unsettled. */

import type { Buried, Crash } from '../../contract/claim.js'
import { afterCrash } from '../../rules/crash.js'
import { type MemoryJob, scored } from '../queue/memory-job.js'
import type { MemoryQueue } from '../queue/memory-queue.js'

/** The crashes of one call, and the jobs that it buried for them. */
export interface Crashes {
  readonly crashed: Crash[]
  readonly buried: Buried[]
}

/** Ends the claim of a running job as a crash, and adds that to `told`. `error`: how its worker died, if that is known. */
export function crash(queue: MemoryQueue, job: MemoryJob, told: Crashes, now: number, error?: string): void {
  const { crashes, becomes } = afterCrash(job, queue.settings.maxCrashes)
  const ref = { queue: job.queue, id: job.spec.id, task: job.spec.task }
  told.crashed.push({ ...ref, worker: job.worker!, charged: job.alone, crashes })
  queue.crashed += 1
  job.crashes = crashes
  job.error = error ?? job.error
  switch (becomes) {
    case 'cancelled':
      queue.end(job, 'cancelled', now)
      break
    case 'dead':
      told.buried.push({ ...ref, reason: 'crashed', ...lastOf(job) })
      queue.exhaust(job, 'crashed', undefined, now)
      break
    case 'suspect':
      queue.putBack(job, now, true)
      break
  }
}

/** The fence of its claim, and the payload that is buried. */
function lastOf({ fence, inHand }: MemoryJob): Pick<Buried, 'fence' | 'payload'> {
  const [oldest] = inHand
  return { fence, ...(oldest && { payload: scored(oldest) }) }
}
