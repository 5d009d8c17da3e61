/** The start window of a throttled job: between which instants its handler must begin, so that no window of starts exceeds the limit. Pure. */

import type { ThrottleRule } from './throttle.js'

/**
 * From the grant of the store to the first line of the handler: every handler begins so much later, in ms, so that an answer
 * which takes its time moves none.
 */
export const startDelayMs = 50
/** The same for a job that runs in a process of its own, which must first be there and load its task. */
export const isolatedStartDelayMs = 1_000

const leastSpreadMs = 50
const mostSpreadMs = 1_000
/** Of the window: what a limit loses of its pace. */
const spreadShare = 1 / 40
/** A timer is as exact as that. */
const timerGrainMs = 1
/** Where a trip leaves more in doubt, it is taken to be as long there as back, give or take half of it. */
const mostDoubtMs = 20

/** Between two instants on the monotonic clock of this process, in ms. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** How unevenly handlers may begin after their grants under a limit with this window, in ms: 2.5 % of it, from 50 to 1,000. */
export function startSpreadMs(windowMs: number): number {
  return Math.min(mostSpreadMs, Math.max(leastSpreadMs, Math.floor(windowMs * spreadShare)))
}

/**
 * When the handler of a job may begin that the store granted in `granted`: not before `from`, and not after `to`. Two grants
 * are a window and its spread apart, so two starts are at least the window apart.
 */
export function startWindowOf(granted: Span, rules: readonly ThrottleRule[], delayMs: number): Span {
  const { from, to } = lessDoubtful(granted)
  const spreadMs = Math.min(...rules.map((rule) => rule.spreadMs ?? Number.POSITIVE_INFINITY))
  return { from: to + delayMs, to: from + delayMs + spreadMs - timerGrainMs }
}

function lessDoubtful({ from, to }: Span): Span {
  if (to - from <= mostDoubtMs) return { from, to }
  const middle = (from + to) / 2
  return { from: middle - mostDoubtMs / 2, to: middle + mostDoubtMs / 2 }
}
