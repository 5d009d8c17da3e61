/** Changes of a queue's limits, as a sequence makes them, and an open that says some of them. */

import type { QueueLimits } from '../../core/queue/queue-limits.js'
import type { QueueSettings } from '../../stores/contract/queue-settings.js'
import { maybe } from './command-parts.js'
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

/** Gives a queue other limits, whoever has said which. */
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
