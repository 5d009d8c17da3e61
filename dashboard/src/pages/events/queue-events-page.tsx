/** The events page: the events of a queue's jobs, live; the reader can stop it. It keeps the latest events. */

import { useMemo } from 'preact/hooks'
import { at } from '../../api/api-path.js'
import { PageHead } from '../../frame/page-head.js'
import { Select } from '../../parts/form-field.js'
import { Button } from '../../parts/press-button.js'
import { SearchField } from '../../parts/search-field.js'
import { Badge } from '../../parts/state-badge.js'
import { query, setQuery } from '../../state/page-address.js'
import { countOf, exactCount } from '../../words/count-words.js'
import { eventNames } from '../queue/event-line.js'
import { mostEvents, type NotedEvent, useEventFeed } from './event-feed.js'
import { EventList } from './event-list.js'

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
