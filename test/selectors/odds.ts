/** Odds: the documented configuration of Kale, what its rules give exactly, and Kale's own loop to compare with. */

import type { Random } from '#src/core/platform/clock.js'
import type { Candidate, Selector } from '#src/selectors/selector.js'

/** Weights 100, 40 and 5. */
export const documented: readonly Candidate[] = [
  { name: 'high', weight: 100 },
  { name: 'default', weight: 40 },
  { name: 'low', weight: 5 },
]

export function without(...names: string[]): Candidate[] {
  return documented.filter((queue) => !names.includes(queue.name))
}

export function permutations<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]]
  return items.flatMap((item, i) => permutations(items.toSpliced(i, 1)).map((rest) => [item, ...rest]))
}

/** How likely draws without replacement give this order: at each step the weight drawn, of the weights that are left. */
export function oddsOfOrder(order: readonly Candidate[]): number {
  return order.reduce((odds, queue, i) => odds * (queue.weight / totalWeight(order.slice(i))), 1)
}

export function totalWeight(queues: readonly Candidate[]): number {
  return queues.reduce((sum, queue) => sum + queue.weight, 0)
}

/** Kale's ReducedLottery: draw among the candidates; a queue with work is taken, an empty one is struck off; none left: undefined. */
export function kaleReducedLottery(
  queues: readonly Candidate[],
  hasWork: (name: string) => boolean,
  random: Random,
): string | undefined {
  const candidates = [...queues]
  while (candidates.length > 0) {
    let ticket = random() * totalWeight(candidates)
    const at = candidates.findIndex((queue) => {
      ticket -= queue.weight
      return ticket < 0
    })
    const drawn = candidates[at]!
    if (hasWork(drawn.name)) return drawn.name
    candidates.splice(at, 1)
  }
  return undefined
}

/** What the claim takes from: the first name in the selector's order that has work. */
export function granted(
  selector: Selector,
  queues: readonly Candidate[],
  hasWork: (name: string) => boolean,
  random: Random,
): string | undefined {
  return selector(queues, random).find(hasWork)
}

/** How often each key came up. */
export function tally<T extends string>(keys: readonly T[], times: number, next: () => string | undefined): number[] {
  const counts = new Map<string | undefined, number>()
  for (let i = 0; i < times; i += 1) {
    const key = next()
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return keys.map((key) => counts.get(key) ?? 0)
}
