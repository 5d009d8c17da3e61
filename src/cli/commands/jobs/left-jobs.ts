/** Left jobs: those that a job action was given by id and could not change. */

import type { JobState } from '../../../core/job.js'
import { count, counted } from '../../output/figures.js'

/** The states of jobs before the action; undefined: there is no such job. */
export type StatesBefore = ReadonlyMap<string, JobState | undefined>

/** The most ids whose states are read: who gives more wants a number. */
export const mostLookedAt = 100

/** The most ids that the sentence names. */
const mostNamed = 10

/**
 * The sentence for `left` of these jobs, which are `not` what the action changes. It names them if their states tell
 * which they are: a job that changed between the look and the action makes that unknown, as do payloads that wait
 * behind a run of their id.
 */
export function leftSentence(
  { not, takes }: { readonly not: string; readonly takes: readonly JobState[] },
  left: number,
  ids: readonly string[],
  before: StatesBefore,
): string {
  const [were, they] = left === 1 ? ['was left as it is', 'it is'] : ['were left as they are', 'they are']
  const sentence = `${count(left)} of ${counted(ids.length, 'job')} ${were}, because ${they} ${not}`
  const unchanged = [...before].filter(([, state]) => state === undefined || !takes.includes(state))
  if (unchanged.length !== left) return `${sentence}.`
  const named = unchanged.slice(0, mostNamed).map(([id, state]) => `'${id}' is ${state ?? 'not there'}`)
  return `${sentence}: ${named.join(', ')}${unchanged.length > mostNamed ? ', …' : '.'}`
}
