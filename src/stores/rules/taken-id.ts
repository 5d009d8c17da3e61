/** Taken ids: the answer to an enqueue whose id is there already, for every store. */

import type { Enqueued, NewJob } from '../contract/new-job.js'

/** What a plain queue has of an id: a job that waits, runs or is dead, or only its memory. */
export type TakenAs = 'waiting' | 'running' | 'dead' | 'remembered'

/** `'added'`: as if nothing were there. With `'replaced'` the other job goes. */
export function answerToTaken(as: TakenAs, { ifWaiting }: Pick<NewJob, 'ifWaiting'>): Enqueued {
  if (ifWaiting === undefined || as === 'running') return as === 'dead' ? 'dead' : 'duplicate'
  return as === 'remembered' ? 'added' : 'replaced'
}

/** Ms until a job that was created then is due: the delay that it was given, bounded. */
export function boundedDelayMs({ delayMs = 0, atMostMs }: NewJob, createdAt: number, now: number): number {
  return atMostMs === undefined ? delayMs : Math.max(0, Math.min(delayMs, createdAt + atMostMs - now))
}
