/** The family of a job: its parent in its present state, and the children noted in its record. */

import { recordsOf } from '../../client/store-facets.js'
import type { JobState } from '../../core/job/job.js'
import type { JobParent } from '../../core/job/job-origin.js'
import { readCheckpoint } from '../../core/job/marked-checkpoint.js'
import type { Packing } from '../../core/packing/packing.js'
import type { JobKey, StoredJob } from '../../stores/contract/job-records.js'
import type { Store } from '../../stores/contract/store.js'
import type { MillWindow } from '../window/mill-window.js'
import { isOfOneQueue, namedQueues } from './queue-rows.js'

interface Relative {
  readonly queue: string
  readonly id: string
  readonly task: string
  /** Absent if nothing of it is kept any more. */
  readonly state?: JobState
}

interface JobFamily {
  readonly parent?: Relative
  /** How many enqueue calls its record has noted. Absent: none. */
  readonly childCalls?: number
  /** The jobs of the last 100 of those calls, as far as they can be found. */
  readonly children?: readonly Relative[]
}

const mostCalls = 100
/** A call names its job, but not the job's queue. */
const mostLookups = 2_000

/** `parent`: as its record shows it. */
export async function familyOf(
  window: MillWindow,
  { queue, id }: JobKey,
  parent: JobParent | undefined,
): Promise<JobFamily> {
  const { look, packing } = window.mill.adminParts
  const store = await look()
  const [stored, above] = await Promise.all([kept(store, queue, id), parent && kept(store, parent.queue, parent.id)])
  const calls = callsIn(stored, packing)
  return {
    ...(parent && { parent: { ...parent, ...(above && { state: above.state }) } }),
    ...(calls.length > 0 && {
      childCalls: calls.length,
      children: await childrenOf(store, calls.slice(-mostCalls), await queuesFrom(window, queue)),
    }),
  }
}

/** Undefined also if its queue is gone or damaged, which must not prevent its relatives from being shown. */
async function kept(store: Store, queue: string, id: string): Promise<StoredJob | undefined> {
  return recordsOf(store)
    .get(queue, id)
    .catch((error: unknown) => {
      if (isOfOneQueue(error)) return undefined
      throw error
    })
}

/** The names of its enqueue calls; none if the checkpoint with them cannot be read here. */
function callsIn(job: StoredJob | undefined, packing: Packing): readonly string[] {
  if (job?.checkpoint === undefined) return []
  const { payload, codec } = job.checkpoint
  try {
    return readCheckpoint(packing.unpack(payload, codec, 'checkpoint', job)).marks
  } catch {
    return []
  }
}

/** Its own queue first, as a child is often in its parent's queue. */
async function queuesFrom({ mill }: MillWindow, queue: string): Promise<string[]> {
  const others = (await namedQueues(mill)).filter(({ name, kind }) => name !== queue && kind === 'plain')
  return [queue, ...others.map(({ name }) => name)]
}

/** The id of a child is the name of its call, unless the call gave another id, or enqueued several jobs. */
async function childrenOf(store: Store, calls: readonly string[], queues: readonly string[]): Promise<Relative[]> {
  const asked = queues.slice(0, Math.max(1, Math.floor(mostLookups / calls.length)))
  const looks = asked.flatMap((queue) => calls.map((id) => kept(store, queue, id)))
  const found = (await Promise.all(looks)).filter((job) => job !== undefined)
  return found.map(({ queue, id, task, state }) => ({ queue, id, task, state }))
}
