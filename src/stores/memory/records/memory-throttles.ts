/** The memory store's throttles: their counts and their rules. */

import { InvalidArgumentError } from '../../../core/errors.js'
import type { Throttles } from '../../contract/throttles.js'
import type { MemoryAdmin } from '../memory-admin.js'
import type { MemoryQueue } from '../queue/memory-queue.js'

export function memoryThrottles(store: MemoryAdmin): Throttles {
  return {
    async state(queue, group) {
      const { throttle, shards } = store.queues().limitsOf(queue)
      if (throttle === undefined) return undefined
      const now = store.now()
      const { scope, by, rules } = throttle
      const subject = by === 'queue' ? '' : group
      const quietForMs = throttle.quietForMs(now)
      const names = throttle.sharing.map(({ settings }) => settings.name)
      return {
        throttle: { scope, by, rules },
        queues: [...new Set(names)].sort(),
        hits: subject === undefined ? rules.map(() => 0) : throttle.hits(subject, now),
        forMs: Math.max(
          subject === undefined ? quietForMs : throttle.waitMs(subject, now),
          ...shards.map((shard) => heldUntil(shard, group) - shard.setBack.asSeen(now)),
        ),
        quietForMs,
        ...(by === 'group' ? { groups: throttle.subjects(now).length } : {}),
      }
    },

    async set(queue, rules) {
      const { throttle } = store.queues().limitsOf(queue)
      if (throttle === undefined)
        throw new InvalidArgumentError(
          `queue '${queue}' has no throttle whose rules could be set; give it one by \`throttle\` in its options first.`,
        )
      throttle.replaceRules(rules)
      for (const shard of throttle.sharing) shard.reopen()
      for (const name of new Set(throttle.sharing.map(({ settings }) => settings.name))) store.ring(name)
    },
  }
}

/** An instant that is over if neither the queue nor the group is held. */
function heldUntil(shard: MemoryQueue, group: string | undefined): number {
  return group === undefined ? shard.heldUntil : Math.max(shard.heldUntil, shard.lanes.heldUntil(group))
}
