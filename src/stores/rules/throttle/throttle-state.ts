/** The state of a throttle: what it has counted, of all jobs and of a group, and for how long nothing may start. Pure. */

import { groupRules, type Throttle, type ThrottleRule } from '../../../core/queue/throttle.js'
import type { ThrottleState } from '../../contract/throttles.js'
import { subjectOf } from './throttle-subjects.js'

/** The throttle as a store has it, with its counters. Instants are on the monotonic clock. */
interface CountedThrottle {
  /** The rules that this group has for itself. */
  rateOf(group: string): readonly ThrottleRule[] | undefined
  /** The starts in each rule's window that ends now. */
  hits(subject: string, now: number): number[]
  /** Ms until one more job may start. */
  waitMs(subject: string, now: number): number
  /** For how long nothing starts after a restart: of any group, or of this one. */
  quietForMs(now: number, subject?: string): number
}

/** `forMs` is of the throttle alone: a hold of the queue or of the group may last longer. */
export function throttleState(
  throttle: Throttle,
  counted: CountedThrottle,
  now: number,
  group: string | undefined,
): Omit<ThrottleState, 'queues' | 'groups'> {
  const isOfGroup = group !== undefined && groupRules(throttle) !== undefined
  const ofGroup = isOfGroup ? subjectOf(throttle, group) : undefined
  const rate = isOfGroup ? counted.rateOf(group) : undefined
  const quietForMs = counted.quietForMs(now, ofGroup)
  // Rules for all count without a group too.
  const [whole, beside] = throttle.by === 'queue' ? ['', ofGroup] : [ofGroup, undefined]
  const waits = [whole, beside].map((subject) => (subject === undefined ? 0 : counted.waitMs(subject, now)))
  return {
    throttle,
    hits: whole === undefined ? throttle.rules.map(() => 0) : counted.hits(whole, now),
    ...(beside === undefined ? {} : { groupHits: counted.hits(beside, now) }),
    forMs: Math.max(quietForMs, ...waits),
    quietForMs,
    ...(rate === undefined ? {} : { rate }),
  }
}
