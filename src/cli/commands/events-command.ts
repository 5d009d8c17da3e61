/** The command `events`: prints the events of a queue's jobs in all processes, one line each, until interrupted. */

import type { Command } from 'commander'
import type { LiveEvent } from '../../core/live-event.js'
import { formatDuration } from '../../core/values/duration.js'
import type { Mill } from '../../mill/mill.js'
import { type MillFlags, millCommand, withJson, withMill } from '../mill-command.js'
import { printable } from '../printable.js'
import { againIn, counted, timeOfDay } from '../terminal/figures.js'
import type { Terminal } from '../terminal/terminal.js'

export function addEvents(program: Command): void {
  const command = millCommand(program, 'events <queue>', 'Follow the events of the jobs of a queue').addHelpText(
    'after',
    `
  Prints starts, progress, ends and burials in all processes as they happen, until interrupted. Running workers begin to send
  them within about 3 s. Each event is printed at most once; if some are lost, a line says so.

Examples:
  $ millrace events default
  $ millrace events video --json | jq 'select(.type == "job.buried")'`,
  )
  withJson(command, 'print the events, one a line: {"type","at","queue","id","task",…}').action(
    (name: string, flags: MillFlags) => {
      const print = async (mill: Mill, terminal: Terminal) => {
        const over = new AbortController()
        for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => over.abort())
        const feed = mill.queue(name).events({ signal: over.signal })
        await feed.ready()
        if (!terminal.json)
          terminal.print(undefined, () => [terminal.colors.dim(`Watching ${name}, until interrupted.`)])
        for await (const event of feed) terminal.print(event, () => [liveLine(event, terminal)])
      }
      return withMill(flags, print, { isLong: true })
    },
  )
}

/** A live event as one line for people: time, event, job, and details. */
function liveLine(event: LiveEvent, { colors }: Pick<Terminal, 'colors'>): string {
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
