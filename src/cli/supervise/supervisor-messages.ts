/** Supervisor messages: the messages between a worker process and its supervisor. */

import type { JobRef } from '../../core/events.js'
import { type MillMetrics, millMetricsIn } from '../../measures/mill-metrics.js'
import { type ProcessMetrics, processMetricsIn } from '../../measures/process-metrics.js'
import type { SeenDeath } from '../../runtime/process/seen-deaths.js'
import type { WorkerStatus } from '../../workers/worker-status.js'

export type { WorkerStatus }

/** The file descriptor of a worker process for the channel to its supervisor. */
export const linkFd = 3

/** The status of a worker in short, as its process sends it each second. */
export interface StatusDigest extends Omit<WorkerStatus, 'jobs'> {
  readonly running: number
  /** The jobs in hand for the longest. */
  readonly oldest: readonly (JobRef & { readonly forMs: number })[]
  /** With `--metrics` only. */
  readonly measures?: ProcessMetrics
}

/**
 * The messages of the process: its worker takes jobs; it is alive; it runs a job alone, or no longer; it takes no more
 * jobs and needs a successor; the same, because of an error; it takes no more jobs and needs no successor; it has shown
 * its state; it has read the store, or could not.
 */
export type ProcessMessage =
  | { readonly millrace: 'ready'; readonly pulse: StatusDigest }
  | { readonly millrace: 'alive'; readonly pulse: StatusDigest }
  | { readonly millrace: 'alone'; readonly isAlone: boolean }
  | { readonly millrace: 'recycling' }
  | { readonly millrace: 'failing' }
  | { readonly millrace: 'dismissed' }
  | { readonly millrace: 'dumped' }
  | { readonly millrace: 'measured'; readonly reading: MillMetrics | undefined }

/** The messages of the supervisor: show your state; read the store for its metrics; another of its processes has died. */
export type SupervisorMessage = { readonly millrace: 'dump' | 'measure' } | ({ readonly millrace: 'died' } & SeenDeath)

const mostNamed = 5

/**
 * The message in this object; undefined if there is none, since a handler in the process can write to the channel as
 * well.
 */
export function processMessageIn(said: object): ProcessMessage | undefined {
  const { millrace, pulse, isAlone, reading } = said as Record<string, unknown>
  switch (millrace) {
    case 'ready':
    case 'alive':
      return isPulse(pulse) ? { millrace, pulse: withMeasures(pulse) } : undefined
    case 'measured':
      return { millrace, reading: millMetricsIn(reading) }
    case 'alone':
      return { millrace, isAlone: isAlone === true }
    case 'recycling':
    case 'failing':
    case 'dismissed':
    case 'dumped':
      return { millrace }
    default:
      return undefined
  }
}

export function isSupervisorMessage(said: object): said is SupervisorMessage {
  const { millrace } = said as Partial<SupervisorMessage>
  return millrace === 'dump' || millrace === 'measure' || millrace === 'died'
}

export function digestOf({ jobs, ...status }: WorkerStatus): StatusDigest {
  const oldest = [...jobs].sort((a, b) => b.forMs - a.forMs).slice(0, mostNamed)
  return {
    ...status,
    running: jobs.length,
    oldest: oldest.map(({ queue, id, task, forMs }) => ({ queue, id, task, forMs })),
  }
}

/** Leaves out measures that cannot be read. */
function withMeasures({ measures: said, ...pulse }: StatusDigest): StatusDigest {
  const measures = processMetricsIn(said)
  return measures === undefined ? pulse : { ...pulse, measures }
}

const states: readonly unknown[] = [
  'starting',
  'running',
  'stopping',
  'stopped',
  'failed',
] satisfies WorkerStatus['state'][]

function isPulse(value: unknown): value is StatusDigest {
  if (typeof value !== 'object' || value === null) return false
  const { id, state, concurrency, retired, unsettled, damaged, silentMs, running, oldest } = value as Record<
    string,
    unknown
  >
  const numbers = [concurrency, retired, unsettled, silentMs, running]
  return (
    typeof id === 'string' &&
    states.includes(state) &&
    numbers.every((one) => typeof one === 'number') &&
    Array.isArray(damaged) &&
    damaged.every((one) => typeof one === 'string') &&
    Array.isArray(oldest) &&
    oldest.every(isInHand)
  )
}

function isInHand(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { queue, id, task, forMs } = value as Record<string, unknown>
  return [queue, id, task].every((one) => typeof one === 'string') && typeof forMs === 'number'
}
