/**
 * The notes of the jobs of a SQLite store, each kind in a table of its own: checkpoints and logs, which attempts leave
 * to later ones, and fields.
 */

import type { JobFields } from '../../../core/job/job-fields.js'
import { joinedLog } from '../../../core/job/job-log.js'
import type { Beat, Checkpoint } from '../../contract/job-beat.js'
import { fromStored, payloadToStored, type SqlValue, toStored, valueFromStored } from '../../rows/stored-text.js'
import type { Database, Statement } from '../file/sqlite-driver.js'

export type Notes = Pick<Beat, 'checkpoint' | 'log'>

export class SqliteCheckpoints {
  readonly #selectCheckpoint: Statement
  readonly #writeCheckpoint: Statement
  readonly #deleteCheckpoint: Statement
  readonly #selectLog: Statement
  readonly #writeLog: Statement
  readonly #deleteLog: Statement
  readonly #selectFields: Statement
  readonly #writeFields: Statement
  readonly #deleteFields: Statement

  constructor(db: Database) {
    this.#selectCheckpoint = db.prepare('SELECT codec, payload FROM checkpoint WHERE rid = ?')
    this.#writeCheckpoint = db.prepare('INSERT OR REPLACE INTO checkpoint (rid, codec, payload) VALUES (?, ?, ?)')
    this.#deleteCheckpoint = db.prepare('DELETE FROM checkpoint WHERE rid = ?')
    this.#selectLog = db.prepare('SELECT text FROM log WHERE rid = ?')
    this.#writeLog = db.prepare('INSERT OR REPLACE INTO log (rid, text) VALUES (?, ?)')
    this.#deleteLog = db.prepare('DELETE FROM log WHERE rid = ?')
    this.#selectFields = db.prepare('SELECT json FROM fields WHERE rid = ?')
    this.#writeFields = db.prepare('INSERT OR REPLACE INTO fields (rid, json) VALUES (?, ?)')
    this.#deleteFields = db.prepare('DELETE FROM fields WHERE rid = ?')
  }

  /** Replaces the checkpoint and appends to the log, if given. The caller marks the job as `noted`. */
  add(rid: number, { checkpoint, log }: Notes): void {
    if (checkpoint !== undefined)
      this.#writeCheckpoint.run(rid, checkpoint.codec ?? null, payloadToStored(checkpoint.payload))
    if (log) this.#writeLog.run(rid, toStored(joinedLog(this.#logOf(rid) ?? '', log)))
  }

  checkpointOf(rid: number): Checkpoint | undefined {
    const row = this.#selectCheckpoint.get(rid) as { codec: string | null; payload: SqlValue } | undefined
    if (row === undefined) return undefined
    const payload = valueFromStored(row.payload) as Checkpoint['payload']
    return { payload, ...(row.codec === null ? {} : { codec: row.codec }) }
  }

  /** The fields of a job; an empty object if it has none. */
  fieldsOf(rid: number): JobFields {
    const row = this.#selectFields.get(rid) as { json: string } | undefined
    return row === undefined ? {} : (JSON.parse(row.json) as JobFields)
  }

  /** The caller marks the job as `noted`. */
  writeFields(rid: number, fields: JobFields): void {
    if (Object.keys(fields).length === 0) this.#deleteFields.run(rid)
    else this.#writeFields.run(rid, JSON.stringify(fields))
  }

  /** The checkpoint and log that attempts have left. */
  of(rid: number): Notes {
    const [checkpoint, log] = [this.checkpointOf(rid), this.#logOf(rid)]
    return { ...(checkpoint === undefined ? {} : { checkpoint }), ...(log === undefined ? {} : { log }) }
  }

  dropCheckpoint(rid: number): void {
    this.#deleteCheckpoint.run(rid)
  }

  /** Deletes all notes of a job that is removed. */
  drop(rid: number): void {
    this.#deleteCheckpoint.run(rid)
    this.#deleteLog.run(rid)
    this.#deleteFields.run(rid)
  }

  #logOf(rid: number): string | undefined {
    const row = this.#selectLog.get(rid) as { text: string } | undefined
    return row && fromStored(row.text)
  }
}
