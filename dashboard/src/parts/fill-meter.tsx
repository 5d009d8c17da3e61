/** The fill meter: how full a limit is, and when there is room again. */

import { exactCount } from '../words/count-words.js'
import { durationWords, shortDuration } from '../words/duration-words.js'

interface MeterProps {
  readonly label: string
  readonly hits: number
  readonly limit: number
  /** The window of the count; absent for running jobs. */
  readonly windowMs?: number
  /** Ms until the next job may start; 0: at once. */
  readonly nextMs?: number
  /** In a table: the bar alone, with its words in a title. Default false. */
  readonly isSmall?: boolean
}

export function Meter({ label, hits, limit, windowMs, nextMs = 0, isSmall = false }: MeterProps) {
  const share = Math.min(1, limit === 0 ? 1 : hits / limit)
  const words = `${exactCount(hits)} of ${exactCount(limit)}${windowMs === undefined ? '' : ` in ${durationWords(windowMs)}`}`
  const next = nextMs > 0 ? `next start in ${durationWords(nextMs)}` : 'room for the next'
  const bar = (
    // biome-ignore lint/a11y/useSemanticElements: browsers draw their own each in another way
    <div
      role="meter"
      aria-label={label}
      aria-valuenow={hits}
      aria-valuemin={0}
      aria-valuemax={Math.max(limit, hits)}
      aria-valuetext={`${words}, ${next}`}
      class="h-1.5 overflow-hidden rounded-full bg-line"
    >
      <div
        class={`meter-fill h-full origin-left motion-safe:transition-transform ${share >= 1 ? 'bg-warn' : 'bg-accent'}`}
        style={{ transform: `scaleX(${share})` }}
      />
    </div>
  )
  if (isSmall)
    return (
      <div title={`${label}: ${words}, ${next}`}>
        {bar}
        <div class="mt-0.5 flex justify-between text-xs text-muted">
          <span>
            {exactCount(hits)}/{exactCount(limit)}
            {windowMs !== undefined && ` · ${shortDuration(windowMs)}`}
          </span>
        </div>
      </div>
    )
  return (
    <div class="grid gap-1">
      <div class="flex justify-between gap-3 text-sm">
        <span>{label}</span>
        <span class="text-muted">{words}</span>
      </div>
      {bar}
      <div class="text-xs text-muted">{next}</div>
    </div>
  )
}
