/**
 * The recovery of a throttle: what is taken to have started where the store may have forgotten starts — it was restarted, or
 * another server took its place — or where its clock was set back. Pure; instants are ms on the store's clock.
 */

import { toleratedStepMs } from '../../../core/platform/clock.js'
import { countedMs, longestCountedMs, type ThrottleRule } from '../../../core/queue/throttle.js'
import { type Counter, firstCounter } from './throttle-counter.js'

/** Windows up to this are silent for their whole length; longer ones are charged what they may have lost. */
export const longestSilenceMs = 600_000

/** Of a scope. */
export interface Recovery {
  /** Which run of which server it was that answered last. */
  readonly run: string
  /** How often it was recovered, and when last. */
  readonly count: number
  readonly at: number
  /** What has to be added to an instant that was written down before any recovery to have it on the clock of today. */
  readonly shiftMs: number
  /** The latest start in the scope, or when it was recovered after that; absent where nothing ever started. */
  readonly lastAt?: number
  /** Nothing starts before. */
  readonly quietUntil?: number
}

export function firstRecovery(run: string, now: number): Recovery {
  return { run, count: 0, at: now, shiftMs: 0 }
}

/**
 * The recovery as it holds for `now`: the same where nothing has happened. `sinceLastMs`: how long ago the latest start was,
 * where the clock itself cannot tell because it began anew.
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
  const silent = rules.filter((rule) => !isLong(rule)).map(countedMs)
  const still = quietUntil === undefined ? undefined : quietUntil + shiftMs
  const quiet = silent.length === 0 ? still : Math.max(now + Math.max(...silent) + 1, still ?? now)
  return {
    ...known,
    shiftMs: recovery.shiftMs + shiftMs,
    // What long windows are charged counts as started now.
    lastAt: now,
    ...(quiet === undefined ? {} : { quietUntil: quiet }),
  }
}

/**
 * A counter that was written down under `before`, as it stands under `recovery`: its instants on the clock of today, and for
 * long windows with as many starts as would have fitted between its last and the recovery. One in which nothing had started
 * for the longest window is as good as none: that it was idle is more likely than that all of it was forgotten.
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

/** The most that any long window may have lost in a gap of so many ms. */
function chargeFor(rules: readonly ThrottleRule[], gapMs: number): number {
  const lost = (rule: ThrottleRule) => Math.min(rule.limit, Math.ceil((rule.limit * gapMs) / countedMs(rule)))
  return Math.max(0, ...rules.filter(isLong).map(lost))
}

function isLong({ windowMs }: ThrottleRule): boolean {
  return windowMs > longestSilenceMs
}
