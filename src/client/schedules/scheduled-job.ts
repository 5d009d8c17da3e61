/** The job of a schedule: as one tick enqueues it, and as it was before it was sealed. */

import type { Packing } from '../../core/packing/packing.js'
import type { NewJob } from '../../stores/contract/new-job.js'
import type { ScheduleDefinition, StoredSchedule } from '../../stores/contract/schedules.js'
import { placeOf } from '../../stores/rules/schedule-record.js'
import { jitterOf } from '../../stores/rules/schedule-tick.js'

/**
 * With this id, unless it is ordered and has its own. What is sealed is bound to the id of its job, and so sealed anew. Throws
 * `CodecError` where that cannot be done here.
 */
export function scheduledJob({ definition }: Pick<StoredSchedule, 'definition'>, id: string, packing: Packing): NewJob {
  const { queue, job, jitterMs } = definition
  const delayMs = (job.delayMs ?? 0) + jitterOf(id, jitterMs)
  const due = delayMs === 0 ? {} : { delayMs }
  if (job.id !== undefined) return { ...job, ...due, id: job.id }
  if (!isSealed(job)) return { ...job, ...due, id }
  const sealed = { ...openedJob(definition, packing), ...due, id }
  packing.packJob(sealed, queue, false)
  return sealed
}

/** Its job without a seal, which is never the same twice; undone with it is what was done before it. Throws `CodecError`. */
export function openedJob(definition: ScheduleDefinition, packing: Packing): ScheduleDefinition['job'] {
  const { queue, job } = definition
  if (!isSealed(job)) return job
  const owner = { queue, id: placeOf(definition) }
  const [payloadPart, metaPart] =
    job.id === undefined ? (['payload', 'meta'] as const) : (['ordered payload', 'ordered meta'] as const)
  const { codec, payload, meta, ...rest } = job
  return {
    ...rest,
    payload: packing.encode(packing.unpack(payload, codec, payloadPart, owner)),
    ...(meta === undefined ? {} : { meta: packing.encode(packing.unpack(meta, codec, metaPart, owner)) }),
  }
}

function isSealed({ codec }: ScheduleDefinition['job']): boolean {
  return codec?.endsWith('+sealed') ?? false
}
