/**
 * The limits of a queue: who says them, and what holds as long as nobody has. Whoever says a limit first gives it to
 * the queue. From then on a worker that says another is refused, and only a change by command replaces it. Whoever does
 * not say it goes by the stored one; so do looks and enqueues, whatever their configuration says.
 */

import { ConfigConflictError } from '../../core/errors.js'
import type { Kept, MaxRunning, QueueLimits } from '../../core/queue/queue-limits.js'

/** The limits that hold. */
export interface QueueBounds {
  readonly maxRunning?: MaxRunning
  readonly maxPending?: number
  readonly maxCrashes: number
  readonly resultsCount?: number
  readonly dead: Kept
}

/** The limits of a queue for which nobody has set others. */
const unsaid = { maxCrashes: 3, resultsCount: 1_000, dead: {} } as const

/** The flag of `queues limits` for each. */
const flags = {
  maxRunning: '--max-running',
  maxPending: '--max-pending',
  maxCrashes: '--max-crashes',
  resultsCount: '--results',
  dead: '--dead',
} as const

type Limit = keyof typeof flags
const all = Object.keys(flags) as Limit[]

/** The stored limits with those that are said for the first time. Throws `ConfigConflictError` for another one. */
export function saidLimits(queue: string, stored: QueueLimits, asked: QueueLimits): QueueLimits {
  for (const limit of all) {
    const [before, now] = [stored[limit], asked[limit]]
    if (before === undefined || now === undefined || textOf(before) === textOf(now)) continue
    const flag = flags[limit]
    const remedy = `It holds for every process, so a configuration alone does not change it: run \`millrace queues limits ${queue} ${flag} …\`, or give this configuration the stored one.`
    throw new ConfigConflictError(queue, limit, before, now, remedy)
  }
  return changedLimits(asked, stored)
}

/** The limits after a change by command. */
export function changedLimits(stored: QueueLimits, change: QueueLimits): QueueLimits {
  return limitsIn({ ...stored, ...limitsIn(change) })
}

/** The limits among these settings; equal ones have equal texts. */
export function limitsIn(settings: QueueLimits): QueueLimits {
  return Object.fromEntries(all.flatMap((limit) => (settings[limit] === undefined ? [] : [[limit, settings[limit]]])))
}

export function boundsOf(said: QueueLimits): QueueBounds {
  const { maxRunning, maxPending, maxCrashes, resultsCount, dead } = { ...unsaid, ...limitsIn(said) }
  return {
    ...(maxRunning === undefined || maxRunning === 'none' ? {} : { maxRunning }),
    ...(maxPending === undefined || maxPending === 'none' ? {} : { maxPending }),
    maxCrashes,
    ...(resultsCount === 'none' ? {} : { resultsCount }),
    dead,
  }
}

/** The most running jobs of the whole queue, and of each group. */
export function runningBounds(maxRunning: MaxRunning | undefined): {
  readonly total?: number
  readonly perGroup?: number
} {
  if (typeof maxRunning !== 'number') return maxRunning ?? {}
  return { total: maxRunning }
}

/** The stored text of limits. */
export function limitsText(limits: QueueLimits): string {
  return JSON.stringify(limitsIn(limits))
}

/** None for a missing or damaged text. */
export function limitsFrom(text: string | undefined): QueueLimits {
  try {
    return limitsIn(JSON.parse(text || '{}') as QueueLimits)
  } catch {
    return {}
  }
}

/** Equal limits have equal texts, whatever the order of their parts. */
function textOf(limit: QueueLimits[Limit]): string {
  return JSON.stringify(typeof limit === 'object' ? Object.entries(limit).sort() : limit)
}
