/**
 * The subjects of a throttle: what it keeps a counter for. `''` is all jobs together, and a group is itself; beside a
 * counter for all, its subject has a mark, because jobs without a group are the group `''`. Pure; Lua has a translation.
 */

import { InvalidArgumentError } from '../../../core/errors.js'
import type { Throttle, ThrottleRule } from '../../../core/queue/throttle.js'

type Counting = Pick<Throttle, 'by' | 'rules' | 'eachGroup'>

/** Before the name of a group, where all jobs are counted too. */
const mark = '='

/** The subject of a group; the throttle holds for each group. */
export function subjectOf({ eachGroup }: Pick<Throttle, 'eachGroup'>, group: string): string {
  return eachGroup === undefined ? group : `${mark}${group}`
}

/** The group of a subject; undefined for all jobs together. */
export function groupIn({ by, eachGroup }: Counting, subject: string): string | undefined {
  if (eachGroup !== undefined) return subject === '' ? undefined : subject.slice(mark.length)
  return by === 'group' ? subject : undefined
}

/** The rules that a subject goes by. `rateOf`: those that a group has for itself. */
export function rulesOfSubject(
  throttle: Counting,
  subject: string,
  rateOf: (group: string) => readonly ThrottleRule[] | undefined,
): readonly ThrottleRule[] {
  const group = groupIn(throttle, subject)
  if (group === undefined) return throttle.rules
  return rateOf(group) ?? throttle.eachGroup ?? throttle.rules
}

/**
 * Which rules a change of this queue's throttle is for: those of all jobs together, or those of each group. `by` names
 * them where the throttle has both; without it they are those of all. Throws `InvalidArgumentError` if it has no such rules,
 * or the queue has no throttle.
 */
export function changedBy(
  queue: string,
  throttle: Counting | undefined,
  by: Throttle['by'] | undefined,
): Throttle['by'] {
  if (throttle === undefined)
    throw new InvalidArgumentError(
      `queue '${queue}' has no throttle whose rules could be set; give it one by \`throttle\` in its options first.`,
    )
  if (by === undefined || by === throttle.by || (by === 'group' && throttle.eachGroup !== undefined))
    return by ?? throttle.by
  throw new InvalidArgumentError(
    `the throttle of queue '${queue}' has no rules by ${by}: what a throttle counts by is fixed at first use. For another, give the queue another name.`,
  )
}
