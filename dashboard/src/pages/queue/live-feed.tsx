/** The live feed: the latest events of a queue's jobs, newest first. */

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { LiveEvent } from '../../api/answers.js'
import { at } from '../../api/api-path.js'
import { openStream } from '../../api/live-stream.js'
import { Section } from '../../frame/page-head.js'
import { EventLine, eventNames } from './event-line.js'

const most = 12

export function LiveFeed({ queue }: { readonly queue: string }) {
  const events = useSignal<readonly (LiveEvent & { readonly number: number })[]>([])
  useEffect(() => {
    let number = 0
    let waiting: LiveEvent[] = []
    let frame = 0
    // A queue may have thousands of events a second: they are drawn together.
    const show = () => {
      frame = 0
      const fresh = waiting.slice(-most).map((event) => ({ ...event, number: number++ }))
      waiting = []
      events.value = [...fresh.reverse(), ...events.value].slice(0, most)
    }
    const hear = (event: LiveEvent) => {
      waiting.push(event)
      if (waiting.length > most) waiting.shift()
      if (frame === 0) frame = requestAnimationFrame(show)
    }
    const close = openStream(at`queues/${queue}/events`, {
      on: Object.fromEntries(eventNames.map((name) => [name, hear])),
    })
    return () => {
      cancelAnimationFrame(frame)
      close()
    }
  }, [queue])
  return (
    <Section
      title="Live events"
      actions={
        <a class="link text-sm" href={at`queues/${queue}/events`}>
          All events
        </a>
      }
    >
      <ol class="panel h-76 overflow-hidden py-1.5" aria-label="The latest events">
        {events.value.map((event) => (
          <EventLine key={event.number} event={event} />
        ))}
        {events.value.length === 0 && (
          <li class="grid h-full place-items-center text-muted">Nothing has happened since you came.</li>
        )}
      </ol>
    </Section>
  )
}
