/**
 * A throttle: the limits on job starts in any window of time, the queues they hold for, and the unit they count by; and
 * the window in which the handler of a granted job must begin. Pure.
 */

import { ThrottleConflictError } from '../errors.js'
import { exactDuration } from '../values/duration.js'

/** One window of a throttle. */
export interface ThrottleRule {
  /** The most jobs that start in any closed window; at least 1. */
  readonly limit: number
  /** Whole ms, at least 1. */
  readonly windowMs: number
  /**
   * By how much the distance of two starts may shrink between the store's grants and the first lines of their handlers,
   * in whole ms. The store counts a start for this much longer. Default 0: the limit counts grants.
   */
  readonly spreadMs?: number
  /** Spaces starts evenly, one in each `windowMs / limit`. Has no effect if the limit is 1. */
  readonly moderate: boolean
  /**
   * Whether moderated starts that fell behind, although there were jobs, may catch up: as long as more than this many
   * starts of the window are unused. Absent: they may not.
   */
  readonly elasticBuffer?: number
}

export interface Throttle {
  /** Queues of one scope share one count. */
  readonly scope: string
  /** Whether the rules hold for all jobs of the scope together, or for the jobs of each group separately. */
  readonly by: 'queue' | 'group'
  /** All rules hold at once. Their windows differ. */
  readonly rules: readonly ThrottleRule[]
  /** Beside rules for all jobs together: those that hold for the jobs of each group as well. */
  readonly eachGroup?: readonly ThrottleRule[]
  /** The rates that groups have for themselves, if any has one. No configuration says them. */
  readonly own?: OwnRates
}

/** The rates that single groups have instead of the rules of all groups, as a throttle sums them up. */
export interface OwnRates {
  /** How many groups have one. */
  readonly groups: number
  /** How long a start counts by them at most, in ms, since some group has one. */
  readonly longestMs: number
  /** Their least spread since then, in ms; absent if none has one. */
  readonly leastSpreadMs?: number
}

/** The rules that hold for the jobs of each group separately; undefined if none do. */
export function groupRules({ by, rules, eachGroup }: Throttle): readonly ThrottleRule[] | undefined {
  return by === 'group' ? rules : eachGroup
}

/** All rules, for all jobs together and for each group, apart from the rates of single groups. */
export function allRules({ rules, eachGroup = [] }: Pick<Throttle, 'rules' | 'eachGroup'>): readonly ThrottleRule[] {
  return [...rules, ...eachGroup]
}

/** Whether two configurations say the same throttle. */
export function sameThrottle(a: Throttle, b: Throttle): boolean {
  const isAlike = a.scope === b.scope && a.by === b.by && sameRules(a.rules, b.rules)
  return isAlike && sameRules(a.eachGroup ?? [], b.eachGroup ?? [])
}

/** How long a start counts, in ms: the window plus the spread. */
export function countedMs({ windowMs, spreadMs = 0 }: ThrottleRule): number {
  return windowMs + spreadMs
}

/** How long a start counts by any of the rules, in ms. */
export function longestCountedMs(rules: readonly ThrottleRule[]): number {
  return Math.max(...rules.map(countedMs))
}

export function sameRules(a: readonly ThrottleRule[], b: readonly ThrottleRule[]): boolean {
  return a.length === b.length && a.every((rule, i) => ruleText(rule) === ruleText(b[i]!))
}

/** The stored and printed text of a rule. Equal rules have equal texts. */
export function ruleText({ limit, windowMs, spreadMs = 0, moderate, elasticBuffer }: ThrottleRule): string {
  return [
    `${limit}/${windowMs}`,
    spreadMs === 0 ? '' : `+${spreadMs}`,
    moderate ? 'm' : '',
    elasticBuffer === undefined ? '' : `e${elasticBuffer}`,
  ].join('')
}

const ruleForm = /^(\d+)\/(\d+)(\+(\d+))?(m?)(e(\d+))?$/

/** Whether `rulesIn` can read the text, which may come from a damaged store. */
export function isRulesText(text: string): boolean {
  return text.split(' ').every((part) => ruleForm.test(part))
}

