/**
 * The lanes of a queue in a SQL store: how many jobs of each group are ready and running, the turns of the open lanes, and
 * which lanes are shut, held back or paused. A group has a row as long as one of these applies. Rows are held during a
 * transaction, and written by the store. Only claims that go round the lanes use the lane `''`, which is for jobs without
 * a group. Pure.
 */

import { turnStep } from '../rules/fair-share.js'
import { type CountedJob, ready, running } from './job-row.js'
import { type CountedQueue, ordinary } from './queue-row.js'

/** A row of `lane`. Property names are column names. */
export interface LaneRow {
  /** Ready jobs that any claim may receive, and running jobs; both are 0 in the lane `''`: see `readyIn`. */
  ready: number
  running: number
  /** Its place among the open lanes: a multiple of `turnStep`, and the turns that it has had in its round. */
  turn: number | null
  /** The instant until which it is shut. A shut lane has no turn. */
  shut_until: number | null
  held_until: number | null
  paused: number
}

export const laneColumns = ['ready', 'running', 'turn', 'shut_until', 'held_until', 'paused'] as const
const blank: LaneRow = { ready: 0, running: 0, turn: null, shut_until: null, held_until: null, paused: 0 }

interface HeldLane {
  readonly queue: CountedQueue
  readonly group: string
  readonly lane: LaneRow
  /** The row as written; undefined if there is none. */
  before: LaneRow | undefined
}

export abstract class HeldLanes {
  #held = new Map<string, HeldLane>()

  protected abstract read(queue: CountedQueue, group: string): LaneRow | undefined

  /** `lane` is undefined if the group needs no row any more. */
  protected abstract write(queue: CountedQueue, group: string, lane: LaneRow | undefined): void

  /** The groups of the first open lanes, at most `most`. */
  abstract turns(queue: CountedQueue, most: number): string[]

  /** When the first lane that has a job opens by itself; undefined if none does. */
  abstract opensAt(queue: CountedQueue): number | undefined

  /** Opens the lanes whose time has come, at most `most`, in the order of their times. */
  abstract openDue(queue: CountedQueue, now: number, most: number): void

  /** The number of ready jobs that any claim may receive. */
  readyIn(queue: CountedQueue, group: string): number {
    return group === '' ? ordinary(queue) - queue.grouped : this.of(queue, group).ready
  }

  runningIn(queue: CountedQueue, group: string): number {
    return group === '' ? queue.running - queue.grouped_running : this.of(queue, group).running
  }

  /** How many more jobs of the group may run: none while it is paused. */
  roomIn(queue: CountedQueue, group: string): number {
    if (group !== '' && this.of(queue, group).paused === 1) return 0
    if (queue.max_per_group === null) return Number.POSITIVE_INFINITY
    return queue.max_per_group - this.runningIn(queue, group)
  }

  /** Whether the lane has a turn. */
  isOpen(queue: CountedQueue, group: string): boolean {
    return this.of(queue, group).turn !== null
  }

  /** The number of its turn; undefined if it has none. */
  turnOf(queue: CountedQueue, group: string): number | undefined {
    return this.of(queue, group).turn ?? undefined
  }

  /** The instant until which the lane is shut; undefined if it is not. */
  shutUntil(queue: CountedQueue, group: string): number | undefined {
    return this.of(queue, group).shut_until ?? undefined
  }

  /** The instant until which the group is held back; -Infinity if it is not. */
  heldUntil(queue: CountedQueue, group: string): number {
    return this.of(queue, group).held_until ?? Number.NEGATIVE_INFINITY
  }

  // Changes

  /**
   * Counts the job in its lane, or no longer, by its state. Afterwards `refresh` decides whether the lane has a turn.
   */
  count(queue: CountedQueue, job: Pick<CountedJob, 'state' | 'suspect' | 'grp'>, by: 1 | -1): void {
    const { state, suspect, grp } = job
    if (grp === null) return
    // Also for a scheduled job: the claim that promotes it must find the queue laned.
    queue.laned = 1
    if (state === running) this.move(queue, grp, 0, by)
    else if (state === ready && suspect === 0) this.move(queue, grp, by, 0)
  }

