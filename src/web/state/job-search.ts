/** The job search: jobs of all queues by id or by task, within bounds. */

import type { JobRecord } from '../../core/job/job.js'
import type { MillWindow } from '../window/mill-window.js'
import { namedQueues } from './queue-rows.js'

interface FoundJobs {
  readonly items: readonly JobRecord[]
  /** Whether there may be others: not all jobs were looked at. */
  readonly more: boolean
}

const mostQueues = 500
const queuesPerTrip = 50
const mostItems = 200
/** The jobs of each queue whose task is looked at. */
const jobsPerQueue = 200

/** For an ordered queue both the live job of the id and its entry in the morgue. */
export async function jobsById(window: MillWindow, id: string): Promise<FoundJobs> {
  return search(window, async (name, kind) => {
    const { jobs, morgue } = window.queue(name)
    const live = await jobs.get(id)
    const dead = kind === 'ordered' && live?.state !== 'dead' ? await morgue.get(id) : undefined
    return { jobs: [live, dead].filter((job) => job !== undefined), more: false }
  })
}

/** Looks at the first 200 jobs of each queue. */
export async function jobsOfTask(window: MillWindow, task: string): Promise<FoundJobs> {
  return search(window, async (name) => {
    const { jobs, cursor } = await window.queue(name).jobs.list({ limit: jobsPerQueue })
    return { jobs: jobs.filter(window.isOfTask(task)), more: cursor !== undefined }
  })
}

async function search(
  window: MillWindow,
  look: (queue: string, kind: 'plain' | 'ordered') => Promise<{ readonly jobs: JobRecord[]; readonly more: boolean }>,
): Promise<FoundJobs> {
  const queues = await namedQueues(window.mill)
  const items: JobRecord[] = []
  let more = queues.length > mostQueues
  for (let from = 0; from < Math.min(queues.length, mostQueues) && items.length < mostItems; from += queuesPerTrip) {
    const some = queues.slice(from, from + queuesPerTrip)
    const found = await Promise.all(some.map(({ name, kind }) => look(name, kind)))
    items.push(...found.flatMap(({ jobs }) => jobs))
    more ||= found.some((one) => one.more)
  }
  return { items: items.slice(0, mostItems), more: more || items.length > mostItems }
}
