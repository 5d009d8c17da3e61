/**
 * The job that a command names: by its queue and id, by both in one word as in logs, `sync/e-3`, or by its id alone.
 */

import type { Mill } from '../../../mill/mill.js'
import { OperationError, UsageError } from '../../output/exit-code.js'

interface JobPlace {
  readonly queue: string
  readonly id: string
}

/**
 * The job of this queue and id; without an id `queue` is the word that names the job. Rejects with `UnknownQueueError`,
 * with `UsageError` if the id is missing or several queues have it, and with `OperationError` if nothing is kept of the
 * job.
 */
export async function jobNamed(mill: Mill, queue: string, id: string | undefined): Promise<JobPlace> {
  if (id !== undefined) return { queue: mill.queue(queue).name, id }
  if (mill.queues.has(queue))
    throw new UsageError(`the id of the job is missing; it comes behind the queue '${queue}'.`)
  const found = await queuesWith(mill, queue)
  if (found.length > 1)
    throw new UsageError(
      `job '${queue}' is in the queues ${found.join(', ')}: name the one that is meant before the id.`,
    )
  if (found.length === 1) return { queue: found[0]!, id: queue }
  const place = placeIn(mill, queue)
  if (place !== undefined) return place
  const declared = [...mill.queues.keys()].join(', ')
  throw new OperationError(
    `'${queue}' is neither a declared queue nor a job that one of them keeps; declared are: ${declared}.`,
  )
}

/** The queue and the id in one word; undefined if the word begins with no declared queue. */
export function placeIn(mill: Mill, word: string): JobPlace | undefined {
  const end = word.indexOf('/')
  const [queue, id] = [word.slice(0, end), word.slice(end + 1)]
  return end > 0 && id !== '' && mill.queues.has(queue) ? { queue, id } : undefined
}

async function queuesWith(mill: Mill, id: string): Promise<string[]> {
  const names = [...mill.queues.keys()]
  const jobs = await Promise.all(names.map((name) => mill.queue(name).jobs.get(id)))
  return names.filter((_, i) => jobs[i] !== undefined)
}
