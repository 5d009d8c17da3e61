/** A selector: the order in which a worker tries its queues, drawn anew for every claim. */

import type { Random } from '../core/clock.js'
import { ConfigError } from '../core/errors.js'
import { highestFirst, highestFirstLottery } from './highest-first.js'
import { lag } from './lag.js'
import { lottery, lotteryLottery } from './lottery.js'
import { randomQueue } from './random-queue.js'
import { reducedLottery } from './reduced-lottery.js'
import { sequential } from './sequential.js'

/** A queue as a selector sees it. */
export interface Candidate {
  readonly name: string
  /** Lottery tickets, 1 … 100. */
  readonly weight: number
  /** Ms since its oldest ready job was due; absent where none is ready or nobody asked. */
  readonly headAgeMs?: number
}

/**
 * The names in the order the claim should try them, each at most once. Names that are left out are not tried this time.
 * `queues` holds those that the worker serves and has not found empty since its last grant or rest.
 * Whether a queue is empty is found by the claim itself, never asked beforehand. May be the user's own.
 */
export interface Selector {
  (queues: readonly Candidate[], random: Random): readonly string[]
  /** Only where this is true does the worker ask the store for `headAgeMs`. */
  readonly needsHeads?: boolean
}

/** By name, what makes one: each worker has its own, as some keep a position. */
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

/** A fresh selector of this name. Throws `ConfigError` that lists the names there are. */
export function selectorNamed(name: SelectorName): Selector {
  if (Object.hasOwn(factories, name)) return factories[name]()
  const message = `must be one of ${selectorNames.join(', ')}, or a function; got '${String(name)}'`
  throw new ConfigError('worker', [{ path: 'selector', message }])
}
