/** Live messages of the memory store: all who watch are in this process. */

import type { LiveMessages } from '../contract/live-messages.js'

type MessageEar = (message: string | undefined) => void

/** Who watches each queue, of whatever handle. */
export type MemoryWatchers = Map<string, Set<MessageEar>>

/** `closing`: of the handle. `refuseClosed` throws `ClosedError`. */
export function memoryLive(watchers: MemoryWatchers, closing: AbortSignal, refuseClosed: () => void): LiveMessages {
  return {
    async publish(queue, message) {
      refuseClosed()
      const heard = [...(watchers.get(queue) ?? [])]
      if (message !== undefined) for (const hear of heard) hear(message)
      return heard.length > 0
    },

    async watch(queue, heard, signal) {
      refuseClosed()
      if (signal.aborted) return
      // One function may watch twice: each time is one of its own.
      const ear: MessageEar = (message) => heard(message)
      const ears = watchers.get(queue) ?? new Set()
      watchers.set(queue, ears.add(ear))
      const over = AbortSignal.any([signal, closing])
      over.addEventListener('abort', () => {
        ears.delete(ear)
        if (ears.size === 0 && watchers.get(queue) === ears) watchers.delete(queue)
      })
    },
  }
}
