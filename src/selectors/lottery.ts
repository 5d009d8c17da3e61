/** Lottery: queues drawn by weight, ignoring which are empty. */

import type { Random } from '../core/platform/clock.js'
import type { Candidate, Selector } from './selector.js'

/** One queue, drawn by weight. A worker that finds it empty draws again. */
export const lottery: Selector = (queues, random) => {
  const drawn = draw(queues, random)
  return drawn === undefined ? [] : [drawn.name]
}

/** Kale draws ten times for a queue with work, and once more for a queue to wait on. */
const draws = 11

/**
 * Ten draws with replacement, and one more for the queue that Kale would wait on if all ten were empty. Repeated names
 * are dropped, because the claim knows already that such a queue is empty. A queue of small weight may be missing.
 */
export const lotteryLottery: Selector = (queues, random) => {
  const names = new Set<string>()
  for (let i = 0; i < draws && names.size < queues.length; i += 1) names.add(draw(queues, random)!.name)
  return [...names]
}

function draw(queues: readonly Candidate[], random: Random): Candidate | undefined {
  let tickets = 0
  for (const queue of queues) tickets += queue.weight
  let ticket = random() * tickets
  for (const queue of queues) {
    ticket -= queue.weight
    if (ticket < 0) return queue
  }
  // Only fractional weights can get here, by rounding.
  return queues.at(-1)
}
