/** The weight of a claim of plain jobs in a SQLite store: how many of the first jobs it can carry. */

import type { Payload } from '../../../core/values/codec.js'
import { weightOf } from '../../rules/claim-weight.js'
import type { ReadyPool } from '../../rules/fair-share.js'
import type { Database, Statement } from '../file/sqlite-driver.js'
import { poolJobs } from '../file/sqlite-schema.js'
import type { QueueRow } from './sqlite-queue.js'

/** A claim of this many jobs cannot weigh too much if each, with its checkpoint, is light. */
const lightJobs = 512

export class SqliteClaimWeight {
  readonly #mostBytes: number
  readonly #lightBytes: number
  readonly #weights: Record<'free' | 'suspects' | 'lane', Statement>

  /** `mostBytes`: see `rules/claim-weight`. */
  constructor(db: Database, mostBytes: number) {
    this.#mostBytes = mostBytes
    this.#lightBytes = Math.floor(mostBytes / lightJobs / 2)
    // The sizes are in the head of a row: no page of a large payload is read for them.
    const weights = (jobs: string) =>
      db.prepare(
        `SELECT json_group_array(bytes) AS bytes FROM
           (SELECT octet_length(payload) + ifnull(octet_length(meta), 0)
              + iif(noted, ifnull((SELECT octet_length(payload) FROM checkpoint WHERE checkpoint.rid = job.rid), 0), 0) AS bytes
            FROM ${jobs} ORDER BY rank, position, rid LIMIT ?)`,
      )
    this.#weights = {
      free: weights(poolJobs.free),
      suspects: weights(poolJobs.suspects),
      lane: weights(poolJobs.lane),
    }
  }

  /**
   * Takes note of a stored job or checkpoint. One that is not light marks its queue: from then on its claims are
   * weighed.
   */
  add(queue: QueueRow, stored: { readonly payload: Payload; readonly meta?: Payload | undefined }): void {
    if (queue.weighed === 1) return
    const most = this.#lightBytes
    const { payload, meta } = stored
    // No character takes more than three bytes, so few texts have to be measured.
    if (3 * (payload.length + (meta?.length ?? 0)) > most) this.addWeight(queue, weightOf(stored))
  }

  /** Takes note of stored jobs by the weight of the heaviest, in bytes. */
  addWeight(queue: QueueRow, bytes: number): void {
    if (bytes > this.#lightBytes) queue.weighed = 1
  }

  /** Whether a claim of `limit` jobs of this queue may weigh too much. */
  areNeeded(queue: QueueRow, limit: number): boolean {
    return queue.weighed === 1 || limit > lightJobs || this.#lightBytes === 0
  }

  /**
   * How many of the first jobs of a pool, at most `most`, a claim takes that weighs `before` bytes, and its weight
   * then.
   */
  weigh(
    queue: QueueRow,
    pool: ReadyPool,
    most: number,
    before: number,
  ): { readonly jobs: number; readonly bytes: number } {
    const { bytes: text } = (
      typeof pool === 'string'
        ? this.#weights[pool].get(queue.qid, most)
        : this.#weights.lane.get(queue.qid, pool.group, most)
    ) as { bytes: string }
    let jobs = 0
    let bytes = before
    for (const weight of JSON.parse(text) as number[]) {
      if (bytes >= this.#mostBytes) break
      bytes += weight
      jobs += 1
    }
    return { jobs, bytes }
  }
}
