/**
 * The start window of a throttled job: the time in which its handler must begin, so that no window of starts exceeds
 * the limit. Pure.
 */

import type { ThrottleRule } from './throttle.js'

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

/** The time in which the handler of a job may begin: not before `from`, and not after `to`. */
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
