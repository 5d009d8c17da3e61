/** Settled results: the separate outcomes of many jobs. */

import { InvalidArgumentError } from '../../core/errors.js'
import type { JobHandle } from '../../core/job-handle.js'
import { callForms, callOptions } from '../../core/values/call-check.js'
import { describe } from '../../core/values/describe.js'
import { type Duration, durationMs } from '../../core/values/duration.js'

/** For each handle how its `result()` settles, in their order. */
export type SettledResults<Handles extends readonly JobHandle[]> = {
  -readonly [I in keyof Handles]: PromiseSettledResult<Awaited<ReturnType<Handles[I]['result']>>>
}

const checkResults = callOptions('results', { timeout: callForms.own })

/** Throws `InvalidArgumentError` for a value that is not a list of handles, or an invalid timeout. */
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
  checkResults(options)
  if (options.timeout !== undefined) durationMs(options.timeout, 'results({ timeout })')
  // One watch on the store serves all of them, and look-ups in one tick are shared.
  return (await Promise.allSettled(handles.map((handle) => handle.result(options)))) as SettledResults<Handles>
}
