/** The event list: events below each other, the newest at the foot, to which it keeps unless somebody reads further up. */

import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import type { LiveEvent } from '../../api/answers.js'
import { at } from '../../api/api-path.js'
import { Name } from '../../parts/name-text.js'
import { Badge } from '../../parts/state-badge.js'
import { TableNotice } from '../../parts/table-notice.js'
import { countOf } from '../../words/count-words.js'
import { secondWords } from '../../words/moment-words.js'
import { safeText, shortText } from '../../words/safe-text.js'
import type { NotedEvent } from './event-feed.js'
import { detailsOf, eventWords } from './event-words.js'

interface ListProps {
  readonly queue: string
  readonly events: readonly NotedEvent[]
  readonly isFiltered: boolean
}

/** So near to the foot is at it. */
const nearPx = 24

export function EventList({ queue, events, isFiltered }: ListProps) {
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
        <ol class="divide-y divide-line">
          {events.map((noted) => (
            <EventLine key={noted.key} queue={queue} noted={noted} />
          ))}
        </ol>
      )}
    </div>
  )
}

interface LineProps {
  readonly queue: string
  readonly noted: NotedEvent
}

/** An event does not change: it is drawn once. */
function EventLine({ queue, noted }: LineProps) {
  return useMemo(() => eventLine(queue, noted.event), [queue, noted])
}

function eventLine(queue: string, event: LiveEvent) {
  const { type, id, task } = event
  const { word, sign, tone } = eventWords[type] ?? { word: type, sign: '·', tone: 'plain' as const }
  const details = safeText(detailsOf(event))
  if (type === 'events.lost')
    return (
      <li class="bg-warn-wash px-3.5 py-1.5 text-sm text-warn">
        {event.count === undefined ? 'Some events' : countOf(event.count, 'event')} are missing here.
      </li>
    )
  return (
    <li
      data-row
      tabIndex={-1}
      class="relative grid grid-cols-[4.5rem_6.5rem_minmax(0,1fr)] items-baseline gap-x-3 px-3.5 py-1.5 hover:bg-sunk focus-visible:-outline-offset-2 lg:grid-cols-[4.5rem_6.5rem_minmax(0,1fr)_minmax(0,1fr)_minmax(0,2fr)]"
    >
      <time dateTime={event.at} class="text-sm text-muted">
        {secondWords(Date.parse(event.at))}
      </time>
      <span>
        <Badge tone={tone} sign={sign}>
          {word}
        </Badge>
      </span>
      <a class="row-link truncate" href={at`queues/${queue}/jobs/${id ?? ''}`}>
        <Name text={id ?? ''} isId />
      </a>
      <span class="col-start-3 truncate lg:col-start-auto">
        <Name text={task ?? ''} />
      </span>
      <span class="col-start-3 truncate text-sm text-muted lg:col-start-auto" title={details}>
        {shortText(details, 160)}
      </span>
    </li>
  )
}
