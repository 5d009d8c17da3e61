/**
 * Live messages of a SQLite store. A watcher has an entry in the file, which it renews every few seconds. It reads
 * messages there when it is rung, or when the bell's regular look finds that another connection has committed.
 */

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasCode } from '../../core/error-codes.js'
import type { LiveMessages } from '../contract/live-messages.js'
import { Ringing, type SqliteWait } from './sqlite-wait.js'
import type { SqliteThreadClient } from './thread/sqlite-thread-client.js'

/** How often a watch is renewed, and how long it holds without that: a process that was killed no longer watches. */
const renewMs = 5_000
const holdsMs = 15_000
/** The pause after a failure. The store itself waits far longer for a lock. */
const retryMs = 500

interface Watch {
  readonly queue: string
  readonly watcher: string
  readonly heard: (message: string | undefined) => void
  readonly over: AbortSignal
  readonly ear: Ringing
  last: number
  renewedAt: number
}

export function sqliteLive(inbox: SqliteThreadClient, wait: SqliteWait, closing: AbortSignal): LiveMessages {
  async function follow(watch: Watch, stop: () => void): Promise<void> {
    const { queue, heard, over, ear } = watch
    while (!over.aborted) {
      const leftMs = watch.renewedAt + renewMs - performance.now()
      try {
        if (leftMs <= 0) await renew(watch)
        const { messages, last, isGap, more } = await inbox.call('readLive', queue, watch.last)
        watch.last = last
        if (over.aborted) break
        if (isGap) heard(undefined)
        for (const message of messages) heard(message)
        if (!more) await ear.heard(Math.min(renewMs, Math.max(1, leftMs)), over)
      } catch (error) {
        if (hasCode(error, 'closed')) break
        heard(undefined)
        await sleep(retryMs, undefined, { signal: over }).catch(() => {})
      }
    }
    stop()
  }

  async function renew(watch: Watch): Promise<void> {
    const { last, isRenewed } = await inbox.call('watchLive', watch.queue, watch.watcher, holdsMs)
    watch.renewedAt = performance.now()
    // Another file is at the path now.
    if (last < watch.last) watch.last = last
    // This process stood still for too long.
    if (!isRenewed && !watch.over.aborted) watch.heard(undefined)
  }

  return {
    async publish(queue, message) {
      if (message === undefined) return inbox.call('isWatched', queue)
      return (await inbox.call('isWatched', queue)) && inbox.call('publishLive', queue, message)
    },

    async watch(queue, heard, signal) {
      inbox.refuseClosed()
      const over = AbortSignal.any([signal, closing])
      const ear = new Ringing()
      const watcher = randomUUID()
      const stop = await wait.listenForMessages(() => ear.ring())
      try {
        const { last } = await inbox.call('watchLive', queue, watcher, holdsMs)
        const watch = { queue, watcher, heard, over, ear, last, renewedAt: performance.now() }
        // At once, so that a store that is being closed still makes this call.
        over.addEventListener('abort', () => void inbox.call('unwatchLive', queue, watcher).catch(() => {}))
        void follow(watch, stop)
      } catch (error) {
        stop()
        throw error
      }
    },
  }
}
