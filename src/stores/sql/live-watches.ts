/**
 * The watches of live messages of a SQL store. A watcher has an entry in the store, which it renews every few seconds, and
 * reads messages there when it is rung, or when its ear thinks that it should look.
 */

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasCode } from '../../core/errors.js'
import type { LiveMessages } from '../contract/live-messages.js'
import type { ReadMessages } from './sql-live.js'

/** How often a watch is renewed, and how long it holds without that: a process that was killed no longer watches. */
const renewMs = 5_000
const holdsMs = 15_000
/** The pause after a failure. The store itself waits far longer for a lock or a connection. */
const retryMs = 500

/** Hears that there may be messages. */
interface LiveEar {
  /** From when it resolves, nothing is missed until the next `heard` has resolved. */
  attend(): Promise<void>
  /** Resolves when there may be messages, after `forMs`, or when aborted. */
  heard(forMs: number, over: AbortSignal): Promise<unknown>
  stop(): void
}

/** What a store does for live messages: see `sql-live`. */
interface LiveCalls {
  isWatched(queue: string): Promise<boolean>
  publishLive(queue: string, message: string): Promise<boolean>
  readLive(queue: string, after: number): Promise<ReadMessages>
  watchLive(
    queue: string,
    watcher: string,
    forMs: number,
  ): Promise<{ readonly last: number; readonly isRenewed: boolean }>
  unwatchLive(queue: string, watcher: string): Promise<void>
  listen(over: AbortSignal): Promise<LiveEar>
  /** Throws `ClosedError` if the store is closed. */
  refuseClosed(): void
}

interface Watch {
  readonly queue: string
  readonly watcher: string
  readonly heard: (message: string | undefined) => void
  readonly over: AbortSignal
  readonly ear: LiveEar
  last: number
  renewedAt: number
}

/** `closing` aborts when the store is closed. */
export function liveMessages(calls: LiveCalls, closing: AbortSignal): LiveMessages {
  async function follow(watch: Watch): Promise<void> {
    const { queue, heard, over, ear } = watch
    while (!over.aborted) {
      const leftMs = watch.renewedAt + renewMs - performance.now()
      try {
        if (leftMs <= 0) await renew(watch)
        await ear.attend()
        const { messages, last, isGap, more } = await calls.readLive(queue, watch.last)
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
    ear.stop()
  }

  async function renew(watch: Watch): Promise<void> {
    const { last, isRenewed } = await calls.watchLive(watch.queue, watch.watcher, holdsMs)
    watch.renewedAt = performance.now()
    // The store was made anew.
    if (last < watch.last) watch.last = last
    // This process stood still for too long.
    if (!isRenewed && !watch.over.aborted) watch.heard(undefined)
  }

  return {
    async publish(queue, message) {
      if (message === undefined) return calls.isWatched(queue)
      return (await calls.isWatched(queue)) && calls.publishLive(queue, message)
    },

    async watch(queue, heard, signal) {
      calls.refuseClosed()
      const over = AbortSignal.any([signal, closing])
      const watcher = randomUUID()
      const ear = await calls.listen(over)
      try {
        const { last } = await calls.watchLive(queue, watcher, holdsMs)
        const watch = { queue, watcher, heard, over, ear, last, renewedAt: performance.now() }
        // At once, so that a store that is being closed still makes this call.
        over.addEventListener('abort', () => void calls.unwatchLive(queue, watcher).catch(() => {}))
        void follow(watch)
      } catch (error) {
        ear.stop()
        throw error
      }
    },
  }
}
