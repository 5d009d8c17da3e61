/** The event list: events below each other, newest last. It stays at its foot unless the reader scrolls up. */

import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import type { LiveEvent } from '../../api/answers.js'
import { TableNotice } from '../../parts/table-notice.js'
import { EventLine } from '../queue/event-line.js'
import type { NotedEvent } from './event-feed.js'

interface ListProps {
  readonly events: readonly NotedEvent[]
  readonly isFiltered: boolean
}

/** Within this distance the list counts as being at its foot. */
const nearPx = 24

export function EventList({ events, isFiltered }: ListProps) {
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
              : 'Nothing has happened since you came. Events stand here as they happen.'}
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
