/** Changes of a queue's limits, as a sequence makes them, and an open that says some of them. */

import type { QueueLimits } from '../../core/queue/queue-limits.js'
import { groupRules, type ThrottleRule } from '../../core/queue/throttle.js'
import type { QueueSettings } from '../../stores/contract/queue-settings.js'
import type { Command, PlannedCall } from './command.js'
import { maybe, workers } from './command-parts.js'
import type { Dice } from './dice.js'

/** Other limits, for a part of them; sometimes none. */
function otherLimits(dice: Dice, { kind }: QueueSettings): QueueLimits {
  const orNone = <T>(limit: T) => (dice.chance(0.3) ? 'none' : limit)
  return {
    ...maybe(dice, { maxPending: orNone(dice.whole(1, 12)) }, 0.4),
    ...maybe(dice, { maxCrashes: dice.whole(1, 3) }, 0.3),
    ...maybe(dice, kind === 'plain' ? { resultsCount: orNone(dice.whole(0, 3)) } : {}, 0.3),
    ...maybe(
      dice,
      { dead: { ...maybe(dice, { count: dice.whole(0, 3) }), ...maybe(dice, { ageMs: dice.pick([5_000, 60_000]) }) } },
      0.3,
    ),
  }
}

/** Other numbers of running jobs; a queue of several shards keeps none per group. */
export function otherRunning(dice: Dice, { kind }: QueueSettings): QueueLimits {
  const total = { maxRunning: dice.whole(1, 4) }
  if (kind === 'ordered')
    return dice.weighted<QueueLimits>([
      [4, total],
      [1, { maxRunning: 'none' }],
    ])
  return dice.weighted<QueueLimits>([
    [3, total],
    [3, { maxRunning: { perGroup: dice.whole(1, 2) } }],
    [2, { maxRunning: { total: dice.whole(1, 4), perGroup: dice.whole(1, 2) } }],
    [1, { maxRunning: 'none' }],
  ])
}

/** Gives a queue other limits, as a configuration or a command would. */
export function limitChange(dice: Dice, queues: readonly QueueSettings[]) {
  const queue = dice.pick(queues)
  return { verb: 'setLimits', queue: queue.name, change: otherLimits(dice, queue) } as const
}

/** Opens a queue with these settings, which mostly say other limits than the stored ones; or follows the stored ones. */
export function opening(dice: Dice, settings: QueueSettings) {
  return {
    verb: 'open',
    queues: [{ ...settings, ...maybe(dice, otherLimits(dice, settings)) }],
    ...maybe(dice, { follows: true }, 0.3),
  } as const
}

/** Another rule with this window, and the spread of the first. */
function otherRule(dice: Dice, { windowMs, spreadMs }: ThrottleRule): ThrottleRule {
  const limit = dice.whole(1, 7)
  return {
    ...{ limit, windowMs, moderate: false },
    ...(spreadMs === undefined ? {} : { spreadMs }),
    ...maybe(dice, { moderate: true }),
    ...maybe(dice, { moderate: true, elasticBuffer: dice.whole(0, 1) }, 0.3),
  }
}

/** Other rules with the same windows: how far beyond them starts are remembered is the store's own affair. */
export function changedRules(dice: Dice, queues: readonly QueueSettings[]) {
  const { name, throttle } = dice.pick(queues.filter(({ throttle }) => throttle !== undefined))
  const { rules, eachGroup } = throttle!
  const isOfGroups = eachGroup !== undefined && dice.chance(0.5)
  return {
    queue: name,
    rules: (isOfGroups ? eachGroup : rules).map((rule) => otherRule(dice, rule)),
    ...(isOfGroups ? { by: 'group' as const } : {}),
  }
}

/** Rules of its own for the group, some of the windows and always the longest; or none of its own. */
export function changedRate(dice: Dice, queues: readonly QueueSettings[], group: string) {
  const rated = queues.filter(({ throttle }) => throttle !== undefined && groupRules(throttle) !== undefined)
  const { name, throttle } = dice.pick(rated)
  const all = groupRules(throttle!)!
  const longest = all.at(-1)
  const rules = all.filter((rule) => rule === longest || dice.chance(0.5))
  return {
    ...({ verb: 'set rate', queue: name, group } as const),
    ...maybe(dice, { rules: rules.map((rule) => otherRule(dice, rule)) }, 0.7),
  }
}

/** Commands in a row: a group gets rules of its own between its starts, and is asked again. */
export function ratedGroup(
  dice: Dice,
  queues: readonly QueueSettings[],
  { callId, group, jobs }: Pick<PlannedCall, 'callId' | 'jobs'> & { readonly group: string },
): Command[] {
  const handle = dice.whole(0, 1)
  const change = changedRate(dice, queues, group)
  const { queue } = change
  const by = { worker: dice.pick(workers), leaseMs: 30_000 }
  const claim: Command = { handle, verb: 'claim', from: [{ queue, limit: 5 }], by }
  const sometimes = (one: Command) => (dice.chance(0.3) ? [one] : [])
  return [
    { handle, verb: 'resume', queue },
    { handle, verb: 'enqueue', calls: [{ callId, queue, jobs }] },
    claim,
    { handle, ...change },
    claim,
    { handle, verb: 'throttle', queue, group },
    { handle, verb: 'advance', ms: dice.pick([1_000, 2_500, 5_001]) },
    claim,
    ...sometimes({ handle, verb: 'restart' }),
    ...sometimes({ handle, ...changedRate(dice, queues, group) }),
    claim,
  ]
}
