/** The throttles of a Redis store: their counts and their rules, holds, and pauses of groups. */

import { InvalidArgumentError } from '../../../core/errors.js'
import { rulesIn, ruleText } from '../../../core/queue/throttle.js'
import type { StoredHold, StoredHolds, Throttles } from '../../contract/throttles.js'
import { compareBytes } from '../../rules/byte-order.js'
import { refuseRates } from '../../rules/throttle/own-rates.js'
import { changedBy } from '../../rules/throttle/throttle-subjects.js'
import type { RedisClient, RedisReply } from '../client/redis-client.js'
import { listIn, numberIn, textIn } from '../client/redis-reply.js'
import { liveShards } from '../layout/redis-layout.js'
import { queueStateScripts } from '../shards/queue-state-script.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { holdListScripts, holdScripts } from '../throttle/hold-script.js'
import { scopeScript } from '../throttle/scope-script.js'

export function redisThrottles(client: RedisClient, queues: RedisQueues): Throttles {
  /** Asks all shards of the queue. */
  async function everywhere(name: string, args: readonly string[]): Promise<RedisReply[]> {
    return queues.following(async () => {
      const [queue] = await queues.findNow([name])
      return Promise.all(liveShards(queue!).map((shard) => queues.run(shard, queueStateScripts, args)))
    })
  }

  /** Opens what the throttle has shut in all queues of the scope, or this one group. */
  async function reopen(scope: string, group: readonly string[]): Promise<void> {
    queues.scopes.forget(scope)
    const { queues: members } = await queues.scopes.of(scope)
    await queues.following(async () => {
      const shards = (await queues.findNow(members)).flatMap(liveShards)
      await Promise.all(shards.map((shard) => queues.run(shard, queueStateScripts, ['reopen', ...group])))
    })
  }

  return {
    async state(queue, group) {
      const [found] = await queues.findLimits([queue])
      const scope = found?.layout.scope
      if (found === undefined || scope === undefined) return undefined
      queues.scopes.forget(scope)
      const throttle = await queues.scopes.throttle(scope)
      if (throttle === undefined) return undefined
      const known = await queues.scopes.of(scope)
      const subject = [group === undefined ? '0' : '1', group ?? '']
      const [reply, ...held] = await Promise.all([
        client.run(scopeScript, known.keys, ['state', ...subject]),
        ...liveShards(found).map((shard) => queues.run(shard, holdScripts, subject)),
      ])
      if (reply === null) return undefined
      const [, , hits, forMs, quietForMs, groups, rate, groupHits] = listIn(reply)
      const counted = listIn(hits).map(numberIn)
      return {
        throttle,
        queues: known.queues,
        ...(rate == null ? {} : { rate: rulesIn(textIn(rate)) }),
        hits: counted.length === 0 ? throttle.rules.map(() => 0) : counted,
        ...(throttle.by === 'queue' && throttle.eachGroup !== undefined && group !== undefined
          ? { groupHits: listIn(groupHits).map(numberIn) }
          : {}),
        forMs: Math.max(...[forMs, ...held].map(numberIn)),
        quietForMs: numberIn(quietForMs),
        ...(groups === -1 ? {} : { groups: numberIn(groups) }),
      }
    },

    async set(queue, rules, by) {
      const [found] = await queues.findLimits([queue])
      const { scope } = found!.layout
      const throttle = scope === undefined ? undefined : await queues.scopes.throttle(scope)
      if (throttle === undefined)
        throw new InvalidArgumentError(
          `queue '${queue}' has no throttle whose rules could be set; give it one by \`throttle\` in its options first.`,
        )
      const field = changedBy(queue, throttle, by) === throttle.by ? 'rules' : 'eachGroup'
      const args = ['set', field, rules.map(ruleText).join(' ')]
      await client.run(scopeScript, (await queues.scopes.of(scope!)).keys, args)
      await reopen(scope!, [])
    },

    async setRate(queue, group, rules) {
      const [found] = await queues.findLimits([queue])
      const { scope } = found!.layout
      const throttle = scope === undefined ? undefined : await queues.scopes.throttle(scope)
      refuseRates(queue, throttle)
      const args = ['rate', group, (rules ?? []).map(ruleText).join(' ')]
      await client.run(scopeScript, (await queues.scopes.of(scope!)).keys, args)
      await reopen(scope!, [group])
    },

    async rates(queue, limit) {
      const [found] = await queues.findLimits([queue])
      const { scope } = found!.layout
      const all = scope === undefined ? [] : await queues.scopes.rates(scope)
      return { rates: all.slice(0, limit), total: all.length }
    },

    async holds(queue, { groups, limit }) {
      const asked = groups === undefined ? [String(limit)] : ['of', ...new Set(groups)]
      // All shards are held alike.
      const reply = await queues.following(async () => {
        const [found] = await queues.findNow([queue])
        return queues.run(liveShards(found!)[0]!, holdListScripts, asked)
      })
      return holdsIn(reply, limit)
    },

    release: async (queue, group) =>
      Math.max(...(await everywhere(queue, ['release', ...(group === undefined ? [] : [group])])).map(numberIn)),

    async pause(queue, group) {
      await everywhere(queue, ['pause-group', group])
    },

    async resume(queue, group) {
      await everywhere(queue, ['resume-group', group])
    },
  }
}

function holdsIn(reply: RedisReply, limit: number): StoredHolds {
  const [whole, pausedCount, heldCount, paused, held] = listIn(reply)
  const forMs = numberIn(whole)
  const flat = listIn(held)
  const ofGroups = flat.flatMap((group, i) =>
    i % 2 === 0 ? [{ group: textIn(group), forMs: numberIn(flat[i + 1]) }] : [],
  )
  const holds: StoredHold[] = [
    ...(forMs > 0 ? [{ forMs }] : []),
    ...listIn(paused)
      .map(textIn)
      .sort(compareBytes)
      .map((group) => ({ group })),
    ...ofGroups.sort((a, b) => a.forMs - b.forMs || compareBytes(a.group, b.group)),
  ]
  return {
    holds: holds.slice(0, limit),
    total: (forMs > 0 ? 1 : 0) + numberIn(pausedCount) + numberIn(heldCount),
  }
}
