/**
 * The jobs that a delete by ids has left: why, as the errors that say it. Apart from the administration of a queue, because
 * it looks into other queues.
 */

import { JobElsewhereError, JobRunningError } from '../../core/errors.js'
import type { Records } from '../../stores/contract/job-records.js'

/** The number of ids in one look-up. */
const idsPerLook = 200

/**
 * After a delete that did not delete all of these ids: throws `JobRunningError` if one of them runs, and
 * `JobElsewhereError` if nothing was deleted and another queue has one of them.
 */
export async function refuseLeft(
  queue: string,
  records: Records,
  ids: readonly string[],
  deleted: number,
): Promise<void> {
  const running = new Set<string>()
  const absent = new Set<string>()
  for (let from = 0; from < ids.length; from += idsPerLook) {
    const some = ids.slice(from, from + idsPerLook)
    const jobs = await Promise.all(some.map((id) => records.get(queue, id)))
    for (const [i, job] of jobs.entries())
      if (job === undefined) absent.add(some[i]!)
      else if (job.state === 'running') running.add(job.id)
  }
  if (running.size > 0) throw new JobRunningError(queue, [...running], deleted)
  // Nothing is known of the deleted jobs: other queues may well have jobs of the same ids.
  if (deleted > 0) return
  const elsewhere = await foundElsewhere(queue, records, [...absent].slice(0, idsPerLook))
  if (elsewhere.length > 0) throw new JobElsewhereError(queue, elsewhere)
}

/** The ids that other queues of the store have. */
async function foundElsewhere(
  queue: string,
  records: Records,
  ids: readonly string[],
): Promise<{ id: string; queue: string }[]> {
  if (ids.length === 0) return []
  const others = (await records.queues()).map(({ name }) => name).filter((name) => name !== queue)
  const found: { id: string; queue: string }[] = []
  for (const other of others) {
    const jobs = await Promise.all(ids.map((id) => records.get(other, id)))
    for (const job of jobs) if (job !== undefined) found.push({ id: job.id, queue: other })
  }
  return found
}
