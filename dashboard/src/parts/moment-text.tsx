/** The moment text: an instant as seen from now, and in full where one points at it. Durations and counts stand here too. */

import { now } from '../state/ticking-clock.js'
import { countWords, exactCount } from '../words/count-words.js'
import { durationWords } from '../words/duration-words.js'
import { fullMoment, momentWords } from '../words/moment-words.js'

/** `at`: ISO 8601; without one a dash. */
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

/** Nothing to see is said in grey. */
export function CountText({ count }: { readonly count: number }) {
  const words = countWords(count)
  const exact = exactCount(count)
  return (
    <span class={count === 0 ? 'text-muted' : undefined} title={words === exact ? undefined : exact}>
      {words}
    </span>
  )
}
