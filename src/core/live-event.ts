/** Live events: the events of a queue's jobs, as one process sends them to others. */

import type { EventMap } from './events.js'
import { describe, messageOf } from './messages/describe.js'

/** The events that a process sends to others. */
export const liveEventNames = [
  'job.started',
  'job.progressed',
  'job.completed',
  'job.failed',
  'job.released',
  'job.buried',
  'job.cancelled',
  'job.crashed',
  'job.slow',
  'job.adopted',
  'job.detached',
] as const

export type LiveEventName = (typeof liveEventNames)[number]

/** Errors are sent as text. */
type InTransit<Event> = { readonly [Field in keyof Event]: Field extends 'error' ? string | undefined : Event[Field] }

/**
 * An event of a job of the queue, or a note that events were lost. `at`: when, by the clock of the sending process.
 * `count`: the number of lost events; absent if it is not known.
 */
export type LiveEvent =
  | { [Name in LiveEventName]: { readonly type: Name; readonly at: Date } & InTransit<EventMap[Name]> }[LiveEventName]
  | { readonly type: 'events.lost'; readonly at: Date; readonly queue: string; readonly count?: number }

/** The event as it is sent: `at` in ms since 1970. */
export type SentEvent = Readonly<Record<string, unknown>> & { readonly type: LiveEventName; readonly at: number }

export interface LiveBatch {
  readonly events: readonly SentEvent[]
  /** The number of events before these that could not be sent. */
  readonly lost: number
}

/**
 * Only events within this many ms from the begin of a watch may be unheard. By then each process that holds jobs has asked
 * whether anybody watches, even if its timers are a little late.
 */
export const unheardMs = 1_000

const longestError = 1_000

/** The event as it is sent. */
export function sentEvent(type: LiveEventName, event: EventMap[LiveEventName], at: number): SentEvent {
  const { error } = event as { readonly error?: unknown }
  if (error === undefined) return { ...event, type, at }
  const text = error instanceof Error ? messageOf(error) : typeof error === 'string' ? error : describe(error)
  return { ...event, type, at, error: text.slice(0, longestError).toWellFormed() }
}

/** The event as its user gets it. */
export function liveEvent(event: SentEvent): LiveEvent {
  return { ...event, at: new Date(event.at) } as unknown as LiveEvent
}

/** The batch in a text; undefined if it cannot be read, since another version may write another form. */
export function liveBatch(text: string): LiveBatch | undefined {
  try {
    const { events, lost } = JSON.parse(text) as Partial<LiveBatch>
    return Array.isArray(events) && typeof lost === 'number' ? { events, lost } : undefined
  } catch {
    return undefined
  }
}
