/**
 * The recovery of a throttle: the starts that are assumed when the store may have forgotten some (it was restarted, or
 * another server took its place), or when its clock was set back. Pure; instants are ms on the store's clock.
 */

import { toleratedStepMs } from '../../../core/platform/clock.js'
import { countedMs, longestCountedMs, type ThrottleRule } from '../../../core/queue/throttle.js'
import { type Counter, firstCounter } from './throttle-counter.js'

/**
 * Windows up to this length are silent for their whole length; longer ones are charged the starts that they may have
 * lost.
 */
export const longestSilenceMs = 600_000

/** The recovery of a scope. */
export interface Recovery {
  /** The run of the server that answered last. */
  readonly run: string
  /** How often it was recovered, and when last. */
  readonly count: number
  readonly at: number
  /** Ms to add to an instant that was written before a recovery, to have it on the present clock. */
  readonly shiftMs: number
  /** The latest start in the scope, or a later recovery; absent if nothing ever started. */
  readonly lastAt?: number
  /** Nothing starts before this instant. */
  readonly quietUntil?: number
}

export function firstRecovery(run: string, now: number): Recovery {
  return { run, count: 0, at: now, shiftMs: 0 }
}

/**
 * The recovery valid at `now`: the same object if nothing has happened. `sinceLastMs`: ms since the latest start, for a
 * clock that began anew and cannot say.
 */
export function recovered(
  recovery: Recovery,
  rules: readonly ThrottleRule[],
  run: string,
  now: number,
  sinceLastMs?: number,
): Recovery {
  const { lastAt, quietUntil } = recovery
  const isSetBack = lastAt !== undefined && now < lastAt - toleratedStepMs
  if (run === recovery.run && !isSetBack) return recovery
  // Nothing ever started: nothing can be forgotten.
  if (lastAt === undefined) return firstRecovery(run, now)
  const { quietUntil: _, ...known } = { ...recovery, run, count: recovery.count + 1, at: now }
  const since = Math.max(0, sinceLastMs ?? now - lastAt)
  const shiftMs = now - since - lastAt
  const silence = silenceOf(rules)
  const still = quietUntil === undefined ? undefined : quietUntil + shiftMs
  const quiet = silence === undefined ? still : Math.max(now + silence + 1, still ?? now)
  return {
    ...known,
    shiftMs: recovery.shiftMs + shiftMs,
    // The starts charged to long windows count as started now.
    lastAt: now,
    ...(quiet === undefined ? {} : { quietUntil: quiet }),
  }
}

/**
 * A counter that was written under `before`, as it is under `recovery`. Its instants are on the present clock. Its long
 * windows get as many starts as would have fitted between its last start and the recovery. A counter without a start in
 * the longest window equals none: it was more likely idle than forgotten entirely.
 */
export function recoveredCounter(
  counter: Counter,
  rules: readonly ThrottleRule[],
  before: Pick<Recovery, 'count' | 'shiftMs'>,
  recovery: Recovery,
): Counter {
  if (before.count === recovery.count) return counter
  const byMs = recovery.shiftMs - before.shiftMs
  const log = counter.log.map(({ at, count }) => ({ at: at + byMs, count }))
  const grids = counter.grids.map((grid) =>
    grid.slotUs === undefined ? grid : { ...grid, slotUs: grid.slotUs + byMs * 1_000 },
  )
  const last = log.at(-1)
  if (last === undefined || last.at < recovery.at - longestCountedMs(rules)) return firstCounter(rules)
  const charge = chargeFor(rules, recovery.at - last.at)
  return charge === 0 ? { log, grids } : { log: [...log, { at: recovery.at, count: charge }], grids }
}

/**
 * Until when nothing of a group starts that has these rules for itself: its own silence may be longer than that of all
 * groups.
 */
export function ownQuietUntil({ count, at, quietUntil }: Recovery, own: readonly ThrottleRule[]): number | undefined {
  const silence = silenceOf(own)
  if (count === 0 || silence === undefined) return quietUntil
  return Math.max(at + silence + 1, quietUntil ?? at)
}

/** How long nothing starts after a recovery, in ms; undefined if all windows are long. */
function silenceOf(rules: readonly ThrottleRule[]): number | undefined {
  const silent = rules.filter((rule) => !isLong(rule)).map(countedMs)
  return silent.length === 0 ? undefined : Math.max(...silent)
}

/**
 * The earliest last start with which a counter may still count, if every start counts for `longestMs` at most. A counter
 * of before a recovery that was not idle then may have been charged, and such starts count as started at the recovery.
 */
export function idleBefore({ count, at: recoveredAt }: Recovery, longestMs: number, at: number): number {
  const mayBeCharged = longestMs > longestSilenceMs && count > 0 && recoveredAt >= at - longestMs
  return (mayBeCharged ? recoveredAt : at) - longestMs
}

/** The most starts that any long window may have lost in a gap of `gapMs`. */
function chargeFor(rules: readonly ThrottleRule[], gapMs: number): number {
  const lost = (rule: ThrottleRule) => Math.min(rule.limit, Math.ceil((rule.limit * gapMs) / countedMs(rule)))
  return Math.max(0, ...rules.filter(isLong).map(lost))
}

function isLong({ windowMs }: ThrottleRule): boolean {
  return windowMs > longestSilenceMs
}
