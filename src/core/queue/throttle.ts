/** A throttle: how many jobs may start in every window of time, for which queues, and counted by what. */

import { ThrottleConflictError } from '../errors.js'
import { exactDuration } from '../values/duration.js'

/** One window of a throttle. */
export interface ThrottleRule {
  /** Most jobs that start in any closed window; at least 1. */
  readonly limit: number
  /** Whole ms, at least 1. */
  readonly windowMs: number
  /**
   * By how much two jobs of different windows may come closer to each other between the store's grant and the first line of
   * their handlers, in whole ms: the store counts a start for so much longer. Default 0: grants are what is counted.
   */
  readonly spreadMs?: number
  /** One job for each `windowMs / limit`, evenly spaced. Has no meaning where the limit is 1. */
  readonly moderate: boolean
  /**
   * Whether a moderated tempo that has fallen behind, though there were jobs, may catch up: as long as more than so many
   * starts of the window are unused. Absent: it may not.
   */
  readonly elasticBuffer?: number
}

export interface Throttle {
  /** Queues of one scope share one count. */
  readonly scope: string
  /** Whether the rules hold for all jobs of the scope together, or for those of each group by themselves. */
  readonly by: 'queue' | 'group'
  /** All of them hold. Their windows differ. */
  readonly rules: readonly ThrottleRule[]
}

/** For how long a start counts, in ms: the window, and what handlers may begin unevenly. */
export function countedMs({ windowMs, spreadMs = 0 }: ThrottleRule): number {
  return windowMs + spreadMs
}

/** For how long a start counts by any of the rules, in ms. */
export function longestCountedMs(rules: readonly ThrottleRule[]): number {
  return Math.max(...rules.map(countedMs))
}

export function sameRules(a: readonly ThrottleRule[], b: readonly ThrottleRule[]): boolean {
  return a.length === b.length && a.every((rule, i) => ruleText(rule) === ruleText(b[i]!))
}

/** The rule as it is written down and shown: equal rules have equal texts. */
export function ruleText({ limit, windowMs, spreadMs = 0, moderate, elasticBuffer }: ThrottleRule): string {
  return [
    `${limit}/${windowMs}`,
    spreadMs === 0 ? '' : `+${spreadMs}`,
    moderate ? 'm' : '',
    elasticBuffer === undefined ? '' : `e${elasticBuffer}`,
  ].join('')
}

const ruleForm = /^(\d+)\/(\d+)(\+(\d+))?(m?)(e(\d+))?$/

/** Whether `rulesIn` can read it: it may come from a damaged store. */
export function isRulesText(text: string): boolean {
  return text.split(' ').every((part) => ruleForm.test(part))
}

/** The rules in a text that `ruleText` made of each, with a space between them. */
export function rulesIn(text: string): ThrottleRule[] {
  return text.split(' ').map((part) => {
    const [, limit, windowMs, , spreadMs, moderate, , elasticBuffer] = ruleForm.exec(part)!
    return {
      limit: Number(limit),
      windowMs: Number(windowMs),
      ...(spreadMs === undefined ? {} : { spreadMs: Number(spreadMs) }),
      moderate: moderate === 'm',
      ...(elasticBuffer === undefined ? {} : { elasticBuffer: Number(elasticBuffer) }),
    }
  })
}

/** In words, for messages: `10 in 1m, moderate, by group, scope 'sites'`. */
export function throttleText(queue: string, { scope, by, rules }: Throttle): string {
  const windows = rules.map(({ limit, windowMs, moderate, elasticBuffer }) =>
    [
      `${limit} in ${exactDuration(windowMs)}`,
      ...(moderate ? ['moderate'] : []),
      ...(elasticBuffer === undefined ? [] : [`elastic with a buffer of ${elasticBuffer}`]),
    ].join(', '),
  )
  const of = [...(by === 'group' ? ['by group'] : []), ...(scope === queue ? [] : [`scope '${scope}'`])]
  return [windows.join(' and '), ...of].join(', ')
}

/** Throws `ThrottleConflictError` where a queue, or its scope, is stored with another throttle than the one asked for. */
export function refuseOtherThrottle(queue: string, stored: Throttle | undefined, asked: Throttle): void {
  if (stored === undefined) return
  const isSame = stored.scope === asked.scope && stored.by === asked.by && sameRules(stored.rules, asked.rules)
  if (!isSame) throw new ThrottleConflictError(queue, throttleText(queue, stored), throttleText(queue, asked))
}
