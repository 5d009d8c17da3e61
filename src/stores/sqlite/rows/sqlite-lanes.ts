/**
 * The lanes of the queues of a SQLite store: how many jobs of each group are ready and running, the turns of the open
 * lanes, and which lanes are shut, held back or paused. A group has a row as long as one of these applies. Rows are held during
 * a transaction, and written before a query looks for lanes and before the commit. Only claims that go round the lanes
 * use the lane `''`, which is for jobs without a group.
 */

import type { Database, SqlValue, Statement } from '../file/sqlite-driver.js'
import { ready, running } from '../file/sqlite-schema.js'
import { ordinary, type QueueRow } from './sqlite-queue.js'

/** A row of `lane`. Property names are column names. */
interface LaneRow {
  /** Ready jobs that any claim may receive, and running jobs; both are 0 in the lane `''`: see `readyIn`. */
  ready: number
  running: number
  /** Its place among the open lanes. */
  turn: number | null
  /** The instant until which it is shut. A shut lane has no turn. */
  shut_until: number | null
  held_until: number | null
  paused: number
}

const columns = ['ready', 'running', 'turn', 'shut_until', 'held_until', 'paused'] as const
const blank: LaneRow = { ready: 0, running: 0, turn: null, shut_until: null, held_until: null, paused: 0 }

interface HeldLane {
  readonly queue: QueueRow
  readonly group: string
  readonly lane: LaneRow
  /** The row as written; undefined if there is none. */
  before: LaneRow | undefined
}

/** The properties of a job that its lane depends on. */
interface LanedJob {
  readonly state: number
  readonly suspect: number
  readonly grp: string | null
}

export class SqliteLanes {
  #held = new Map<string, HeldLane>()
  readonly #select: Statement
  readonly #write: Statement
  readonly #delete: Statement
  readonly #turns: Statement
  readonly #due: Statement
  readonly #opening: Statement
  readonly #openAll: Statement
  readonly #lapsed: Statement
  readonly #dropHeld: Statement
  readonly #endHolds: Statement
  readonly #busy: Statement
  readonly #recount: Statement

