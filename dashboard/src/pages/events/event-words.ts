/** The event words: what an event of a job means, in a word, a tone and a line of details. */

import type { LiveEvent } from '../../api/answers.js'
import { countOf } from '../../words/count-words.js'
import { durationWords } from '../../words/duration-words.js'

interface EventWord {
  readonly word: string
  readonly sign: string
  readonly tone: 'plain' | 'accent' | 'good' | 'warn' | 'bad'
}

export const eventWords: Readonly<Record<string, EventWord>> = {
  'job.started': { word: 'started', sign: '▶\ufe0e', tone: 'accent' },
  'job.progressed': { word: 'progressed', sign: '…', tone: 'plain' },
  'job.completed': { word: 'completed', sign: '✓', tone: 'good' },
  'job.failed': { word: 'failed', sign: '!', tone: 'warn' },
  'job.buried': { word: 'buried', sign: '✕', tone: 'bad' },
  'job.released': { word: 'released', sign: '↩\ufe0e', tone: 'plain' },
  'job.cancelled': { word: 'cancelled', sign: '⊘', tone: 'plain' },
  'job.crashed': { word: 'crashed', sign: '✕', tone: 'bad' },
  'job.slow': { word: 'slow', sign: '◷', tone: 'warn' },
  'job.adopted': { word: 'adopted', sign: '↻\ufe0e', tone: 'plain' },
  'job.detached': { word: 'detached', sign: '↓', tone: 'plain' },
}

/** Of whatever type: what of these it has, in this order. */
export function detailsOf(event: LiveEvent): string {
  const { attempt, runMs, retryMs, progress, reason, error, delayMs, crashes } = event
  const { fraction, note } = (progress ?? {}) as { readonly fraction?: number; readonly note?: string }
  const parts = [
    typeof attempt === 'number' && attempt > 1 && `attempt ${attempt}`,
    typeof fraction === 'number' && `${Math.round(fraction * 100)} %`,
    note,
    typeof runMs === 'number' && durationWords(runMs),
    typeof crashes === 'number' && crashes > 0 && countOf(crashes, 'crash', 'crashes'),
    typeof delayMs === 'number' && delayMs > 0 && `due again in ${durationWords(delayMs)}`,
    typeof retryMs === 'number' && `tried again in ${durationWords(retryMs)}`,
    reason,
    error,
  ]
  return parts.filter((part) => typeof part === 'string' && part !== '').join(' · ')
}
