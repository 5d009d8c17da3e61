/** The event line: one event of a job, with its time, its job and its details. */

import type { LiveEvent } from '../../api/answers.js'
import { jobPage } from '../../api/api-path.js'
import { Name } from '../../parts/name-text.js'
import { durationWords } from '../../words/duration-words.js'
import { secondWords } from '../../words/moment-words.js'
import { safeText, shortText } from '../../words/safe-text.js'

/** The events of a job, and the notice that some were lost. */
export const eventNames = [
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
  'events.lost',
] as const

const tones: Readonly<Record<string, string>> = {
  'job.completed': 'text-good',
  'job.failed': 'text-bad',
  'job.buried': 'text-bad',
  'job.crashed': 'text-bad',
  'job.slow': 'text-warn',
  'events.lost': 'text-warn',
}

/** Its details besides its job. */
function detailOf({ type, runMs, retryMs, error, reason, attempt, count }: LiveEvent): string {
  const parts = [
    type === 'events.lost' && `${count ?? 'some'} events are missing here`,
    typeof attempt === 'number' && attempt > 1 && `attempt ${attempt}`,
    typeof runMs === 'number' && durationWords(runMs),
    typeof error === 'string' && error.split('\n', 1)[0],
    typeof reason === 'string' && reason,
    typeof retryMs === 'number' && `again in ${durationWords(retryMs)}`,
  ]
  return parts.filter((part) => typeof part === 'string').join(' · ')
}

export function EventLine({ event }: { readonly event: LiveEvent }) {
  const { type, at: when, queue, id, task } = event
  const detail = detailOf(event)
  return (
    <li data-row tabIndex={-1} class="flex h-6 items-baseline gap-3 px-3.5 text-sm whitespace-nowrap">
      <time dateTime={when} class="text-muted">
        {secondWords(Date.parse(when))}
      </time>
      <span class={`w-20 shrink-0 ${tones[type] ?? ''}`}>{type.replace(/^job\./, '')}</span>
      {queue !== undefined && id !== undefined && (
        <a class="link max-w-48 min-w-16 shrink-0 truncate max-sm:max-w-24" href={jobPage({ queue, id })}>
          <Name text={id} isId most={24} />
        </a>
      )}
      <span class="truncate text-muted max-sm:hidden">{shortText(safeText(String(task ?? '')), 40)}</span>
      <span class="min-w-0 flex-1 truncate text-end text-muted" title={safeText(detail)}>
        {shortText(safeText(detail), 200)}
      </span>
    </li>
  )
}
