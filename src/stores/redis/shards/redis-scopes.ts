/** The scopes of throttles as a handle of a Redis store knows them: their keys, their rules and their shards. */

import { StoreCorruptError } from '../../../core/errors.js'
import { isRulesText, rulesIn, ruleText, type Throttle } from '../../../core/queue/throttle.js'
import type { GroupRate } from '../../contract/throttles.js'
import { compareBytes } from '../../rules/byte-order.js'
import { ownIn } from '../../rules/throttle/own-rates.js'
import type { RedisClient, RedisReply } from '../client/redis-client.js'
import { listIn, rowsIn, textIn } from '../client/redis-reply.js'
import { redisScript } from '../client/redis-script.js'
import { throttle } from '../lua/throttle-lua.js'
import { keyIn, queuesKey, scopeKeys } from '../redis-keys.js'
import { layoutIn, liveShards, queueIn, type RedisShard } from '../redis-layout.js'

interface RedisScope {
  readonly keys: readonly string[]
  /** The names of its queues, sorted. */
  readonly queues: readonly string[]
  /** All shards of these queues. */
  readonly shards: readonly RedisShard[]
  /** The number of changes to its members, as the scope counts them. */
  readonly version: string
}

/** Before the name of a group, the field with its own rules. */
const ratePrefix = 'rate '

/** The keys of a shard that show whether it has a job to start. A gate gets these keys of each member. */
export function memberKeys({ keys }: RedisShard): string[] {
  return (['meta', 'ready-list', 'ready', 'lanes'] as const).map((name) => keyIn(keys, name))
}

export class RedisScopes {
  readonly #client: RedisClient
  readonly #namespace: string
  readonly #known = new Map<string, Promise<RedisScope>>()

  constructor(client: RedisClient, namespace: string) {
    this.#client = client
    this.#namespace = namespace
  }

