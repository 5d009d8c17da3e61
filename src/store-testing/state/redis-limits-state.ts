/**
 * The limits of a Redis store in its canonical state: the lanes of a shard, and the counts of throttles, read from the
 * keys of their scopes (`throttle-lua.ts`).
 */

import { longestCountedMs, rulesIn, ruleText, type ThrottleRule } from '../../core/queue/throttle.js'
import type { RedisClient } from '../../stores/redis/client/redis-client.js'
import { listIn, type textIn } from '../../stores/redis/client/redis-reply.js'
import { readNumber } from '../../stores/redis/format/redis-record.js'
import { scopeKeys } from '../../stores/redis/redis-keys.js'
import type { RedisQueue } from '../../stores/redis/redis-layout.js'
import { compareBytes } from '../../stores/rules/byte-order.js'
import { ownIn } from '../../stores/rules/throttle/own-rates.js'
import type { Starts } from '../../stores/rules/throttle/start-log.js'
import { type Counter, counterAtRest } from '../../stores/rules/throttle/throttle-counter.js'
import { recoveredCounter } from '../../stores/rules/throttle/throttle-recovery.js'
import { rulesOfSubject } from '../../stores/rules/throttle/throttle-subjects.js'
import { type CanonicalLanes, type CanonicalThrottle, canonicalCounter } from './canonical-state.js'

/** The keys of a shard that its lanes are in, by group. */
interface LaneKeys {
  readonly meta: ReadonlyMap<string, string>
  readonly turns: readonly string[]
  readonly shut: ReadonlyMap<string, number>
  /** With the paused groups, whose names follow a NUL. */
  readonly holds: ReadonlyMap<string, number>
}

/** Throws if `pausedGroups` does not say whether any group is paused. */
export function redisLanes({ meta, turns, shut, holds }: LaneKeys, now: number): CanonicalLanes {
  const isPause = (group: string) => group.startsWith('\0')
  const paused = [...holds.keys()].filter(isPause).map((group) => group.slice(1))
  if (meta.has('pausedGroups') !== paused.length > 0)
    throw new Error(`'pausedGroups' is wrong: ${paused.length} groups are paused`)
  const held = inLanes(new Map([...holds].filter(([group]) => !isPause(group))), now)
  return {
    turns,
    shut: inLanes(shut, now),
    held: held.filter(({ inMs }) => inMs > 0),
    paused: paused.sort(compareBytes),
  }
}

function inLanes(groups: ReadonlyMap<string, number>, now: number): CanonicalLanes['shut'] {
  return [...groups]
    .map(([group, until]) => ({ group, inMs: until - now }))
    .sort((a, b) => compareBytes(a.group, b.group))
}

export async function redisThrottleStates(
  client: RedisClient,
  namespace: string,
  queues: readonly RedisQueue[],
  now: number,
): Promise<CanonicalThrottle[]> {
  const scopes = [...new Set(queues.flatMap(({ layout }) => layout.scope ?? []))].sort(compareBytes)
  return Promise.all(
    scopes.map((scope) => {
      const names = queues.filter(({ layout }) => layout.scope === scope).map(({ name }) => name)
      return throttleState(client, scope, scopeKeys(namespace, scope), names.sort(compareBytes), now)
    }),
  )
}

async function throttleState(
  client: RedisClient,
  scope: string,
  [rulesKey, startsKey, countersKey]: readonly string[],
  queues: readonly string[],
  now: number,
): Promise<CanonicalThrottle> {
  const written = new Map(
    pairs(await client.command('HGETALL', [rulesKey!])).map(([name, value]) => [name, value.toString()]),
  )
  const number = (field: string) => (written.has(field) ? Number(written.get(field)) : undefined)
  const rules = rulesIn(written.get('rules')!)
  const [shiftMs, count, quietUntil] = [number('shift') ?? 0, number('recoveries') ?? 0, number('quietUntil') ?? 0]
  // Everything except `shift` and this is computed on a clock that never goes back.
  const at = Math.max(now, number('lastAt') ?? now) - shiftMs
  const rates = [...written]
    .flatMap(([name, text]) => (name.startsWith('rate ') ? [[name.slice(5), text] as const] : []))
    .sort(([a], [b]) => compareBytes(a, b))
  const by = written.get('by') as CanonicalThrottle['by']
  const each = written.has('eachGroup') ? rulesIn(written.get('eachGroup')!) : undefined
  const throttle = { by, rules, ...(each === undefined ? {} : { eachGroup: each }) }
  const own = new Map(rates.map(([group, text]) => [group, rulesIn(text)]))
  const recovery = { run: '', count, at: (number('recoveredAt') ?? now) - shiftMs, shiftMs: 0 }
  const starts = startsBySubject(listIn(await client.command('ZRANGE', [startsKey!, '0', '-1'])) as Buffer[])
  const counters = pairs(await client.command('HGETALL', [countersKey!])).flatMap(([group, value]) => {
    const ofGroup = rulesOfSubject(throttle, group, (name) => own.get(name))
    const seenFrom = at - longestCountedMs(ofGroup)
    const { counter, recoveries } = counterIn(value, starts.get(group) ?? [], ofGroup, number('version') ?? 0)
    const { log, grids } = recoveredCounter(counter, ofGroup, { count: recoveries, shiftMs: 0 }, recovery)
    const last = log.at(-1)
    if (last === undefined || last.at < seenFrom) return []
    return [canonicalCounter(group, { log, grids }, now - shiftMs, seenFrom)]
  })
  return {
    scope,
    by,
    rules: rules.map(ruleText),
    eachGroup: each?.map(ruleText) ?? null,
    own: ownIn(written.get('own')) ?? null,
    rates,
    queues,
    recoveries: count,
    quietInMs: quietUntil > now ? quietUntil - now : null,
    counters: counters.sort((a, b) => compareBytes(a.group, b.group)),
  }
}

/** If the rules have changed since, the grids have begun anew. */
function counterIn(
  value: Buffer,
  log: readonly Starts[],
  rules: readonly ThrottleRule[],
  version: number,
): { readonly counter: Counter; readonly recoveries: number } {
  const recoveries = value.readUInt32BE(10)
  if (value.readUInt32BE(14) !== version) return { counter: counterAtRest({ log }, rules), recoveries }
  const grids = rules.map((_, i) => {
    const slotUs = readNumber(value, 18 + 10 * i, 7)
    return { ...(slotUs === 0 ? {} : { slotUs }), credit: value.readUIntBE(25 + 10 * i, 3) }
  })
  return { counter: { log, grids }, recoveries }
}

function startsBySubject(members: readonly Buffer[]): Map<string, Starts[]> {
  const starts = new Map<string, Starts[]>()
  for (const member of members) {
    const end = member.length - 11
    const group = member.toString('utf8', 0, end)
    const one = { at: member.readUIntBE(end + 1, 6), count: member.readUInt32BE(end + 7) }
    starts.set(group, [...(starts.get(group) ?? []), one])
  }
  return starts
}

function pairs(reply: Parameters<typeof textIn>[0]): [string, Buffer][] {
  const flat = listIn(reply) as Buffer[]
  return flat.flatMap((name, i) => (i % 2 === 0 ? [[name.toString(), flat[i + 1]!]] : []))
}