/** The rules in a text of `ruleText` results, separated by spaces. */
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

/** The throttle in words, for messages: `10 in 1m, moderate, by group, scope 'sites'`. */
export function throttleText(queue: string, { scope, by, rules, eachGroup }: Throttle): string {
  const of = [...(by === 'group' ? ['by group'] : []), ...(scope === queue ? [] : [`scope '${scope}'`])]
  const each = eachGroup === undefined ? '' : `, and for each group ${windowsText(eachGroup)}`
  return [`${windowsText(rules)}${each}`, ...of].join(', ')
}

function windowsText(rules: readonly ThrottleRule[]): string {
  const windows = rules.map(({ limit, windowMs, moderate, elasticBuffer }) =>
    [
      `${limit} in ${exactDuration(windowMs)}`,
      ...(moderate ? ['moderate'] : []),
      ...(elasticBuffer === undefined ? [] : [`elastic with a buffer of ${elasticBuffer}`]),
    ].join(', '),
  )
  return windows.join(' and ')
}

/** Throws `ThrottleConflictError` if a queue, or its scope, is stored with another throttle. */
export function refuseOtherThrottle(queue: string, stored: Throttle | undefined, asked: Throttle): void {
  if (stored === undefined) return
  if (!sameThrottle(stored, asked))
    throw new ThrottleConflictError(queue, throttleText(queue, stored), throttleText(queue, asked))
}

/**
 * The delay from the grant of the store to the first line of the handler, in ms. Every handler has it, so a slow answer
 * of the store moves no start.
 */
export const startDelayMs = 50
/** The same delay for a job in a process of its own, which must first start and load its task. */
export const isolatedStartDelayMs = 1_000

const leastSpreadMs = 50
const mostSpreadMs = 1_000
/** The share of the window that a limit loses in pace. */
const spreadShare = 1 / 40
/** The precision of a timer. */
const timerGrainMs = 1
/**
 * The most doubt about when the store made a grant, besides the lateness that a claim declares. If the round trip leaves
 * more, the way there and back count as equally long, give or take half of this.
 */
const mostDoubtMs = 20

/** The time between two instants on the monotonic clock of this process, in ms. */
export interface Span {
  readonly from: number
  readonly to: number
}

/**
 * The spread under a limit with this window: by how much handlers may begin unevenly after their grants, in ms. It is
 * 2.5 % of the window, from 50 to 1,000.
 */
export function startSpreadMs(windowMs: number): number {
  return Math.min(mostSpreadMs, Math.max(leastSpreadMs, Math.floor(windowMs * spreadShare)))
}

/** The least spread of these rules, in ms; infinite if none has one. */
export function leastSpreadOf(rules: readonly ThrottleRule[]): number {
  return Math.min(...rules.map(({ spreadMs = Number.POSITIVE_INFINITY }) => spreadMs))
}

/**
 * The time in which the handler of a job may begin, so that no window of starts exceeds the limit: not before `from`,
 * and not after `to`.
 */
export interface StartWindow extends Span {
  /** When it must have begun at the latest if the claim declares no lateness, and the store acted as early as it may. */
  readonly dueBy: number
}

/**
 * The start window for a grant that the store made within `granted` under rules with this spread. Two grants are a window and its spread apart, and
 * what the claim declared as `lateMs`, so two starts are at least the window apart.
 */
export function startWindowOf(granted: Span, spreadMs: number, delayMs: number, lateMs: number): StartWindow {
  const { from, to } = lessDoubtful(granted, mostDoubtMs + lateMs)
  const allowedMs = delayMs + spreadMs - timerGrainMs
  return { from: to + delayMs, to: from + allowedMs + lateMs, dueBy: granted.from + allowedMs }
}

function lessDoubtful({ from, to }: Span, mostMs: number): Span {
  if (to - from <= mostMs) return { from, to }
  const middle = (from + to) / 2
  return { from: middle - mostMs / 2, to: middle + mostMs / 2 }
}
