/** The waiting ticks of a schedule: its jobs in the queue that no worker has begun. */

import type { Meta } from '../../core/job.js'
import { originIn } from '../../core/job-origin.js'
import type { Packing } from '../../core/packing/packing.js'
import type { Records, StoredJob } from '../../stores/contract/job-records.js'
import type { ScheduleDefinition } from '../../stores/contract/schedules.js'
import { total } from '../admin/step-loop.js'

const pageSize = 200

/** Their ids. An ordered job is never one: its payloads may come from elsewhere too. */
export async function waitingOf(
  records: Records,
  { name, queue, job }: ScheduleDefinition,
  packing: Packing,
): Promise<string[]> {
  if (job.id !== undefined) return []
  const found: string[] = []
  for (const state of ['scheduled', 'ready'] as const) {
    let cursor: string | undefined
    do {
      const page = await records.list(queue, { by: 'time', state, limit: pageSize, ...(cursor && { cursor }) })
      for (const one of page.jobs) if (one.attempt === 1 && isOf(name, one, packing)) found.push(one.id)
      cursor = page.cursor
    } while (cursor !== undefined)
  }
  return found
}

/** Deletes them; resolves with the number. One that begins meanwhile goes on. */
export async function clearWaiting(
  records: Records,
  definition: ScheduleDefinition,
  packing: Packing,
): Promise<number> {
  const ids = await waitingOf(records, definition, packing)
  return ids.length === 0 ? 0 : total(() => records.delete(definition.queue, { ids }))
}

/** A job whose meta this mill cannot read is left alone: its id may be a user's own. */
function isOf(schedule: string, job: StoredJob, packing: Packing): boolean {
  if (!job.id.startsWith(`${schedule}@`) || job.meta === undefined) return false
  try {
    return originIn(packing.unpackMeta(job, 'meta', job) as Meta, job).schedule?.name === schedule
  } catch {
    return false
  }
}
