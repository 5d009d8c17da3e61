/** The verdict on a history: whether every id is in the state that its changes make of it in order, without a queue. */

import type { Change } from './history.js'
import { after, blank, type State } from './state.js'

const mostProblems = 10

/** What a run from the first change to the last makes of each id. */
export function statesOf(changes: readonly Change[]): Map<string, State> {
  const states = new Map<string, State>()
  for (const change of changes) states.set(change.id, after(states.get(change.id) ?? blank, change))
  return states
}

/** Where the states differ from those; empty where each change was applied once and in order. */
export function differencesOf(changes: readonly Change[], states: ReadonlyMap<string, State>): string[] {
  const expected = statesOf(changes)
  const differences = [...expected].flatMap(([id, state]) => differenceOf(id, state, states.get(id) ?? blank))
  const strangers = [...states.keys()].filter((id) => !expected.has(id))
  return [...differences, ...strangers.map((id) => `${id}: a state that nobody asked for`)].slice(0, mostProblems)
}

function differenceOf(id: string, expected: State, found: State): string[] {
  if (found.changes !== expected.changes)
    return [`${id}: ${found.changes} changes were applied instead of ${expected.changes}`]
  if (found.digest !== expected.digest) return [`${id}: its ${found.changes} changes were not applied in their order`]
  return []
}
