/** The interleavings: every order of the steps of a small model, and beyond that walks by chance. */

import { Dice } from '#src/store-testing/sequences/dice.js'
import { Violation } from './effect-ledger.js'
import type { Scenario } from './scenarios.js'
import { SimulatedWorld, type WorldParts } from './simulated-world.js'

export interface Explored {
  readonly interleavings: number
  readonly steps: number
  readonly broken?: { readonly what: string; readonly trace: readonly string[] }
}

/**
 * Takes every order of `depth` steps, each from the start and to its rest, or the first that breaks a promise. The choice
 * that is made at each place counts up like the digits of a number, of which each has its own base.
 */
export async function everyInterleaving(
  scenario: Scenario,
  parts: WorldParts,
  depth = scenario.depth,
): Promise<Explored> {
  const digits: number[] = []
  let [interleavings, steps] = [0, 0]
  for (;;) {
    const bases: number[] = []
    const run = await played(scenario, parts, depth, (choices, place) => {
      bases.push(choices.length)
      return digits[place] ?? 0
    })
    interleavings += 1
    steps += run.steps
    if (run.broken !== undefined) return { interleavings, steps, broken: run.broken }
    while (digits.length < bases.length) digits.push(0)
    while (digits.length > 0 && digits.at(-1)! + 1 >= bases[digits.length - 1]!) digits.pop()
    if (digits.length === 0) return { interleavings, steps }
    digits[digits.length - 1]! += 1
  }
}

/** `count` walks of `length` steps, each drawn by chance from the seed. */
export async function walks(
  scenario: Scenario,
  parts: WorldParts,
  { seed, count, length }: { readonly seed: number; readonly count: number; readonly length: number },
): Promise<Explored> {
  let steps = 0
  for (let i = 0; i < count; i += 1) {
    const dice = new Dice(seed + i)
    const run = await played(scenario, parts, length, (choices) => dice.whole(0, choices.length - 1))
    steps += run.steps
    if (run.broken !== undefined) return { interleavings: i + 1, steps, broken: run.broken }
  }
  return { interleavings: count, steps }
}

async function played(
  scenario: Scenario,
  parts: WorldParts,
  length: number,
  choose: (choices: readonly string[], place: number) => number,
): Promise<{ readonly steps: number; readonly broken?: Explored['broken'] }> {
  const trace: string[] = []
  const world = await SimulatedWorld.of(scenario, parts)
  try {
    for (let place = 0; place < length; place += 1) {
      const { choices } = world
      const step = choices[choose(choices, place)]!
      trace.push(step)
      await world.take(step)
    }
    trace.push('(everybody does what is right from here on)')
    await world.comeToRest()
    return { steps: world.steps }
  } catch (error) {
    if (!(error instanceof Violation)) throw error
    return { steps: world.steps, broken: { what: error.message, trace } }
  }
}
