/** Named selectors: the table of selectors by name, and those that hold no lottery. */

import { ConfigError } from '../core/errors.js'
import { drawnOrder, lottery, lotteryLottery, reducedLottery } from './lottery.js'
import type { Candidate, Selector } from './selector.js'

/** Factories by name: each worker has its own selector, because some keep a position. */
const factories = {
  random: () => randomQueue,
  lottery: () => lottery,
  'highest-first': () => highestFirst,
  'highest-first-lottery': () => highestFirstLottery,
  'lottery-lottery': () => lotteryLottery,
  'reduced-lottery': () => reducedLottery,
  sequential,
  lag: () => lag,
} satisfies Record<string, () => Selector>

export type SelectorName = keyof typeof factories

export const selectorNames = Object.keys(factories) as readonly SelectorName[]

export const defaultSelector: SelectorName = 'reduced-lottery'

/** A fresh selector of this name. Throws `ConfigError` that lists the known names. */
export function selectorNamed(name: SelectorName): Selector {
  if (Object.hasOwn(factories, name)) return factories[name]()
  const message = `must be one of ${selectorNames.join(', ')}, or a function; got '${String(name)}'`
  throw new ConfigError('worker', [{ path: 'selector', message }])
}

/**
 * One queue, each equally likely, whatever its weight and whether it has work.
 * @internal
 */
export const randomQueue: Selector = (queues, random) => {
  const queue = queues[Math.floor(random() * queues.length)]
  return queue === undefined ? [] : [queue.name]
}

/**
 * Queues by weight; a lighter one gets a turn only while all heavier ones are empty, so it may starve. Queues of equal
 * weight in the order given.
 * @internal
 */
export const highestFirst: Selector = (queues) => byWeight(queues)

/**
 * Queues of equal weight in drawn order. In Kale the two selectors differed only in the one queue they wait on when all
 * are empty. A worker here waits on all queues at once, so they differ only in the order of equals.
 * @internal
 */
export const highestFirstLottery: Selector = (queues, random) => byWeight(drawnOrder(queues, random))

function byWeight(queues: readonly Candidate[]): string[] {
  return queues.toSorted((a, b) => b.weight - a.weight).map((queue) => queue.name)
}

/** Round robin: all queues in the order given, each call beginning one later. */
function sequential(): Selector {
  let calls = 0
  return (queues) => {
    const first = queues.length === 0 ? 0 : calls % queues.length
    calls += 1
    return [...queues.slice(first), ...queues.slice(0, first)].map((queue) => queue.name)
  }
}

const oldestFirst = (queues: readonly Candidate[]): readonly string[] =>
  queues.toSorted((a, b) => (b.headAgeMs ?? -1) - (a.headAgeMs ?? -1)).map((queue) => queue.name)

/**
 * The queue whose oldest ready job has waited longest comes first. Queues without a known head come last, in the order
 * given. The ages come with the claim before. The worker asks for heads only for this selector.
 * @internal
 */
export const lag: Selector = Object.assign(oldestFirst, { needsHeads: true })
