/** A shown job: the part of a job's record that leaves the window. */

import type { JobRecord } from '../../core/job/job.js'
import type { CheckedWebOptions } from './web-options.js'

/** Without its payloads if they are hidden, and as `redact` returns it. */
export function shownJob(
  job: JobRecord,
  { hidePayloads, redact }: Pick<CheckedWebOptions, 'hidePayloads' | 'redact'>,
): JobRecord {
  const shown = redact === undefined ? job : redact(job)
  return hidePayloads ? withoutPayloads(shown) : shown
}

function withoutPayloads(job: JobRecord): JobRecord & { readonly payloadsHidden: true } {
  const { input: _input, meta: _meta, result: _result, checkpoint: _checkpoint, payloads, ...rest } = job
  const scores = payloads?.map(({ input: _ofPayload, meta: _metaOfPayload, ...payload }) => payload)
  return { ...rest, ...(scores && { payloads: scores }), payloadsHidden: true }
}
