/** The scopes of throttles as a handle of a Redis store knows them: their keys, their rules and their shards. */

import { StoreCorruptError } from '../../../core/errors.js'
import { isRulesText, rulesIn, ruleText, type Throttle } from '../../../core/queue/throttle.js'
import type { GroupRate } from '../../contract/throttles.js'
import { compareBytes } from '../../rules/byte-order.js'
import { ownIn } from '../../rules/throttle/own-rates.js'
import type { RedisClient, RedisReply } from '../client/redis-client.js'
import { listIn, rowsIn, textIn } from '../client/redis-reply.js'
import { keyIn, queuesKey, scopeKeys } from '../layout/redis-keys.js'
import { layoutIn, liveShards, queueIn, type RedisShard } from '../layout/redis-layout.js'
import { scopeScript } from './scope-script.js'

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