  /** Counts `taken` ready jobs of a lane as running. */
  take(queue: CountedQueue, group: string, taken: number): void {
    if (group !== '') this.move(queue, group, -taken, taken)
  }

  protected move(queue: CountedQueue, group: string, readyBy: number, runningBy: number): void {
    const lane = this.of(queue, group)
    lane.ready += readyBy
    lane.running += runningBy
    queue.grouped += readyBy
    queue.grouped_running += runningBy
  }

  /** A lane has a turn while it has a job and its group has room. A shut lane waits for its time. */
  refresh(queue: CountedQueue, grp: string | null): void {
    if (grp === null) return
    const lane = this.of(queue, grp)
    const isOpen = lane.ready > 0 && this.roomIn(queue, grp) > 0
    if (!isOpen) this.leave(queue, grp)
    else if (lane.turn === null && lane.shut_until === null) this.open(queue, grp)
  }

  /** Gives the lane the last turn. */
  open(queue: CountedQueue, group: string): void {
    queue.last_lane_turn += turnStep
    this.giveTurn(queue, group, queue.last_lane_turn)
  }

  /** Gives the lane the turn with this number. */
  giveTurn(queue: CountedQueue, group: string, turn: number): void {
    this.leave(queue, group)
    queue.laned = 1
    queue.open_lanes += 1
    this.of(queue, group).turn = turn
  }

  close(queue: CountedQueue, group: string, until: number): void {
    this.leave(queue, group)
    queue.laned = 1
    this.of(queue, group).shut_until = until
  }

  leave(queue: CountedQueue, group: string): void {
    const lane = this.of(queue, group)
    if (lane.turn !== null) queue.open_lanes -= 1
    lane.turn = null
    lane.shut_until = null
  }

  /** Holds the group back until `until`; a longer hold stays. */
  hold(queue: CountedQueue, group: string, until: number): void {
    queue.laned = 1
    const lane = this.of(queue, group)
    lane.held_until = Math.max(until, lane.held_until ?? until)
    if (lane.turn !== null || lane.shut_until !== null)
      this.close(queue, group, Math.max(until, lane.shut_until ?? until))
  }

  /** Looks at a shut lane anew. */
  look(queue: CountedQueue, group: string): void {
    if (this.of(queue, group).shut_until !== null) this.open(queue, group)
  }

  /** Ends the hold of the group. A lane that is shut is looked at anew. */
  release(queue: CountedQueue, group: string): void {
    this.of(queue, group).held_until = null
    this.look(queue, group)
  }

  /** Pauses the group, or ends that. */
  pause(queue: CountedQueue, group: string, paused: 0 | 1): void {
    if (paused === 1) queue.laned = 1
    this.of(queue, group).paused = paused
    this.refresh(queue, group)
  }

  protected of(queue: CountedQueue, group: string): LaneRow {
    const key = `${queue.qid} ${group}`
    const held = this.#held.get(key)
    if (held !== undefined) return held.lane
    const row = queue.laned ? this.read(queue, group) : undefined
    const lane = { ...(row ?? blank) }
    this.#held.set(key, { queue, group, lane, before: row })
    return lane
  }

  /** Writes the changed lanes. */
  flush(): void {
    for (const held of this.#held.values()) {
      const { queue, group, lane, before } = held
      if (laneColumns.every((column) => lane[column] === (before ?? blank)[column])) continue
      const isLeft = laneColumns.some((column) => lane[column] !== blank[column])
      this.write(queue, group, isLeft ? lane : undefined)
      held.before = isLeft ? { ...lane } : undefined
    }
  }

  /** Forgets the held lanes, also unwritten ones. */
  forget(): void {
    this.#held = new Map()
  }
}
