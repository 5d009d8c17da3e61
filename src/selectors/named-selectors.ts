/** Named selectors: the table of selectors by name, those that draw queues by weight, and those that hold no lottery. */

import { ConfigError } from '../core/errors.js'
import type { Random } from '../core/platform/clock.js'
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
 * The reduced lottery, the default: draw a queue by weight; if it is empty, draw among the rest. No queue starves, and
 * a queue with work is found in one pass.
 * @internal
 */
export const reducedLottery: Selector = (queues, random) => drawnOrder(queues, random).map((queue) => queue.name)

/**
 * All queues in drawn order. All draws are made at once: sorted by −ln(U) / weight with U uniform in (0, 1], queues are
 * in the order in which a lottery without replacement would draw them. (Efraimidis & Spirakis, "Weighted random
 * sampling with a reservoir", 2006.)
 */
function drawnOrder(queues: readonly Candidate[], random: Random): Candidate[] {
  return queues
    .map((queue) => ({ queue, key: -Math.log(1 - random()) / queue.weight }))
    .sort((a, b) => a.key - b.key)
    .map(({ queue }) => queue)
}

/**
 * One queue, drawn by weight, whether it is empty or not. A worker that finds it empty draws again.
 * @internal
 */
export const lottery: Selector = (queues, random) => {
  const drawn = draw(queues, random)
  return drawn === undefined ? [] : [drawn.name]
}

/** Kale draws ten times for a queue with work, and once more for a queue to wait on. */
const draws = 11

/**
 * Ten draws with replacement, and one more for the queue that Kale would wait on if all ten were empty. Repeated names
 * are dropped, because the claim knows already that such a queue is empty. A queue of small weight may be missing.
 * @internal
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
