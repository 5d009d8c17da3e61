/** Bounds: what every store keeps beyond the end of a job or a call, and how much work keeping may cost one call. */

/** Most jobs recovered or promoted in one call: no call may take long because of what lay around. */
export const upkeepLimit = 100

/** Most that is trimmed of each kind in one settle call: more than the call can add (250), or it would never be done. */
export const trimLimit = 300

/** Most jobs that one step of administration changes. */
export const stepLimit = 1_000
/** A step in an ordered queue ends with the job by which it has changed so many payloads. */
export const stepPayloads = 10_000

/**
 * How long, and how many calls of a queue, enqueue calls are remembered, so that one sent again is answered alike: those of a busy
 * queue for longer than it takes a client to learn that its connection is gone, and to send them again.
 */
export const callMemoryMs = 60_000
export const callMemoryCount = 10_000

/** Long enough for whoever waits for a result to learn that there will be none. */
const cancelMemoryMs = 60_000

/** How long the id of a job is remembered that ended with no result kept; 0: not at all. */
export function rememberedForMs(state: 'completed' | 'cancelled', rememberMs: number): number {
  return rememberMs === 0 && state === 'cancelled' ? cancelMemoryMs : rememberMs
}

/** Queues and shards that one claim may ask: the contract's bound. */
export const mostPerTrip = 16
