/** Sending a signal to a job: by code that has the signal, or by an operator who names it. */

import { InvalidArgumentError, PayloadTooLargeError } from '../../core/errors.js'
import type { Packing } from '../../core/packing/packing.js'
import { stepOwner } from '../../core/packing/seal.js'
import { validated } from '../../core/task/schema.js'
import type { AnySignal } from '../../core/task/signal.js'
import { payloadBytes } from '../../core/values/codec.js'
import type { StoredJob } from '../../stores/contract/job-records.js'
import { type SignalAnswer, stepsOf } from '../../stores/contract/steps.js'
import type { Store } from '../../stores/contract/store.js'

interface SenderParts {
  readonly connect: () => Promise<Store>
  readonly packing: Packing
  readonly maxPayloadBytes: number
}

/**
 * Sends a signal to the job that `find` finds. Its data is stored as it was given: the handler's side makes of it what
 * the schema makes. Throws `InvalidArgumentError` for a job of an ordered queue, `InvalidJobError` for data that the schema
 * refuses, `PayloadTooLargeError`, `CodecError`, and `UnsupportedByStoreError`.
 */
export async function sentSignal(
  { connect, packing, maxPayloadBytes }: SenderParts,
  { name, data: schema }: AnySignal,
  data: unknown,
  find: () => Promise<StoredJob | undefined>,
): Promise<SignalAnswer> {
  if (schema !== undefined) await validated(schema, data, `the data of signal '${name}'`)
  const steps = stepsOf(await connect())
  const job = await find()
  if (job === undefined) return 'gone'
  if (job.payloads !== undefined)
    throw new InvalidArgumentError(
      `job '${job.id}' in queue '${job.queue}' gets no signals: jobs of ordered queues have no steps.`,
    )
  if (data === undefined) return steps.signal(job, { name })
  const content = packing.pack(data, 'signal', stepOwner(job, name))
  const bytes = payloadBytes(content.payload)
  if (bytes > maxPayloadBytes) throw new PayloadTooLargeError(`the data of signal '${name}'`, bytes, maxPayloadBytes)
  return steps.signal(job, { name, ...content })
}
