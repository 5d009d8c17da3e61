/** Live events: what becomes of the jobs of a queue, as a process tells it to others. */

import type { EventMap } from './events.js'
import { describe, messageOf } from './values/describe.js'

/** The events of a process that others are told. */
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

/** An error travels as text. */
type InTransit<Event> = { readonly [Field in keyof Event]: Field extends 'error' ? string | undefined : Event[Field] }

/**
 * What a process said of a job of the queue; `at`: when, on its clock. Or that events are lost: so many, or, where nobody
 * knows, without a `count`.
 */
export type LiveEvent =
  | { [Name in LiveEventName]: { readonly type: Name; readonly at: Date } & InTransit<EventMap[Name]> }[LiveEventName]
  | { readonly type: 'events.lost'; readonly at: Date; readonly queue: string; readonly count?: number }

/** As it travels: `at` in ms since 1970. */
export type SentEvent = Readonly<Record<string, unknown>> & { readonly type: LiveEventName; readonly at: number }

export interface LiveBatch {
  readonly events: readonly SentEvent[]
  /** Those before them that could not be sent. */
  readonly lost: number
}

const longestError = 1_000

/** The event as it travels. */
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

/** What was sent; undefined where it cannot be read: another version may say it otherwise. */
export function liveBatch(text: string): LiveBatch | undefined {
  try {
    const { events, lost } = JSON.parse(text) as Partial<LiveBatch>
    return Array.isArray(events) && typeof lost === 'number' ? { events, lost } : undefined
  } catch {
    return undefined
  }
}
