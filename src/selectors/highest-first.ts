/**
 * Highest first: queues by weight; a lighter one gets a turn only while all heavier ones are empty, so it may starve.
 */

import { drawnOrder } from './reduced-lottery.js'
import type { Candidate, Selector } from './selector.js'

/** Queues of equal weight in the order given. */
export const highestFirst: Selector = (queues) => byWeight(queues)

/**
 * Queues of equal weight in drawn order. In Kale the two selectors differed only in the one queue they wait on when all
 * are empty. A worker here waits on all queues at once, so they differ only in the order of equals.
 */
export const highestFirstLottery: Selector = (queues, random) => byWeight(drawnOrder(queues, random))

function byWeight(queues: readonly Candidate[]): string[] {
  return queues.toSorted((a, b) => b.weight - a.weight).map((queue) => queue.name)
}
