/** The throttles of a Redis store: their counts and their rules. */

import { InvalidArgumentError } from '../../../core/errors.js'
import { ruleText } from '../../../core/queue/throttle.js'
import type { Throttles } from '../../contract/throttles.js'
import type { RedisClient } from '../client/redis-client.js'
import { listIn, numberIn } from '../client/redis-reply.js'
import { liveShards } from '../layout/redis-layout.js'
import { queueStateScripts } from '../shards/queue-state-script.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { holdScripts } from '../throttle/hold-script.js'
import { scopeScript } from '../throttle/scope-script.js'

export function redisThrottles(client: RedisClient, queues: RedisQueues): Throttles {
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
      const [, , hits, forMs, quietForMs, groups] = listIn(reply)
      const counted = listIn(hits).map(numberIn)
      return {
        throttle,
        queues: known.queues,
        hits: counted.length === 0 ? throttle.rules.map(() => 0) : counted,
        forMs: Math.max(...[forMs, ...held].map(numberIn)),
        quietForMs: numberIn(quietForMs),
        ...(groups === -1 ? {} : { groups: numberIn(groups) }),
      }
    },

    async set(queue, rules) {
      const [found] = await queues.findLimits([queue])
      const { scope } = found!.layout
      const isSet =
        scope !== undefined &&
        (await client.run(scopeScript, (await queues.scopes.of(scope)).keys, [
          'set',
          rules.map(ruleText).join(' '),
        ])) === 1
      if (!isSet)
        throw new InvalidArgumentError(
          `queue '${queue}' has no throttle whose rules could be set; give it one by \`throttle\` in its options first.`,
        )
      queues.scopes.forget(scope)
      const { queues: members } = await queues.scopes.of(scope)
      await queues.following(async () => {
        const shards = (await queues.findNow(members)).flatMap(liveShards)
        await Promise.all(shards.map((shard) => queues.run(shard, queueStateScripts, ['reopen'])))
      })
    },
  }
}
