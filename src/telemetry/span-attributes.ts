/** The attributes of spans: OpenTelemetry's conventions for messaging, and Millrace's own. */

import type { Attributes } from '@opentelemetry/api'
import type { EnqueueItem, Run, RunEnd } from '../core/task/middleware.js'
import type { RunMessage } from './run-messages.js'

/** The kind of a span, in the terms of the conventions. */
export type Operation = 'send' | 'process' | 'settle'

/** `queue`: undefined if there are several. */
export function operationAttributes(operation: Operation, queue: string | undefined): Attributes {
  return {
    'messaging.system': 'millrace',
    'messaging.operation.name': operation,
    'messaging.operation.type': operation,
    ...(queue === undefined ? {} : { 'messaging.destination.name': queue }),
  }
}

/** The queue of all the items; undefined if they go into several. */
export function queueOf(items: readonly EnqueueItem[]): string | undefined {
  const [queue, ...others] = new Set(items.map(({ task, options }) => options?.queue ?? task.queue))
  return others.length === 0 ? queue : undefined
}

/** The attributes that are known before the items are stored. */
export function itemAttributes(items: readonly EnqueueItem[]): Attributes {
  const [task, ...others] = new Set(items.map((item) => item.task.name))
  const [first] = items
  const group: unknown = items.length === 1 ? first?.options?.group : undefined
  return {
    ...(items.length === 1 ? {} : { 'messaging.batch.message_count': items.length }),
    ...(task === undefined || others.length > 0 ? {} : { 'millrace.task': task }),
    ...(typeof group === 'string' ? { 'millrace.group': group } : {}),
  }
}

/** The attributes from the store's answer to one item. */
export function storedAttributes({ job }: EnqueueItem): Attributes {
  if (job === undefined) return {}
  return { 'messaging.message.id': job.id, ...(job.outcome && { 'millrace.outcome': job.outcome }) }
}

/** `now`: in ms since 1970. */
export function runAttributes(run: Run, messages: readonly RunMessage[], now: number): Attributes {
  const [first] = messages
  const due = messages.map(({ runAt }) => runAt.getTime())
  return {
    'millrace.task': run.task.name,
    'millrace.discipline': disciplineOf(run),
    ...(due.length === 0 ? {} : { 'millrace.lag_ms': Math.max(0, now - Math.min(...due)) }),
    ...(isMany(run)
      ? { 'messaging.batch.message_count': messages.length }
      : first && {
          'messaging.message.id': first.id,
          'millrace.attempt': first.attempt,
          ...(first.crashes > 0 && { 'millrace.crashes': first.crashes }),
          ...(first.group !== undefined && { 'millrace.group': first.group }),
        }),
  }
}

export function endAttributes(ends: readonly RunEnd[]): Attributes {
  const [first, ...others] = ends
  if (first === undefined || others.length > 0) return { 'messaging.batch.message_count': ends.length }
  const { id, kind, reason } = first
  return {
    ...{ 'messaging.message.id': id, 'millrace.outcome': kind },
    ...(reason === undefined ? {} : { 'millrace.reason': reason }),
  }
}

/** Whether its handler may receive several jobs at once. */
function isMany({ task }: Run): boolean {
  if (task.kind === 'ordered') return task.batchSize > 1
  return 'batch' in task && task.batch !== undefined
}

function disciplineOf(run: Run): string {
  if (run.task.kind === 'ordered') return 'ordered'
  if (isMany(run)) return 'batch'
  return run.task.isolation === undefined ? 'plain' : 'isolated'
}
