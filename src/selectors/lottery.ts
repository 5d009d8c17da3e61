/** Lotteries: queues drawn by weight. */

import type { Random } from '../core/platform/clock.js'
import type { Candidate, Selector } from './selector.js'

/**
 * The reduced lottery, the default: draw a queue by weight; if it is empty, draw among the rest. No queue starves, and
 * a queue with work is found in one pass.
 */
export const reducedLottery: Selector = (queues, random) => drawnOrder(queues, random).map((queue) => queue.name)

/**
 * All queues in drawn order. All draws are made at once: sorted by −ln(U) / weight with U uniform in (0, 1], queues are
 * in the order in which a lottery without replacement would draw them. (Efraimidis & Spirakis, "Weighted random
 * sampling with a reservoir", 2006.)
 */
export function drawnOrder(queues: readonly Candidate[], random: Random): Candidate[] {
  return queues
    .map((queue) => ({ queue, key: -Math.log(1 - random()) / queue.weight }))
    .sort((a, b) => a.key - b.key)
    .map(({ queue }) => queue)
}

/** One queue, drawn by weight, whether it is empty or not. A worker that finds it empty draws again. */
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
