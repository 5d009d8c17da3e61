/** Other queues' words for the states of a job. Pure. */

import type { JobState } from './job.js'

const foreign: Readonly<Record<string, JobState>> = {
  active: 'running',
  delayed: 'scheduled',
  failed: 'dead',
  waiting: 'ready',
}

/** A sentence with Millrace's name for this state; empty if no known queue has a state of that name. */
export function stateHint(word: unknown): string {
  if (typeof word !== 'string' || !Object.hasOwn(foreign, word)) return ''
  return ` What others call ${word} is here ${foreign[word]}.`
}
