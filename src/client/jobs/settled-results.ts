/** Settled results: what became of many jobs, each by itself. */

import { InvalidArgumentError } from '../../core/errors.js'
import type { JobHandle } from '../../core/job-handle.js'
import { describe } from '../../core/values/describe.js'
import { type Duration, durationMs } from '../../core/values/duration.js'

/** Of each handle how its `result()` settles, in their order. */
export type SettledResults<Handles extends readonly JobHandle[]> = {
  -readonly [I in keyof Handles]: PromiseSettledResult<Awaited<ReturnType<Handles[I]['result']>>>
}

/** Throws `InvalidArgumentError` for what is no list of handles, or for a timeout that is no duration. */
export async function settledResults<Handles extends readonly JobHandle[]>(
  handles: Handles,
  options: { readonly timeout?: Duration },
): Promise<SettledResults<Handles>> {
  if (!Array.isArray(handles))
    throw new InvalidArgumentError(`results() expects a list of handles, as enqueue() gives; got ${describe(handles)}.`)
  const strange = handles.findIndex((handle) => typeof handle?.result !== 'function')
  if (strange !== -1)
    throw new InvalidArgumentError(
      `results()[${strange}] must be a handle, as enqueue() gives; got ${describe(handles[strange])}.`,
    )
  if (options.timeout !== undefined) durationMs(options.timeout, 'results({ timeout })')
  // All are watched for by one watch on the store, and share what is looked up in one tick.
  return (await Promise.allSettled(handles.map((handle) => handle.result(options)))) as SettledResults<Handles>
}
