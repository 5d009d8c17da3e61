/** The events page: the events of a queue's jobs, live; the reader can stop it. It keeps the latest events. */

import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { LiveEvent } from '../../api/answers.js'
import { at } from '../../api/api-path.js'
import { openStream } from '../../api/live-stream.js'
import { SearchField, Select } from '../../parts/form-field.js'
import { PageHead } from '../../parts/page-head.js'
import { Button } from '../../parts/press-button.js'
import { Badge } from '../../parts/state-badge.js'
import { TableNotice } from '../../parts/table-notice.js'
import { query, setQuery } from '../../state/page-address.js'
import { countOf, exactCount } from '../../words/count-words.js'
import { EventLine, eventNames } from '../queue/event-line.js'
import { QueueTabs } from '../queue-tabs.js'

const choices: readonly (readonly [string, string])[] = [
  ['', 'Every event'],
  ...eventNames.filter((name) => name !== 'events.lost').map((name) => [name, name.replace('job.', '')] as const),
]

function fits({ event: { id = '', task = '', type } }: NotedEvent, text: string, only: string): boolean {
  if (type === 'events.lost') return true
  return (only === '' || type === only) && `${id} ${task}`.toLowerCase().includes(text.toLowerCase())
}

export function QueueEventsPage({ queue }: { readonly queue: string }) {
  const feed = useEventFeed(queue)
  const { events, waiting, isPaused, failure } = feed
  const text = query.value.get('q') ?? ''
  const only = query.value.get('type') ?? ''
  const shown = useMemo(() => events.value.filter((one) => fits(one, text, only)), [events.value, text, only])
  return (
    <>
      <PageHead
        title="Events"
        crumbs={[
          { text: 'Overview', href: './' },
          { text: queue, href: at`queues/${queue}` },
        ]}
        badges={isPaused.value && <Badge tone="warn">{countOf(waiting.value, 'event')} since the stop</Badge>}
        actions={
          <>
            <Button onPress={feed.clear} isDisabled={events.value.length === 0}>
              Clear
            </Button>
            <Button kind="main" onPress={() => feed.setPaused(!isPaused.value)}>
              {isPaused.value ? 'Go on' : 'Stop'}
            </Button>
          </>
        }
      />
      <QueueTabs queue={queue} open="events" />
      <div class="mb-4 flex flex-wrap items-center gap-2">
        <SearchField label="Filter events" placeholder="Job id or task  /" />
        <Select label="Type" value={only} choices={choices} onChange={(type) => setQuery({ type })} />
        <p class="text-sm text-muted">
          {exactCount(shown.length)} of the latest {exactCount(mostEvents)} at most
        </p>
      </div>
      {failure.value !== undefined && (
        <p role="alert" class="mb-3 text-bad">
          {failure.value}
        </p>
      )}
      <EventList events={shown} isFiltered={text !== '' || only !== ''} />
    </>
  )
}

interface NotedEvent {
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

const mostEvents = 500

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

/**
 * The latest events of a queue. It is drawn at most a few times a second, and can be stopped for
 * reading.
 */
function useEventFeed(queue: string): EventFeed {
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

interface ListProps {
  readonly events: readonly NotedEvent[]
  readonly isFiltered: boolean
}

/** Within this distance the list counts as being at its foot. */
const nearPx = 24

/** Events below each other, newest last. It stays at its foot unless the reader scrolls up. */
function EventList({ events, isFiltered }: ListProps) {
  const box = useRef<HTMLDivElement>(null)
  const isAtFoot = useRef(true)
  useLayoutEffect(() => {
    if (isAtFoot.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight
  }, [events])
  return (
    <div
      ref={box}
      role="log"
      aria-label="Events"
      aria-live="off"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, which needs the focus
      tabIndex={0}
      class="panel h-[calc(100dvh-16rem)] min-h-64 overflow-y-auto"
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        isAtFoot.current = scrollTop + clientHeight >= scrollHeight - nearPx
      }}
    >
      {events.length === 0 ? (
        <TableNotice>
          <p>
            {isFiltered
              ? 'No event fits the filter yet.'
              : 'Nothing has happened since you came. Events appear here as they happen.'}
          </p>
        </TableNotice>
      ) : (
        <ol class="py-1.5">
          {events.map((noted) => (
            <Line key={noted.key} event={noted.event} />
          ))}
        </ol>
      )}
    </div>
  )
}

/** An event does not change: it is drawn once. */
function Line({ event }: { readonly event: LiveEvent }) {
  return useMemo(() => <EventLine event={event} />, [event])
}
