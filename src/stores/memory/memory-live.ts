/** Live messages of the memory store: all watchers are in this process. */

import type { LiveMessages } from '../contract/live-messages.js'

type MessageEar = (message: string | undefined) => void

/** The watchers of each queue, from all handles. */
export type MemoryWatchers = Map<string, Set<MessageEar>>

/** `closing`: aborts when the handle closes. `refuseClosed` throws `ClosedError`. */
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
      // One function may watch twice: each watch is separate.
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
