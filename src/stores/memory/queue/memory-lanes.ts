/**
 * The lanes of a queue of the memory store: the turns of the groups that have ready jobs, and the shut groups. A group
 * is in the turns or among the shut if its lane has a job and it is neither full nor paused; otherwise in neither. Each claim that
 * goes round looks for the group `''` itself.
 */

import { compareBytes } from '../../rules/byte-order.js'

export class MemoryLanes {
  /** Open groups; the first is next. */
  readonly turns: string[] = []
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

  close(group: string, until: number): void {
    this.leave(group)
    this.shut.set(group, until)
  }

  leave(group: string): void {
    this.shut.delete(group)
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
