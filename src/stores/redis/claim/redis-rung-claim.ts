/**
 * The rung claim: a claim that is sent together with a wait, and made by the server when the wait ends. Only on plain
 * queues of one shard without limits, because a single script call must do for the whole claim.
 */

import type { Claimed, Claimer, ClaimFrom, Rung } from '../../contract/claim.js'
import type { RedisReply, RedisScriptCall } from '../client/redis-client.js'
import { refuseLongWorker } from '../format/redis-job.js'
import type { RedisIdleCache } from '../redis-idle-cache.js'
import type { RedisQueue, RedisShard } from '../redis-layout.js'
import type { RedisWait } from '../redis-wait.js'
import type { DamagedShards } from '../shards/redis-damage.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { claimArgs, claimReplyIn, claimScripts, nothingBefore, tellingIn } from './redis-claim-call.js'

export class RedisRungClaim {
  readonly #queues: RedisQueues
  readonly #wait: RedisWait
  readonly #idle: RedisIdleCache
  readonly #damage: DamagedShards
  readonly #mostBytes: number

  constructor(queues: RedisQueues, wait: RedisWait, idle: RedisIdleCache, damage: DamagedShards, mostBytes: number) {
    this.#queues = queues
    this.#wait = wait
    this.#idle = idle
    this.#damage = damage
    this.#mostBytes = mostBytes
  }

  /** See `Store.claimWhenRung`. Without the claim if that cannot go along. */
  async whenRung(from: readonly ClaimFrom[], by: Claimer, forMs: number, signal: AbortSignal): Promise<Rung> {
    refuseLongWorker(by.worker)
    const names = from.map(({ queue }) => queue)
    const shards = by.alone || by.heads ? undefined : this.#simple(await this.#queues.find(names))
    const claim = shards && this.#callOf(shards, from, by)
    const { rung, reply } = await this.#wait.claiming(names, claim, forMs, signal)
    if (reply === undefined) return { rung }
    const claimed = this.#answerIn(reply, shards!, by)
    for (const shard of tellingIn(shards!, reply)) await this.#queues.reports.deliver(shard)
    return { rung, claimed }
  }

  /** The shards of these queues, one of each; undefined if one of them is not simple. */
  #simple(queues: readonly RedisQueue[]): RedisShard[] | undefined {
    const isSimple = ({ layout: { kind, scope, isBounded }, shards }: RedisQueue) =>
      kind === 'plain' &&
      scope === undefined &&
      !isBounded &&
      shards.length === 1 &&
      !this.#damage.isDoubtful(shards[0]!)
    return queues.length > 0 && queues.every(isSimple) ? queues.map((queue) => queue.shards[0]!) : undefined
  }

  #callOf(shards: readonly RedisShard[], from: readonly ClaimFrom[], by: Claimer): RedisScriptCall {
    const asks = from.map(({ limit, leaseMs = by.leaseMs, weights }, i) => ({
      shard: shards[i]!,
      limit,
      leaseMs,
      weights,
    }))
    return {
      script: claimScripts.plain(false),
      keys: shards.flatMap(({ keys }) => keys),
      args: claimArgs(asks, nothingBefore, by, this.#mostBytes),
    }
  }

  #answerIn(reply: RedisReply, shards: readonly RedisShard[], by: Claimer): Claimed {
    const { now, claims, crashed, buried, expired, waits, more } = claimReplyIn(shards, reply)
    const [first] = claims
    const answer: Claimed = {
      ...{ now, claims, crashed, buried, waits, more },
      ...(first === undefined ? {} : { queue: first.queue }),
      ...(expired.length === 0 ? {} : { expired }),
    }
    this.#damage.answered(shards)
    this.#idle.answered(
      shards.map(({ queue }) => ({ queue })),
      by.worker,
      answer,
    )
    return answer
  }
}
