/** The throttles of a Redis store: their counts and their rules, holds, and pauses of groups. */

import { rulesIn, ruleText } from '../../../core/queue/throttle.js'
import type { StoredHold, StoredHolds, Throttles } from '../../contract/throttles.js'
import { compareBytes } from '../../rules/byte-order.js'
import { refuseRates } from '../../rules/throttle/own-rates.js'
import { changedBy } from '../../rules/throttle/throttle-subjects.js'
import type { RedisClient, RedisReply } from '../client/redis-client.js'
import { listIn, numberIn, textIn } from '../client/redis-reply.js'
import { readerPair } from '../lua/script-kinds.js'
import { isSetBack } from '../lua/set-back-lua.js'
import { liveShards } from '../redis-layout.js'
import { queueStateScripts } from '../shards/queue-state-script.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { scopeScript } from '../shards/redis-scopes.js'

export function redisThrottles(client: RedisClient, queues: RedisQueues): Throttles {
  const everywhere = (name: string, args: readonly string[]) => queues.runEverywhere(name, queueStateScripts, args)

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
      const field = changedBy(queue, throttle, by) === throttle!.by ? 'rules' : 'eachGroup'
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

/** The instant from which holds are counted: what the next script that writes does first. */
const countedFrom = `
local seen, from = call('HGET', META, 'seenAt'), now
if ${isSetBack('seen')} then from = tonumber(seen) end
`

/**
 * KEYS: those of one shard. ARGV: whether a group is asked for (1 or 0), the group.
 * Returns the ms for which a hold of the queue, or of the group, lets no job start; 0 if none does.
 */
const holdLua = `${countedFrom}
local until_at = limits().held
if ARGV[1] == '1' then until_at = math.max(until_at, lanes.held_until(ARGV[2])) end
return math.max(0, until_at - from)
`

/**
 * KEYS: those of one shard. ARGV: the most groups of each kind to return, or 'of' and the groups that are asked for.
 * Returns { ms for which the shard is held, or 0; how many groups are paused; how many are held; some of the paused
 * ones; some of the held ones, each with its ms }.
 */
const holdListLua = `${countedFrom}
local whole, paused, held = math.max(0, limits().held - from), {}, {}
if ARGV[1] == 'of' then
  for i = 2, #ARGV do
    local left = lanes.held_until(ARGV[i]) - from
    if call('ZSCORE', HOLDS, '\\0' .. ARGV[i]) then paused[#paused + 1] = ARGV[i] end
    if left > 0 then
      held[#held + 1] = ARGV[i]
      held[#held + 1] = left
    end
  end
  return { whole, #paused, #held / 2, paused, held }
end
for _, member in ipairs(call('ZRANGE', HOLDS, '+inf', '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[1])) do paused[#paused + 1] = sub(member, 2) end
local found = call('ZRANGE', HOLDS, '(' .. from, '(+inf', 'BYSCORE', 'LIMIT', 0, ARGV[1], 'WITHSCORES')
for i = 1, #found, 2 do
  held[i] = found[i]
  held[i + 1] = found[i + 1] - from
end
return { whole, call('ZCOUNT', HOLDS, '+inf', '+inf'), call('ZCOUNT', HOLDS, '(' .. from, '(+inf'), paused, held }
`

/** The hold scripts: how long a shard is held back, and what holds it and its groups. */
const holdScripts = readerPair('hold', holdLua)
const holdListScripts = readerPair('hold-list', holdListLua)
