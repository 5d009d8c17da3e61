/** Named selectors: the table of selectors by name. */

import { ConfigError } from '../core/errors.js'
import { highestFirst, highestFirstLottery } from './highest-first.js'
import { lag } from './lag.js'
import { lottery, lotteryLottery } from './lottery.js'
import { randomQueue } from './random-queue.js'
import { reducedLottery } from './reduced-lottery.js'
import type { Selector } from './selector.js'
import { sequential } from './sequential.js'

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