  /** The scope as it was at the last look. */
  of(scope: string): Promise<RedisScope> {
    let known = this.#known.get(scope)
    if (known === undefined) {
      known = this.#look(scope)
      this.#known.set(scope, known)
      known.catch(() => this.#known.delete(scope))
    }
    return known
  }

  /** Forgets what is known of the scope, because its members have changed. */
  forget(scope: string): void {
    this.#known.delete(scope)
  }

  /** The stored throttle; undefined if there is none. Throws `StoreCorruptError` if it cannot be read. */
  async throttle(scope: string): Promise<Throttle | undefined> {
    const fields = ['by', 'rules', 'eachGroup', 'own']
    const [by, rules, each, sum] = listIn(await this.#client.command('HMGET', [this.#keys(scope)[0]!, ...fields]))
    if (by == null || rules == null) return undefined
    const own = sum == null ? undefined : ownIn(textIn(sum))
    return { ...this.#throttleOf(scope, by, rules, each), ...(own === undefined ? {} : { own }) }
  }

  /** The groups that have rules of their own, by name. */
  async rates(scope: string): Promise<GroupRate[]> {
    const fields = rowsIn(await this.#client.command('HGETALL', [this.#keys(scope)[0]!]), 2)
    return fields
      .map(([name, rules]) => [textIn(name), textIn(rules)] as const)
      .filter(([name]) => name.startsWith(ratePrefix))
      .map(([name, rules]) => ({ group: name.slice(ratePrefix.length), rules: rulesIn(rules) }))
      .sort((a, b) => compareBytes(a.group, b.group))
  }

  /** Makes the queue a member, and stores this throttle if the scope has none. Returns the stored throttle. */
  async join(queue: string, { scope, by, rules, eachGroup }: Throttle): Promise<Throttle> {
    const each = eachGroup === undefined ? [] : [eachGroup.map(ruleText).join(' ')]
    const args = ['join', by, rules.map(ruleText).join(' '), queue, ...each]
    const [storedBy, stored, storedEach] = listIn(await this.#client.run(scopeScript, this.#keys(scope), args))
    this.forget(scope)
    return this.#throttleOf(scope, storedBy, stored, storedEach)
  }

  /** Records that one of its queues has moved to other shards. */
  async moved(scope: string): Promise<void> {
    await this.#client.run(scopeScript, this.#keys(scope), ['moved'])
    this.forget(scope)
  }

  #keys(scope: string): string[] {
    return scopeKeys(this.#namespace, scope)
  }

  #throttleOf(scope: string, ...stored: readonly (RedisReply | undefined)[]): Throttle {
    const [by, text, each] = stored.map((one) => (one == null ? undefined : textIn(one)))
    if ((by !== 'queue' && by !== 'group') || !isRulesText(text ?? '') || !isRulesText(each ?? text!))
      throw this.#damaged(scope, `holds no rules of a throttle ('by' is '${by}', 'rules' is '${text}')`)
    return { scope, by, rules: rulesIn(text!), ...(each === undefined ? {} : { eachGroup: rulesIn(each) }) }
  }

  #damaged(scope: string, how: string): StoreCorruptError {
    return new StoreCorruptError(
      `the throttle '${scope}' is damaged: '${this.#keys(scope)[0]}' ${how}. Its queues stand still. Stop their workers, ` +
        'delete that key, and start them anew: they write the throttle down as they are configured.',
    )
  }

  /**
   * Reads the version first, so that a change during the look makes it out of date. Throws `StoreCorruptError` if there
   * is no throttle.
   */
  async #look(scope: string): Promise<RedisScope> {
    const keys = this.#keys(scope)
    const [version, rules] = listIn(await this.#client.command('HMGET', [keys[0]!, 'members', 'rules']))
    if (version == null || rules == null) throw this.#damaged(scope, 'is not there, or not whole')
    const rows = rowsIn(await this.#client.command('HGETALL', [queuesKey(this.#namespace)]), 2)
    const queues = rows.flatMap(([name, text]) => {
      const layout = layoutIn(textIn(text))
      return layout?.scope === scope ? [queueIn(this.#namespace, textIn(name), layout)] : []
    })
    return {
      keys,
      queues: queues.map(({ name }) => name).sort(),
      shards: queues.flatMap(liveShards),
      version: textIn(version),
    }
  }
}

/**
 * KEYS: those of one scope.
 * ARGV: verb, and its arguments:
 * join: by, rules, queue, and the rules of each group if there are some besides. Makes the queue a member, and stores the
 * throttle if there is none. Returns { by, rules, rules of each group } as stored.
 * moved: a member has moved to other shards. Returns 1.
 * set: field, rules. Gives the throttle these rules in that field. Returns 1, or 0 if it has no such field.
 * rate: group, rules. Gives the group these rules; '' for none of its own. Returns 1, or 0 if there is no throttle, or
 * one that does not count by group.
 * state: whether a group is given (1 or 0), group. Returns { by, rules, hits, forMs, quietForMs, groups or -1, the rules
 * that the group has for itself or false, the hits of the group if there are hits of all }, or nothing if there is no
 * throttle. Without anything to count hits are empty, and forMs is the wait of all groups.
 */
const scopeLua = `
local verb = ARGV[1]
if verb == 'join' then
  if call('HEXISTS', RULES, 'rules') == 0 then call('HSET', RULES, 'by', ARGV[2], 'rules', ARGV[3], 'version', 1, unpack(ARGV[5] and { 'eachGroup', ARGV[5] } or {})) end
  if call('HSETNX', RULES, 'queue ' .. ARGV[4], 1) == 1 then call('HINCRBY', RULES, 'members', 1) end
  return call('HMGET', RULES, 'by', 'rules', 'eachGroup')
end
if verb == 'moved' then return call('HINCRBY', RULES, 'members', 1) and 1 end
if call('HEXISTS', RULES, 'rules') == 0 then return verb ~= 'state' and 0 or false end
if verb == 'set' then
  if call('HEXISTS', RULES, ARGV[2]) == 0 then return 0 end
  throttle_set(ARGV[2], ARGV[3])
  return 1
end
if verb == 'rate' then
  if call('HGET', RULES, 'by') ~= 'group' and call('HEXISTS', RULES, 'eachGroup') == 0 then return 0 end
  throttle_rate(ARGV[2], ARGV[3])
  return 1
end
throttle_read()
local known = call('HMGET', RULES, 'by', 'rules')
local group = BY_GROUP and ARGV[2] == '1' and ARGV[3]
local subject = group and throttle_subject(group)
local quiet = throttle_quiet(subject)
local hits, group_hits, for_ms = {}, {}, quiet
if known[1] == 'queue' then hits, for_ms = throttle_hits(''), math.max(for_ms, throttle_wait('')) end
if subject then group_hits, for_ms = throttle_hits(subject), math.max(for_ms, throttle_wait(subject)) end
if known[1] == 'group' then hits, group_hits = group_hits, {} end
return { known[1], known[2], hits, for_ms, quiet, BY_GROUP and throttle_groups() or -1, group and throttle_rate_of(group), group_hits }
`

const scopeStart = `
local call, pack, unpackn = redis.call, struct.pack, struct.unpack
local RULES, STARTS, COUNTERS, IDLE = unpack(KEYS)
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function many(command, key, args)
  for i = 1, #args, 1000 do call(command, key, unpack(args, i, math.min(i + 999, #args))) end
end
`

/** The scope script: changes and reads what a throttle stores, apart from its gate. */
export const scopeScript = redisScript('scope', scopeStart + throttle + scopeLua, { whenFull: true })
