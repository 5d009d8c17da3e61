/** The job of a schedule: as one tick enqueues it, and without its seal. */

import type { Packing } from '../../core/packing/packing.js'
import type { NewJob } from '../../stores/contract/new-job.js'
import type { ScheduleDefinition, StoredSchedule } from '../../stores/contract/schedules.js'
import { placeOf } from '../../stores/rules/schedule-record.js'
import { jitterOf } from '../../stores/rules/schedule-tick.js'

/**
 * The job with this id, unless it is ordered and has its own. A seal is bound to the id of its job, so the job is
 * sealed anew. Throws `CodecError` if this mill cannot do that.
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

/**
 * The job without its seal, which is different each time; the steps before sealing are undone too. Throws `CodecError`.
 */
export function openedJob(definition: ScheduleDefinition, packing: Packing): ScheduleDefinition['job'] {
  const { queue, job } = definition
  if (!isSealed(job)) return job
  const owner = { ...job, queue, id: placeOf(definition) }
  const [payloadPart, metaPart] = partsOf(job)
  const { codec, payload, meta: _sealed, ...rest } = job
  const meta = packing.unpackMeta(job, metaPart, owner)
  return {
    ...rest,
    payload: packing.encode(packing.unpack(payload, codec, payloadPart, owner)),
    ...(meta === undefined ? {} : { meta: packing.encode(meta) }),
  }
}

/** The parts that payload and meta of the job are. */
export function partsOf({ id }: ScheduleDefinition['job']) {
  return id === undefined ? (['payload', 'meta'] as const) : (['ordered payload', 'ordered meta'] as const)
}

function isSealed({ codec }: ScheduleDefinition['job']): boolean {
  return codec?.endsWith('+sealed') ?? false
}
