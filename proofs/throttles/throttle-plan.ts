/** The plan of a run under a throttle: rules, arrivals and claims of eight processes, drawn from a seed. */

import type { Throttle, ThrottleRule } from '#src/core/queue/throttle.js'
import { Dice } from '#src/store-testing/sequences/dice.js'

/** Claims that are made at one instant, after the arrivals. */
export interface Tick {
  /** Ms since the previous tick. */
  readonly afterMs: number
  /** The groups of the arriving jobs. '' means no group. */
  readonly arrivals: readonly string[]
  /** Each claim is made by another process, all at once. */
  readonly claims: readonly { readonly process: number; readonly limit: number }[]
}

export interface RunPlan {
  readonly throttle: Throttle
  readonly ticks: readonly Tick[]
}

export const processes = 8
const groups = ['', 'a', 'b']

export function planOf(seed: number, scope: string): RunPlan {
  const dice = new Dice(seed)
  const by = dice.chance(0.4) ? 'group' : 'queue'
  const windows = [...new Set(dice.several(1, 2, () => dice.whole(2, 20) * dice.pick([1, 10, 100])))]
  const rules = windows.map((windowMs) => ruleOf(dice, windowMs))
  const isHungry = dice.chance(0.5)
  const ticks = dice.several(15, 30, () => ({
    afterMs: spanOf(dice, rules),
    arrivals: dice.several(0, isHungry ? 12 : 3, () => (by === 'group' ? dice.pick(groups) : '')),
    claims: shuffled(dice)
      .slice(0, dice.whole(1, processes))
      .map((process) => ({ process, limit: dice.pick([1, 1, 2, 5, 20]) })),
  }))
  return { throttle: { scope, by, rules }, ticks }
}

function ruleOf(dice: Dice, windowMs: number): ThrottleRule {
  const limit = dice.whole(1, 8)
  const moderate = dice.chance(0.4)
  const elastic = moderate && dice.chance(0.6) ? { elasticBuffer: dice.whole(0, Math.min(2, limit - 1)) } : {}
  return { limit, windowMs, moderate, ...elastic }
}

/** Spans often end exactly at the edge of a window or slot, or one millisecond away from it. */
function spanOf(dice: Dice, rules: readonly ThrottleRule[]): number {
  const { limit, windowMs } = dice.pick(rules)
  const slotMs = Math.ceil(windowMs / limit)
  return dice.weighted([
    [3, dice.whole(0, 2)],
    [3, dice.pick([slotMs - 1, slotMs, slotMs + 1])],
    [3, dice.pick([windowMs - 1, windowMs, windowMs + 1])],
    [3, dice.whole(0, windowMs)],
    [1, dice.whole(windowMs, windowMs * 4)],
  ])
}

function shuffled(dice: Dice): number[] {
  const order = Array.from({ length: processes }, (_, process) => ({ process, at: dice.random() }))
  return order.sort((a, b) => a.at - b.at).map(({ process }) => process)
}
