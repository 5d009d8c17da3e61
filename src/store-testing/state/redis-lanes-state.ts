/** The lanes of a shard of a Redis store, in the form of the canonical state. */

import { compareBytes } from '../../stores/rules/byte-order.js'
import type { CanonicalLanes } from './canonical-state.js'

/** The keys of a shard that its lanes are in, by group. */
interface LaneKeys {
  readonly meta: ReadonlyMap<string, string>
  readonly turns: readonly string[]
  readonly shut: ReadonlyMap<string, number>
  /** With the paused groups, whose names follow a NUL. */
  readonly holds: ReadonlyMap<string, number>
}

/** Throws if `pausedGroups` does not say whether any group is paused. */
export function redisLanes({ meta, turns, shut, holds }: LaneKeys, now: number): CanonicalLanes {
  const isPause = (group: string) => group.startsWith('\0')
  const paused = [...holds.keys()].filter(isPause).map((group) => group.slice(1))
  if (meta.has('pausedGroups') !== paused.length > 0)
    throw new Error(`'pausedGroups' is wrong: ${paused.length} groups are paused`)
  const held = inLanes(new Map([...holds].filter(([group]) => !isPause(group))), now)
  return {
    turns,
    shut: inLanes(shut, now),
    held: held.filter(({ inMs }) => inMs > 0),
    paused: paused.sort(compareBytes),
  }
}

function inLanes(groups: ReadonlyMap<string, number>, now: number): CanonicalLanes['shut'] {
  return [...groups]
    .map(([group, until]) => ({ group, inMs: until - now }))
    .sort((a, b) => compareBytes(a.group, b.group))
}
