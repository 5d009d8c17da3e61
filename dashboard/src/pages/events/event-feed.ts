/**
 * The event feed: the latest events of a queue. It is drawn at most a few times a second, and can be stopped for
 * reading.
 */

import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import type { LiveEvent } from '../../api/answers.js'
import { at } from '../../api/api-path.js'
import { openStream } from '../../api/live-stream.js'
import { eventNames } from '../queue/event-line.js'

export interface NotedEvent {
  /** Grows by one with every event. */
  readonly key: number
  readonly event: LiveEvent
}

interface EventFeed {
  /** Oldest first. */
  readonly events: ReadonlySignal<readonly NotedEvent[]>
  /** The number of events that came while it was stopped. */
  readonly waiting: ReadonlySignal<number>
  readonly isPaused: ReadonlySignal<boolean>
  /** Why the store cannot be read now. */
  readonly failure: ReadonlySignal<string | undefined>
  setPaused(isPaused: boolean): void
  clear(): void
}

export const mostEvents = 500

/** A busy queue has thousands of events a second: those within this time are drawn together. */
const drawMs = 200

/** Events that are not drawn yet; only the latest are kept. */
class Inbox {
  #events: NotedEvent[] = []
  #lastKey = 0

  add(event: LiveEvent): void {
    this.#lastKey += 1
    this.#events.push({ key: this.#lastKey, event })
    if (this.#events.length > 2 * mostEvents) this.#events = this.#events.slice(-mostEvents)
  }

  take(): readonly NotedEvent[] {
    const taken = this.#events
    this.#events = []
    return taken
  }
}

export function useEventFeed(queue: string): EventFeed {
  const events = useSignal<readonly NotedEvent[]>([])
  const waiting = useSignal(0)
  const isPaused = useSignal(false)
  const failure = useSignal<string | undefined>(undefined)
  const [inbox] = useState(() => new Inbox())
  const draw = () => {
    const taken = isPaused.value ? [] : inbox.take()
    if (taken.length > 0) events.value = [...events.value, ...taken].slice(-mostEvents)
  }
  useEffect(() => {
    const hear = (event: LiveEvent) => {
      failure.value = undefined
      inbox.add(event)
      if (isPaused.value) waiting.value += 1
    }
    const close = openStream(at`queues/${queue}/events`, {
      on: {
        ...Object.fromEntries(eventNames.map((name) => [name, hear])),
        failure: ({ message }: { readonly message: string }) => {
          failure.value = message
        },
      },
      onAgain: () => hear({ type: 'events.lost', at: new Date().toISOString() }),
    })
    const timer = setInterval(draw, drawMs)
    return () => {
      clearInterval(timer)
      close()
    }
  }, [queue])
  return {
    ...{ events, waiting, isPaused, failure },
    setPaused: (stopped) => {
      isPaused.value = stopped
      waiting.value = 0
      draw()
    },
    clear: () => {
      inbox.take()
      events.value = []
      waiting.value = 0
    },
  }
}
