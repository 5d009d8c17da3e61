/** The words of other queues for the states of a job. Pure. */

import type { JobState } from './job.js'

const foreign: Readonly<Record<string, JobState>> = {
  active: 'running',
  delayed: 'scheduled',
  failed: 'dead',
  waiting: 'ready',
}

/** What such a state is called here, as a sentence; empty for what nobody calls a state. */
export function stateHint(word: unknown): string {
  if (typeof word !== 'string' || !Object.hasOwn(foreign, word)) return ''
  return ` What others call ${word} is here ${foreign[word]}.`
}
