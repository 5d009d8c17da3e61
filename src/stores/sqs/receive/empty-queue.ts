/**
 * An empty queue: when it is worth asking again. Each call is paid for, and one that finds nothing costs as much as one
 * that finds ten jobs. Pure.
 */

/** When a queue was asked, on the monotonic clock. */
export interface AskedQueue {
  /** `-Infinity`: never. */
  readonly askedAt: number
  /** How often in a row it gave nothing; 0: there may be more. */
  readonly empties: number
}

export const unasked: AskedQueue = { askedAt: Number.NEGATIVE_INFINITY, empties: 0 }

const firstPauseMs = 1_000
/** While other queues have jobs. */
const longestBusyPauseMs = 5_000
/** A worker without jobs polls its queues in turn, and asks nothing else: see `polledNext`. */
const idlePauseMs = 61_000
/** A worker is idle if none of its queues has given anything for this long. */
const idleAfterMs = 20_000

/**
 * Whether a claim asks the queue by a call of its own. `idleMs`: for how long none of the queues has given anything.
 */
export type WorthAsking = (asked: AskedQueue, idleMs: number, now: number) => boolean

export const isWorthAsking: WorthAsking = ({ askedAt, empties }, idleMs, now) => {
  if (empties === 0) return true
  const busyPauseMs = Math.min(firstPauseMs * 2 ** (empties - 1), longestBusyPauseMs)
  return now >= askedAt + (idleMs < idleAfterMs ? busyPauseMs : idlePauseMs)
}

/** With three queues, none waits for longer. */
const mostStaleMs = 40_000

/**
 * The queue that a worker without jobs polls next: the first in the order that its selector has drawn, unless another
 * has not been asked for long.
 */
export function polledNext(queues: readonly string[], asked: (queue: string) => AskedQueue, now: number): string {
  const stalest = queues.reduce((a, b) => (asked(b).askedAt < asked(a).askedAt ? b : a))
  return asked(stalest).askedAt <= now - mostStaleMs ? stalest : queues[0]!
}
