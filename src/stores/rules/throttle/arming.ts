/**
 * The arming of a throttle: what is taken to have started where the store may have forgotten starts — it was restarted, or
 * another server took its place — or where its clock was set back. Pure; instants are ms on the store's clock.
 */

import { toleratedStepMs } from '../../../core/platform/clock.js'
import { countedMs, longestCountedMs, type ThrottleRule } from '../../../core/queue/throttle.js'
import { firstTempo, type Tempo } from './tempo.js'

/** Windows up to this are silent for their whole length; longer ones are charged what they may have lost. */
export const longestSilenceMs = 600_000

/** Of a scope. */
export interface Arming {
  /** Which run of which server it was that answered last. */
  readonly run: string
  /** How often it was armed, and when last. */
  readonly count: number
  readonly at: number
  /** What has to be added to an instant that was written down before any arming to have it on the clock of today. */
  readonly shiftMs: number
  /** The latest start in the scope, or when it was armed after that; absent where nothing ever started. */
  readonly lastAt?: number
  /** Nothing starts before. */
  readonly quietUntil?: number
}

export function firstArming(run: string, now: number): Arming {
  return { run, count: 0, at: now, shiftMs: 0 }
}

/**
 * The arming as it holds for `now`: the same where nothing has happened. `sinceLastMs`: how long ago the latest start was,
 * where the clock itself cannot tell because it began anew.
 */
export function armed(
  arming: Arming,
  rules: readonly ThrottleRule[],
  run: string,
  now: number,
  sinceLastMs?: number,
): Arming {
  const { lastAt, quietUntil } = arming
  const isSetBack = lastAt !== undefined && now < lastAt - toleratedStepMs
  if (run === arming.run && !isSetBack) return arming
  // Nothing ever started: nothing can be forgotten.
  if (lastAt === undefined) return firstArming(run, now)
  const { quietUntil: _, ...known } = { ...arming, run, count: arming.count + 1, at: now }
  const since = Math.max(0, sinceLastMs ?? now - lastAt)
  const shiftMs = now - since - lastAt
  const silent = rules.filter((rule) => !isLong(rule)).map(countedMs)
  const still = quietUntil === undefined ? undefined : quietUntil + shiftMs
  const quiet = silent.length === 0 ? still : Math.max(now + Math.max(...silent) + 1, still ?? now)
  return {
    ...known,
    shiftMs: arming.shiftMs + shiftMs,
    // What long windows are charged counts as started now.
    lastAt: now,
    ...(quiet === undefined ? {} : { quietUntil: quiet }),
  }
}

/**
 * A tempo that was written down under `before`, as it stands under `arming`: its instants on the clock of today, and for
 * long windows with as many starts as would have fitted between its last and the arming. One in which nothing had started
 * for the longest window is as good as none: that it was idle is more likely than that all of it was forgotten.
 */
export function armedTempo(
  tempo: Tempo,
  rules: readonly ThrottleRule[],
  before: Pick<Arming, 'count' | 'shiftMs'>,
  arming: Arming,
): Tempo {
  if (before.count === arming.count) return tempo
  const byMs = arming.shiftMs - before.shiftMs
  const log = tempo.log.map(({ at, count }) => ({ at: at + byMs, count }))
  const strides = tempo.strides.map((stride) =>
    stride.slotUs === undefined ? stride : { ...stride, slotUs: stride.slotUs + byMs * 1_000 },
  )
  const last = log.at(-1)
  if (last === undefined || last.at < arming.at - longestCountedMs(rules)) return firstTempo(rules)
  const charge = chargeFor(rules, arming.at - last.at)
  return charge === 0 ? { log, strides } : { log: [...log, { at: arming.at, count: charge }], strides }
}

/** The most that any long window may have lost in a gap of so many ms. */
function chargeFor(rules: readonly ThrottleRule[], gapMs: number): number {
  const lost = (rule: ThrottleRule) => Math.min(rule.limit, Math.ceil((rule.limit * gapMs) / countedMs(rule)))
  return Math.max(0, ...rules.filter(isLong).map(lost))
}

function isLong({ windowMs }: ThrottleRule): boolean {
  return windowMs > longestSilenceMs
}
