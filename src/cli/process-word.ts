/** Process words: the messages between a worker process and its supervisor. */

import type { JobRef } from '../core/events.js'
import type { WorkerStatus } from '../workers/worker-status.js'

export type { WorkerStatus }

/** The status of a worker in short, as its process tells it each second. */
export interface Pulse extends Omit<WorkerStatus, 'jobs'> {
  readonly running: number
  /** Those in hand for the longest. */
  readonly oldest: readonly (JobRef & { readonly forMs: number })[]
}

/** From the process: its worker takes jobs; it is alive; it takes no more jobs and needs a successor; the same, because of an error; it has shown its state. */
export type ProcessWord =
  | { readonly millrace: 'ready'; readonly pulse: Pulse }
  | { readonly millrace: 'alive'; readonly pulse: Pulse }
  | { readonly millrace: 'recycling' }
  | { readonly millrace: 'failing' }
  | { readonly millrace: 'dumped' }

/** From the supervisor: show your state. */
export type SupervisorWord = { readonly millrace: 'dump' }

const mostNamed = 5

/** Whether a message is one of ours: the user's code in the process may send its own. */
export function isWord(message: unknown): message is ProcessWord | SupervisorWord {
  return typeof message === 'object' && message !== null && 'millrace' in message
}

export function pulseOf({ jobs, ...status }: WorkerStatus): Pulse {
  const oldest = [...jobs].sort((a, b) => b.forMs - a.forMs).slice(0, mostNamed)
  return {
    ...status,
    running: jobs.length,
    oldest: oldest.map(({ queue, id, task, forMs }) => ({ queue, id, task, forMs })),
  }
}
