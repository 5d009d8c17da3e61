/**
 * Live messages of a Redis store: published on a channel of the queue, without any key. The server counts the listeners
 * and returns their number when a message is published, so that listeners need not renew anything.
 */

import { longestTimerMs } from '../../../core/platform/timer.js'
import type { LiveMessages } from '../../contract/live-messages.js'
import type { RedisClient } from '../client/redis-client.js'
import { numberIn } from '../client/redis-reply.js'
import { liveChannel } from '../layout/redis-keys.js'

/** `closing`: aborts when the store closes. `refuseClosed` throws `ClosedError`. */
export function redisLive(
  client: RedisClient,
  namespace: string,
  closing: AbortSignal,
  refuseClosed: () => void,
): LiveMessages {
  return {
    async publish(queue, message = '') {
      refuseClosed()
      const command = client.isCluster ? 'SPUBLISH' : 'PUBLISH'
      return numberIn(await client.command(command, [liveChannel(namespace, queue), message])) > 0
    },

    async watch(queue, heard, signal) {
      refuseClosed()
      const over = AbortSignal.any([signal, closing])
      // An empty message only counts listeners.
      const stop = await client.listen(liveChannel(namespace, queue), (message) => {
        if (message !== '' && !over.aborted) heard(message)
      })
      if (over.aborted) return stop()
      // The watch keeps the process alive, because an idle socket does not.
      const alive = setInterval(() => {}, longestTimerMs)
      over.addEventListener('abort', () => {
        clearInterval(alive)
        stop()
      })
    },
  }
}
