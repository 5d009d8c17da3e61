/** Highest first: queues by weight; a lighter one gets a turn only while all heavier ones are empty, so it may starve. */

import { drawnOrder } from './reduced-lottery.js'
import type { Candidate, Selector } from './selector.js'

/** Equal weights in the order given. */
export const highestFirst: Selector = (queues) => byWeight(queues)

/**
 * Equal weights in drawn order. In Kale the two differed in the one queue they wait on when all are empty; a worker here
 * waits on all of them at once, so they differ only in the order of equals.
 */
export const highestFirstLottery: Selector = (queues, random) => byWeight(drawnOrder(queues, random))

function byWeight(queues: readonly Candidate[]): string[] {
  return queues.toSorted((a, b) => b.weight - a.weight).map((queue) => queue.name)
}
