/** The lanes of the queues of a SQLite store: rows are written before a query looks for lanes, and before the commit. */

import { HeldLanes, type LaneRow, laneColumns } from '../../rows/held-lanes.js'
import type { CountedQueue } from '../../rows/queue-row.js'
import type { SqlValue } from '../../rows/stored-text.js'
import { turnStep } from '../../rules/fair-share.js'
import type { Database, Statement } from '../file/sqlite-driver.js'

export class SqliteLanes extends HeldLanes {
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
    super()
    this.#select = db.prepare(`SELECT ${laneColumns.join(', ')} FROM lane WHERE qid = ? AND grp = ?`)
    this.#write = db.prepare(
      `INSERT OR REPLACE INTO lane (qid, grp, ${laneColumns.join(', ')}) VALUES (?, ?, ${laneColumns.map(() => '?').join(', ')})`,
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
         (SELECT grp, ?2 + ${turnStep} * row_number() OVER (ORDER BY shut_until, grp) AS turn FROM lane WHERE qid = ?1 AND shut_until IS NOT NULL) AS opened
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

  /** The groups of the first open lanes, at most `most`. */
  turns(queue: CountedQueue, most: number): string[] {
    this.flush()
    return (this.#turns.all(queue.qid, most) as { grp: string }[]).map(({ grp }) => grp)
  }

  /** When the first lane that has a job opens by itself; undefined if none does. */
  opensAt(queue: CountedQueue): number | undefined {
    if (!queue.laned) return undefined
    this.flush()
    const found = this.#opening.get(queue.qid, this.readyIn(queue, '') > 0 ? 1 : 0) as
      | { shut_until: number }
      | undefined
    return found?.shut_until
  }

  /** Gives turns by new limits of running jobs. */
  relimit(queue: CountedQueue): void {
    if (!queue.laned) return
    this.flush()
    for (const { grp } of this.#busy.all(queue.qid) as { grp: string }[]) this.refresh(queue, grp)
  }

  /** Opens the lanes whose time has come, at most `most`, in the order of their times. */
  openDue(queue: CountedQueue, now: number, most: number): void {
    if (!queue.laned) return
    this.flush()
    const due = this.#due.all(queue.qid, now, most) as { grp: string }[]
    for (const { grp } of due) this.open(queue, grp)
  }

  /** Opens all shut lanes, however many there are. */
  openAll(queue: CountedQueue): void {
    if (!queue.laned) return
    this.flush()
    const opened = Number(this.#openAll.run(queue.qid, queue.last_lane_turn).changes)
    queue.open_lanes += opened
    queue.last_lane_turn += turnStep * opened
    this.forget()
  }

  /** Ends the holds of all groups, however many there are. */
  releaseAll(queue: CountedQueue): void {
    if (!queue.laned) return
    this.flush()
    this.#dropHeld.run(queue.qid)
    this.#endHolds.run(queue.qid)
    this.openAll(queue)
  }

  /** Drops at most `most` holds that are over. */
  endLapsed(queue: CountedQueue, now: number, most: number): void {
    this.flush()
    for (const { grp } of this.#lapsed.all(queue.qid, now, most) as { grp: string }[])
      this.of(queue, grp).held_until = null
  }

  /** Counts the ready jobs of a lane anew: a wrong count must not stop a fleet. */
  recount(queue: CountedQueue, group: string): void {
    if (group === '') return
    const { n } = this.#recount.get(queue.qid, group) as { n: number }
    this.move(queue, group, n - this.of(queue, group).ready, 0)
  }

  protected write(queue: CountedQueue, group: string, lane: LaneRow | undefined): void {
    if (lane === undefined) this.#delete.run(queue.qid, group)
    else this.#write.run(queue.qid, group, ...laneColumns.map((column): SqlValue => lane[column]))
  }

  protected read(queue: CountedQueue, group: string): LaneRow | undefined {
    return this.#select.get(queue.qid, group) as LaneRow | undefined
  }
}
