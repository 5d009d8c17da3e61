/**
 * The lanes of a queue of the memory store: the turns of the groups that have ready jobs, and the shut groups. And whether a
 * shut lane or queue opens by itself, and when.
 */

import { compareBytes } from '../../rules/byte-order.js'
import type { MemoryJob } from './memory-job.js'
import type { SortedList } from './sorted-list.js'

/**
 * A group is in the turns or among the shut if its lane has a job and it is neither full nor paused; otherwise in neither. Each
 * claim that goes round looks for the group `''` itself.
 */
export class MemoryLanes {
  /** Open groups; the first is next. */
  readonly turns: string[] = []
  /** How many turns of its round an open group has had, if it has the next one too. */
  readonly had = new Map<string, number>()
  /** Shut groups, and until when. */
  readonly shut = new Map<string, number>()
  /** Groups that were held, and until when; including those that have no job now. */
  readonly held = new Map<string, number>()

  has(group: string): boolean {
    return this.shut.has(group) || this.turns.includes(group)
  }

  /** Its turn comes last. */
  open(group: string): void {
    this.leave(group)
    this.turns.push(group)
  }

  /** It has the next turn too. Takes the number of turns that it had in this round. */
  keepTurn(group: string, had: number): void {
    this.leave(group)
    this.turns.unshift(group)
    this.had.set(group, had)
  }

  close(group: string, until: number): void {
    this.leave(group)
    this.shut.set(group, until)
  }

  leave(group: string): void {
    this.shut.delete(group)
    this.had.delete(group)
    const at = this.turns.indexOf(group)
    if (at >= 0) this.turns.splice(at, 1)
  }

  /** Opens at most `most` lanes whose time has come, in the order of their times. */
  openDue(now: number, most: number): void {
    const due = [...this.shut].filter(([, until]) => until <= now)
    due.sort(([a, aUntil], [b, bUntil]) => aUntil - bUntil || compareBytes(a, b))
    for (const [group] of due.slice(0, most)) this.open(group)
  }

  hold(group: string, until: number): void {
    this.held.set(group, Math.max(until, this.held.get(group) ?? until))
    if (this.has(group)) this.close(group, Math.max(until, this.shut.get(group) ?? until))
  }

  /** Looks at a shut lane anew. */
  look(group: string): void {
    if (this.shut.has(group)) this.open(group)
  }

  /** Ends the hold of the group; a lane that is shut is looked at anew. Returns how many holds it ended. */
  release(group: string, now: number): number {
    const ended = this.heldUntil(group) > now ? 1 : 0
    this.held.delete(group)
    this.look(group)
    return ended
  }

  releaseAll(now: number): number {
    const ended = [...this.held.values()].filter((until) => until > now).length
    this.held.clear()
    this.openDue(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY)
    return ended
  }

  /** Until when it is held; not after `now`: it is not. */
  heldUntil(group: string): number {
    return this.held.get(group) ?? Number.NEGATIVE_INFINITY
  }

  /** Follows a clock that was set back. */
  turnBack(byMs: number): void {
    for (const untils of [this.shut, this.held]) for (const [group, until] of untils) untils.set(group, until - byMs)
  }
}

interface Shuttable {
  readonly ready: SortedList<MemoryJob>
  readonly suspects: SortedList<MemoryJob>
  /** When the whole queue opens. */
  readonly opensAt: number
  readonly hasLanes: boolean
  readonly lanes: MemoryLanes
  lane(group: string): readonly MemoryJob[]
}

/** Whether there are jobs in a lane that opens by itself. */
export function hasShutLane(queue: Shuttable): boolean {
  return shutLanes(queue).length > 0
}

/** When the first shut lane or queue opens; never: Infinity. */
export function nextOpening(queue: Shuttable, now: number): number {
  if (queue.ready.size === 0 && queue.suspects.size === 0) return Number.POSITIVE_INFINITY
  if (queue.opensAt > now) return queue.opensAt
  if (!queue.hasLanes) return Number.POSITIVE_INFINITY
  return Math.min(Number.POSITIVE_INFINITY, ...shutLanes(queue).map(([, until]) => until))
}

function shutLanes(queue: Shuttable): [group: string, until: number][] {
  return [...queue.lanes.shut].filter(([group]) => queue.lane(group).length > 0)
}
