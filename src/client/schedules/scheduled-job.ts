/** The job of a schedule, as one tick enqueues it. */

import type { Packing } from '../../core/packing/packing.js'
import type { NewJob } from '../../stores/contract/new-job.js'
import type { StoredSchedule } from '../../stores/contract/schedules.js'
import { jitterOf } from '../../stores/rules/schedule-tick.js'

/**
 * With this id, unless it is ordered and has its own. What is sealed is bound to the id of its job, and so sealed anew. Throws
 * `CodecError` where that cannot be done here.
 */
export function scheduledJob({ definition }: StoredSchedule, id: string, packing: Packing): NewJob {
  const { name, queue, job, jitterMs } = definition
  const delayMs = (job.delayMs ?? 0) + jitterOf(id, jitterMs)
  const due = delayMs === 0 ? {} : { delayMs }
  if (job.id !== undefined) return { ...job, ...due, id: job.id }
  if (!job.codec?.endsWith('+sealed')) return { ...job, ...due, id }
  const owner = { queue, id: name }
  const opened = (part: 'payload' | 'meta', payload = job[part]) =>
    payload === undefined ? undefined : packing.encode(packing.unpack(payload, job.codec, part, owner))
  const { codec: _, meta: __, ...rest } = job
  const meta = opened('meta')
  const sealed = { ...rest, ...due, id, payload: opened('payload')!, ...(meta === undefined ? {} : { meta }) }
  packing.packJob(sealed, queue, false)
  return sealed
}