  constructor(db: Database) {
    this.#select = db.prepare(`SELECT ${columns.join(', ')} FROM lane WHERE qid = ? AND grp = ?`)
    this.#write = db.prepare(
      `INSERT OR REPLACE INTO lane (qid, grp, ${columns.join(', ')}) VALUES (?, ?, ${columns.map(() => '?').join(', ')})`,
    )
    this.#delete = db.prepare('DELETE FROM lane WHERE qid = ? AND grp = ?')
    this.#turns = db.prepare('SELECT grp FROM lane WHERE qid = ? AND turn IS NOT NULL ORDER BY turn LIMIT ?')
    this.#due = db.prepare(
      'SELECT grp FROM lane WHERE qid = ? AND shut_until IS NOT NULL AND shut_until <= ? ORDER BY shut_until, grp LIMIT ?',
    )
    this.#opening = db.prepare(
      `SELECT shut_until FROM lane WHERE qid = ?1 AND shut_until IS NOT NULL AND (grp <> '' OR ?2) ORDER BY shut_until LIMIT 1`,
    )
    this.#openAll = db.prepare(
      `UPDATE lane SET shut_until = NULL, turn = opened.turn FROM
         (SELECT grp, ?2 + row_number() OVER (ORDER BY shut_until, grp) AS turn FROM lane WHERE qid = ?1 AND shut_until IS NOT NULL) AS opened
       WHERE lane.qid = ?1 AND lane.grp = opened.grp`,
    )
    this.#lapsed = db.prepare(
      'SELECT grp FROM lane WHERE qid = ? AND held_until IS NOT NULL AND held_until <= ? LIMIT ?',
    )
    this.#dropHeld = db.prepare(
      'DELETE FROM lane WHERE qid = ? AND held_until IS NOT NULL AND ready + running + paused = 0 AND turn IS NULL AND shut_until IS NULL',
    )
    this.#endHolds = db.prepare('UPDATE lane SET held_until = NULL WHERE qid = ? AND held_until IS NOT NULL')
    this.#busy = db.prepare("SELECT grp FROM lane WHERE qid = ? AND running > 0 AND grp <> '' ORDER BY grp")
    this.#recount = db.prepare(
      'SELECT count(*) AS n FROM job INDEXED BY job_lane WHERE qid = ? AND state = 1 AND pool = 2 AND grp = ?',
    )
  }

  /** The number of ready jobs that any claim may receive. */
  readyIn(queue: QueueRow, group: string): number {
    return group === '' ? ordinary(queue) - queue.grouped : this.#of(queue, group).ready
  }

  runningIn(queue: QueueRow, group: string): number {
    return group === '' ? queue.running - queue.grouped_running : this.#of(queue, group).running
  }

  /** How many more jobs of the group may run: none while it is paused. */
  roomIn(queue: QueueRow, group: string): number {
    if (group !== '' && this.#of(queue, group).paused === 1) return 0
    if (queue.max_per_group === null) return Number.POSITIVE_INFINITY
    return queue.max_per_group - this.runningIn(queue, group)
  }

  /** Whether the lane has a turn. */
  isOpen(queue: QueueRow, group: string): boolean {
    return this.#of(queue, group).turn !== null
  }

  /** The instant until which the lane is shut; undefined if it is not. */
  shutUntil(queue: QueueRow, group: string): number | undefined {
    return this.#of(queue, group).shut_until ?? undefined
  }

  /** The instant until which the group is held back; -Infinity if it is not. */
  heldUntil(queue: QueueRow, group: string): number {
    return this.#of(queue, group).held_until ?? Number.NEGATIVE_INFINITY
  }

  /** The groups of the first open lanes, at most `most`. */
  turns(queue: QueueRow, most: number): string[] {
    this.flush()
    return (this.#turns.all(queue.qid, most) as { grp: string }[]).map(({ grp }) => grp)
  }

  /** When the first lane that has a job opens by itself; undefined if none does. */
  opensAt(queue: QueueRow): number | undefined {
    if (!queue.laned) return undefined
    this.flush()
    const found = this.#opening.get(queue.qid, this.readyIn(queue, '') > 0 ? 1 : 0) as
      | { shut_until: number }
      | undefined
    return found?.shut_until
  }

  // Changes

  /**
   * Counts the job in its lane, or no longer, by its state. Afterwards `refresh` decides whether the lane has a turn.
   */
  count(queue: QueueRow, job: LanedJob, by: 1 | -1): void {
    const { state, suspect, grp } = job
    if (grp === null) return
    // Also for a scheduled job: the claim that promotes it must find the queue laned.
    queue.laned = 1
    if (state === running) this.#move(queue, grp, 0, by)
    else if (state === ready && suspect === 0) this.#move(queue, grp, by, 0)
  }

  /** Counts `taken` ready jobs of a lane as running. */
  take(queue: QueueRow, group: string, taken: number): void {
    if (group !== '') this.#move(queue, group, -taken, taken)
  }

  #move(queue: QueueRow, group: string, readyBy: number, runningBy: number): void {
    const lane = this.#of(queue, group)
    lane.ready += readyBy
    lane.running += runningBy
    queue.grouped += readyBy
    queue.grouped_running += runningBy
  }

  /** A lane has a turn while it has a job and its group has room. A shut lane waits for its time. */
  refresh(queue: QueueRow, grp: string | null): void {
    if (grp === null) return
    const lane = this.#of(queue, grp)
    const isOpen = lane.ready > 0 && this.roomIn(queue, grp) > 0
    if (!isOpen) this.leave(queue, grp)
    else if (lane.turn === null && lane.shut_until === null) this.open(queue, grp)
  }

  /** Gives turns by new limits of running jobs. */
  relimit(queue: QueueRow): void {
    if (!queue.laned) return
    this.flush()
    for (const { grp } of this.#busy.all(queue.qid) as { grp: string }[]) this.refresh(queue, grp)
  }

  /** Gives the lane the last turn. */
  open(queue: QueueRow, group: string): void {
    this.leave(queue, group)
    queue.laned = 1
    queue.open_lanes += 1
    queue.last_lane_turn += 1
    this.#of(queue, group).turn = queue.last_lane_turn
  }

  close(queue: QueueRow, group: string, until: number): void {
    this.leave(queue, group)
    queue.laned = 1
    this.#of(queue, group).shut_until = until
  }

  leave(queue: QueueRow, group: string): void {
    const lane = this.#of(queue, group)
    if (lane.turn !== null) queue.open_lanes -= 1
    lane.turn = null
    lane.shut_until = null
  }

  /** Opens the lanes whose time has come, at most `most`, in the order of their times. */
  openDue(queue: QueueRow, now: number, most: number): void {
    if (!queue.laned) return
    this.flush()
    const due = this.#due.all(queue.qid, now, most) as { grp: string }[]
    for (const { grp } of due) this.open(queue, grp)
  }

  /** Opens all shut lanes, however many there are. */
  openAll(queue: QueueRow): void {
    if (!queue.laned) return
    this.flush()
    const opened = Number(this.#openAll.run(queue.qid, queue.last_lane_turn).changes)
    queue.open_lanes += opened
    queue.last_lane_turn += opened
    this.forget()
  }

  /** Holds the group back until `until`; a longer hold stays. Drops at most `most` holds that are over. */
  hold(queue: QueueRow, group: string, until: number, now: number, most: number): void {
    this.flush()
    for (const { grp } of this.#lapsed.all(queue.qid, now, most) as { grp: string }[])
      this.#of(queue, grp).held_until = null
    queue.laned = 1
    const lane = this.#of(queue, group)
    lane.held_until = Math.max(until, lane.held_until ?? until)
    if (lane.turn !== null || lane.shut_until !== null)
      this.close(queue, group, Math.max(until, lane.shut_until ?? until))
  }

  /** Looks at a shut lane anew. */
  look(queue: QueueRow, group: string): void {
    if (this.#of(queue, group).shut_until !== null) this.open(queue, group)
  }

  /** Ends the hold of the group. A lane that is shut is looked at anew. */
  release(queue: QueueRow, group: string): void {
    this.#of(queue, group).held_until = null
    this.look(queue, group)
  }

  /** Ends the holds of all groups, however many there are. */
  releaseAll(queue: QueueRow): void {
    if (!queue.laned) return
    this.flush()
    this.#dropHeld.run(queue.qid)
    this.#endHolds.run(queue.qid)
    this.openAll(queue)
  }

  /** Pauses the group, or ends that. */
  pause(queue: QueueRow, group: string, paused: 0 | 1): void {
    if (paused === 1) queue.laned = 1
    this.#of(queue, group).paused = paused
    this.refresh(queue, group)
  }

  /** Counts the ready jobs of a lane anew: a wrong count must not stop a fleet. */
  recount(queue: QueueRow, group: string): void {
    if (group === '') return
    const { n } = this.#recount.get(queue.qid, group) as { n: number }
    this.#move(queue, group, n - this.#of(queue, group).ready, 0)
  }

  /** Writes the changed lanes. */
  flush(): void {
    for (const held of this.#held.values()) {
      const { queue, group, lane, before } = held
      if (columns.every((column) => lane[column] === (before ?? blank)[column])) continue
      if (columns.every((column) => lane[column] === blank[column])) {
        this.#delete.run(queue.qid, group)
        held.before = undefined
        continue
      }
      this.#write.run(queue.qid, group, ...columns.map((column): SqlValue => lane[column]))
      held.before = { ...lane }
    }
  }

  /** Forgets the held lanes, also unwritten ones. */
  forget(): void {
    this.#held = new Map()
  }

  #of(queue: QueueRow, group: string): LaneRow {
    const key = `${queue.qid} ${group}`
    const held = this.#held.get(key)
    if (held !== undefined) return held.lane
    const row = queue.laned ? (this.#select.get(queue.qid, group) as LaneRow | undefined) : undefined
    const lane = { ...(row ?? blank) }
    this.#held.set(key, { queue, group, lane, before: row })
    return lane
  }
}
