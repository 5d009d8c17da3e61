/** A live event as one line for people: time, event, job, and details. */

import type { LiveEvent } from '../../core/live-event.js'
import { formatDuration } from '../../core/values/duration.js'
import { againIn, counted, timeOfDay } from './figures.js'
import { printable } from './printable.js'
import type { Terminal } from './terminal.js'

export function liveLine(event: LiveEvent, { colors }: Pick<Terminal, 'colors'>): string {
  const at = colors.dim(timeOfDay(event.at))
  if (event.type === 'events.lost') {
    const lost = event.count === undefined ? 'some events' : counted(event.count, 'event')
    return `${at} ${colors.yellow(`${lost} lost`)}`
  }
  const word = event.type.slice('job.'.length)
  const paint = paints[event.type]
  const words = wordsOf(event)
  const job = `${printable(event.id)} ${colors.dim(printable(event.task))}`
  return `${at} ${paint === undefined ? word : colors[paint](word)} ${job}${words === '' ? '' : ` ${printable(words)}`}`
}

const paints: { readonly [Type in LiveEvent['type']]?: 'green' | 'yellow' | 'red' } = {
  'job.completed': 'green',
  'job.failed': 'yellow',
  'job.released': 'yellow',
  'job.crashed': 'red',
  'job.buried': 'red',
}

/** In one line, whatever an error contains. */
function wordsOf(event: Exclude<LiveEvent, { readonly type: 'events.lost' }>): string {
  return said(event).replace(/\s+/g, ' ').trim()
}

function said(event: Exclude<LiveEvent, { readonly type: 'events.lost' }>): string {
  switch (event.type) {
    case 'job.started':
      return `attempt ${event.attempt} on ${event.worker}`
    case 'job.progressed':
      return `${Math.round(event.progress.fraction * 100)}% ${event.progress.note ?? ''}`
    case 'job.completed':
    case 'job.slow':
      return `after ${formatDuration(Math.round(event.runMs))}`
    case 'job.failed':
      return `attempt ${event.attempt}: ${event.error ?? ''}${event.retryMs === undefined ? '' : `, ${againIn(event.retryMs)}`}`
    case 'job.released':
      return event.reason
    case 'job.buried':
      return `${event.reason}${event.error === undefined ? '' : `: ${event.error}`}`
    case 'job.cancelled':
      return event.reason ?? ''
    case 'job.crashed':
      return `${counted(event.crashes, 'crash')} charged`
    case 'job.adopted':
    case 'job.detached':
      return `process ${event.child}`
  }
}
