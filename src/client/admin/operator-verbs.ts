/** The verbs of an operator on the jobs of a queue, and the states in which each applies. The commands and the API use this table. */

import type { QueueCounts } from '../../stores/rules/queue-counts.js'

/**
 * `method`: of `QueueAdmin.jobs`. `done`: as in `3 jobs buried`. `takes`: the states of the jobs that the verb changes, if
 * all of the queue are meant.
 */
export const jobVerbs = {
  cancel: { method: 'cancel', done: 'cancelled', takes: ['waiting', 'scheduled', 'ready', 'running'] },
  delete: { method: 'delete', done: 'deleted', takes: ['waiting', 'scheduled', 'ready'] },
  'run-now': { method: 'runNow', done: 'due now', takes: ['scheduled'] },
  bury: { method: 'bury', done: 'buried', takes: ['waiting', 'scheduled', 'ready'] },
} as const

export type JobVerb = keyof typeof jobVerbs

/** The verbs on jobs, with the one that needs to be told more, and those on dead ones. */
export type AdminVerb = JobVerb | 'reschedule' | 'revive' | 'delete-dead'

/** About how many jobs the verb changes, if it is for all of a queue, or for all that failed. */
export function jobsFor(verb: JobVerb, counts: QueueCounts, which: 'all' | 'failed'): number {
  const takes: readonly (keyof QueueCounts)[] = jobVerbs[verb].takes
  const all = takes.reduce((sum, state) => sum + counts[state], 0)
  return which === 'all' ? all : Math.min(all, counts.retries)
}
