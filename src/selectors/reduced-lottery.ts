/**
 * Reduced lottery, the default: draw a queue by weight; if it is empty, draw among the rest. No queue starves, and a
 * queue with work is found in one pass.
 *
 * All draws are made at once. Sorted by −ln(U) / weight with U uniform in (0, 1], queues are in the order in which a
 * lottery without replacement would draw them. (Efraimidis & Spirakis, "Weighted random sampling with a reservoir",
 * 2006.)
 */

import type { Random } from '../core/platform/clock.js'
import type { Candidate, Selector } from './selector.js'

export const reducedLottery: Selector = (queues, random) => drawnOrder(queues, random).map((queue) => queue.name)

/** All queues in drawn order. */
export function drawnOrder(queues: readonly Candidate[], random: Random): Candidate[] {
  return queues
    .map((queue) => ({ queue, key: -Math.log(1 - random()) / queue.weight }))
    .sort((a, b) => a.key - b.key)
    .map(({ queue }) => queue)
}
