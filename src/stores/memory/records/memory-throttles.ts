/** The memory store's throttles: their counts and their rules, holds, and pauses of groups. */

import { groupRules } from '../../../core/queue/throttle.js'
import type { StoredHold, Throttles } from '../../contract/throttles.js'
import { compareBytes } from '../../rules/byte-order.js'
import { refuseRates } from '../../rules/throttle/own-rates.js'
import { throttleState } from '../../rules/throttle/throttle-state.js'
import { changedBy } from '../../rules/throttle/throttle-subjects.js'
import type { MemoryAdmin } from '../memory-admin.js'
import type { MemoryQueue } from '../queue/memory-queue.js'

export function memoryThrottles(store: MemoryAdmin): Throttles {
  return {
    async state(queue, group) {
      const { throttle, shards } = store.queues().limitsOf(queue)
      if (throttle === undefined) return undefined
      const now = store.now()
      const state = throttleState(throttle.told, throttle, now, group)
      const heldForMs = shards.map((shard) => heldUntil(shard, group) - shard.setBack.asSeen(now))
      const names = throttle.sharing.map(({ settings }) => settings.name)
      return {
        ...state,
        queues: [...new Set(names)].sort(),
        forMs: Math.max(state.forMs, ...heldForMs),
        ...(groupRules(throttle.told) === undefined ? {} : { groups: throttle.groups(now) }),
      }
    },

    async set(queue, rules, by) {
      const { throttle } = store.queues().limitsOf(queue)
      const changed = changedBy(queue, throttle?.told, by)
      throttle!.replaceRules(rules, changed)
      for (const shard of throttle!.sharing) shard.reopen()
      for (const name of new Set(throttle!.sharing.map(({ settings }) => settings.name))) store.ring(name)
    },

    async setRate(queue, group, rules) {
      const throttle = store.queues().limitsOf(queue).throttle
      refuseRates(queue, throttle?.told)
      throttle!.setRate(group, rules)
      for (const { lanes } of throttle!.sharing) lanes.look(group)
      for (const name of new Set(throttle!.sharing.map(({ settings }) => settings.name))) store.ring(name)
    },

    async rates(queue, limit) {
      const all = [...(store.queues().limitsOf(queue).throttle?.rates ?? [])].sort(([a], [b]) => compareBytes(a, b))
      return { rates: all.slice(0, limit).map(([group, rules]) => ({ group, rules })), total: all.length }
    },

    async holds(queue, { groups, limit }) {
      const { shards, pausedGroups } = store.queues().limitsOf(queue)
      const [first] = shards
      const now = first!.setBack.asSeen(store.now())
      const isAsked = (group: string) => groups === undefined || groups.includes(group)
      const { held } = first!.lanes
      const all: StoredHold[] = [
        ...(first!.heldUntil > now ? [{ forMs: first!.heldUntil - now }] : []),
        ...[...pausedGroups]
          .filter(isAsked)
          .sort(compareBytes)
          .map((group) => ({ group })),
        ...[...held]
          .filter(([group, until]) => until > now && isAsked(group))
          .sort(([a, aUntil], [b, bUntil]) => aUntil - bUntil || compareBytes(a, b))
          .map(([group, until]) => ({ group, forMs: until - now })),
      ]
      return { holds: all.slice(0, limit), total: all.length }
    },

    async release(queue, group) {
      const { shards } = store.queues().limitsOf(queue)
      const ended = Math.max(...shards.map((shard) => release(shard, group, store.now())))
      store.ring(queue)
      return ended
    },

    async pause(queue, group) {
      const { shards, pausedGroups } = store.queues().limitsOf(queue)
      pausedGroups.add(group)
      for (const shard of shards) shard.refresh(group)
    },

    async resume(queue, group) {
      const { shards, pausedGroups } = store.queues().limitsOf(queue)
      pausedGroups.delete(group)
      for (const shard of shards) shard.refresh(group)
      store.ring(queue)
    },
  }
}

/** Ends the hold of the group; without one, all holds of the shard. Returns how many it ended. */
function release(shard: MemoryQueue, group: string | undefined, now: number): number {
  shard.setBack.follow(now)
  if (group !== undefined) return shard.lanes.release(group, now)
  const ended = shard.heldUntil > now ? 1 : 0
  shard.heldUntil = Number.NEGATIVE_INFINITY
  return ended + shard.lanes.releaseAll(now)
}

/** An instant that is over if neither the queue nor the group is held. */
function heldUntil(shard: MemoryQueue, group: string | undefined): number {
  return group === undefined ? shard.heldUntil : Math.max(shard.heldUntil, shard.lanes.heldUntil(group))
}
