/**
 * Bounds: how long every store keeps things after the end of a job or a call, and how much cleaning up one call may do.
 */

/** The most jobs recovered or promoted in one call: leftovers must not make a call slow. */
export const upkeepLimit = 100

/**
 * The most things of each kind that one settle call trims: more than a call can add (250), or trimming would fall
 * behind.
 */
export const trimLimit = 300

/** The most jobs that one step of administration changes. */
export const stepLimit = 1_000
/** A step in an ordered queue ends with the job that brings its changed payloads to this number. */
export const stepPayloads = 10_000

/**
 * How long enqueue calls are remembered, in ms, so that a call sent again gets its first answer. A busy queue's calls
 * are remembered for longer than a client takes to notice a lost connection and to send them again.
 */
export const callMemoryMs = 60_000
export const callMemoryCount = 10_000

/** Long enough for a caller that waits for a result to learn that there will be none. */
const cancelMemoryMs = 60_000

/** Long enough for somebody to look at a job that was cancelled while it ran. Nobody waits for its generated id. */
const remainsMemoryMs = 3_600_000

/**
 * Whether a job that is cancelled now leaves its remains with its id: only if it runs, or ran before as far as one can
 * tell. Jobs that never began may be many, and nothing happened to them.
 */
export function leavesRemains(job: {
  readonly isRunning: boolean
  readonly attempt: number
  readonly crashes: number
  readonly suspect: boolean
  /** Whether attempts have left an error, a checkpoint or a log. */
  readonly hasNotes: boolean
}): boolean {
  return job.isRunning || job.attempt > 1 || job.crashes > 0 || job.suspect || job.hasNotes
}

/** How long the store remembers the id of a job that ended without a kept result; 0: not at all. */
export function rememberedForMs(state: 'completed' | 'cancelled', rememberMs: number, hasRemains = false): number {
  if (rememberMs > 0 || state === 'completed') return rememberMs
  return hasRemains ? remainsMemoryMs : cancelMemoryMs
}

/** The longest time, in ms, for which one call keeps results for a caller that waits: a dead caller leaves no more behind. */
export const longestExpectMs = 60_000

/**
 * The most jobs of one priority that a store looks at for the lag of their queue. It looks at more than one only if those
 * in front have waited for other jobs, or for a signal.
 */
export const mostLagLooks = 1_000

/** The most queues and shards that one claim may ask: the contract's bound. */
export const mostPerTrip = 16

/** The most steps and sleeps of a job, and the most bytes of their results, as stored. */
export const mostSteps = 1_000
export const mostStepBytes = 4 * 1_048_576

/** The most signals that a job keeps, and the most bytes of their data, as stored. */
export const mostSignals = 64
export const mostSignalBytes = 4 * 1_048_576
