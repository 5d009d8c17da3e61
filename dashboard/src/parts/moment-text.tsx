/** The moment text: an instant relative to now, and in full in its title. Durations and counts are here too. */

import { signal } from '@preact/signals'
import { countWords, exactCount } from '../words/count-words.js'
import { durationWords } from '../words/duration-words.js'
import { fullMoment, momentWords } from '../words/moment-words.js'

/** `at`: ISO 8601; undefined shows a dash. */
export function Moment({ at }: { readonly at: string | undefined }) {
  if (at === undefined) return <>–</>
  const ms = Date.parse(at)
  return (
    <time dateTime={at} title={fullMoment(ms)} class="whitespace-nowrap">
      {momentWords(ms, now.value)}
    </time>
  )
}

export function DurationText({ ms }: { readonly ms: number | undefined }) {
  if (ms === undefined) return <>–</>
  return <span class="whitespace-nowrap">{durationWords(ms)}</span>
}

/** A count of 0 is grey. */
export function CountText({ count }: { readonly count: number }) {
  const words = countWords(count)
  const exact = exactCount(count)
  return (
    <span class={count === 0 ? 'text-muted' : undefined} title={words === exact ? undefined : exact}>
      {words}
    </span>
  )
}

/** The ticking clock: the present second, for words such as "5 s ago". It stops while the page is hidden. */
export const now = signal(Date.now())

setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, 1_000)
