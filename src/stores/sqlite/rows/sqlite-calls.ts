/**
 * The enqueue calls that each queue remembers: a call that is sent again gets its first answer and has no second
 * effect. They are kept in memory, and written as one row per queue and transaction: a row per call would cost as much
 * as its job.
 */

import { Roster } from '../../../core/values/roster.js'
import type { Enqueued } from '../../contract/new-job.js'
import { callMemoryCount, callMemoryMs } from '../../rules/bounds.js'
import type { SqliteClock } from '../file/sqlite-clock.js'
import type { Database, Statement } from '../file/sqlite-driver.js'
import type { QueueRow } from './sqlite-queue.js'

/** The most emptied rows that are left in the table before they are deleted together. */
const mostEmptied = 64

/** The calls of one row. The row is deleted once none of them is remembered any more. */
interface CallBatch {
  cid: number
  left: number
}

interface RememberedCall {
  /** On the machine's monotonic clock: a step of the wall clock must neither drop a call nor keep it for longer. */
  readonly at: number
  /** One letter per job: see `letterOf`. */
  readonly letters: string
  readonly batch: CallBatch
}

interface Memory {
  readonly calls: Roster<string, RememberedCall>
  lastCid: number
  /** The calls of this transaction, to be written at its end. */
  fresh: [id: string, at: number, letters: string][]
  freshBatch: CallBatch
  /** The numbers of rows of which no call is remembered any more. */
  emptied: number[]
  /** Whether all that other connections wrote has been read. */
  isCurrent: boolean
  /**
   * The time of this transaction, on the monotonic clock, once it was needed. The clock is read once per transaction: a
   * reading costs as much as the rest of a call.
   */
  now: number | undefined
}

const letterOf: Record<Enqueued, string> = {
  added: 'a',
  merged: 'm',
  replaced: 'p',
  duplicate: 'd',
  dead: 'x',
  full: 'f',
  draining: 'r',
}
const answerOf: Record<string, Enqueued> = {
  a: 'added',
  m: 'merged',
  p: 'replaced',
  d: 'duplicate',
  x: 'dead',
  f: 'full',
  r: 'draining',
}

export class SqliteCalls {
  readonly #clock: SqliteClock
  readonly #memories = new Map<number, Memory>()
  readonly #select: Statement
  readonly #insert: Statement
  readonly #delete: Statement

  constructor(db: Database, clock: SqliteClock) {
    this.#clock = clock
    this.#select = db.prepare('SELECT cid, calls FROM call WHERE qid = ? AND cid > ? ORDER BY cid')
    this.#insert = db.prepare('INSERT INTO call (qid, cid, calls) VALUES (?, ?, ?)')
    this.#delete = db.prepare('DELETE FROM call WHERE qid = ? AND cid = ?')
  }

  /** The first answer to the call, while it is remembered. */
  answersTo(queue: QueueRow, id: string | undefined): Enqueued[] | undefined {
    if (id === undefined) return undefined
    const memory = this.#current(queue.qid)
    const call = memory.calls.get(id)
    return call !== undefined && call.at + callMemoryMs > this.#timeOf(memory)
      ? Array.from(call.letters, (letter) => answerOf[letter]!)
      : undefined
  }

  /**
   * The first answer to the call if it is remembered; otherwise the result of `answer`, which is remembered from then
   * on. A call without an id is never sent again.
   */
  once(queue: QueueRow, id: string | undefined, answer: () => Enqueued[]): Enqueued[] {
    if (id === undefined) return answer()
    const before = this.answersTo(queue, id)
    if (before !== undefined) return before
    const answers = answer()
    this.remember(queue, id, answers)
    return answers
  }

  remember(queue: QueueRow, id: string, answers: readonly Enqueued[]): void {
    const memory = this.#current(queue.qid)
    const at = this.#timeOf(memory)
    let letters = ''
    for (const answer of answers) letters += letterOf[answer]
    memory.fresh.push([id, at, letters])
    this.#add(memory, id, at, letters, memory.freshBatch)
    this.#trim(memory, at)
  }

  /** Writes the new calls. Called before each commit of a write. */
  flush(): void {
    for (const [qid, memory] of this.#memories) {
      memory.now = undefined
      if (memory.fresh.length === 0) continue
      memory.lastCid += 1
      this.#insert.run(qid, memory.lastCid, JSON.stringify(memory.fresh))
      memory.freshBatch.cid = memory.lastCid
      memory.fresh = []
      memory.freshBatch = { cid: 0, left: 0 }
      this.#deleteEmptied(qid, memory)
    }
  }

  /** Only when there are `mostEmptied` rows: a delete at each flush would write as many pages as the insert. */
  #deleteEmptied(qid: number, memory: Memory): void {
    if (memory.emptied.length < mostEmptied) return
    for (const cid of memory.emptied) this.#delete.run(qid, cid)
    memory.emptied = []
  }

  /** Called after a rollback: the calls in memory may never have been written. */
  forget(): void {
    this.#memories.clear()
  }

  /** Called after another connection has committed. */
  forgetCurrent(): void {
    for (const memory of this.#memories.values()) memory.isCurrent = false
  }

  #current(qid: number): Memory {
    let memory = this.#memories.get(qid)
    if (memory === undefined) {
      memory = {
        calls: new Roster(),
        lastCid: 0,
        fresh: [],
        freshBatch: { cid: 0, left: 0 },
        emptied: [],
        isCurrent: false,
        now: undefined,
      }
      this.#memories.set(qid, memory)
    }
    if (!memory.isCurrent) {
      for (const row of this.#select.all(qid, memory.lastCid)) {
        const { cid, calls } = row as { cid: number; calls: string }
        const batch: CallBatch = { cid, left: 0 }
        for (const [id, at, letters] of JSON.parse(calls) as [string, number, string][])
          this.#add(memory, id, at, letters, batch)
        memory.lastCid = cid
      }
      // Rows may hold calls that are already forgotten: see `#deleteEmptied`.
      this.#trim(memory, Number.NEGATIVE_INFINITY)
      memory.isCurrent = true
    }
    return memory
  }

  #timeOf(memory: Memory): number {
    memory.now ??= this.#clock.mono()
    return memory.now
  }

  #add(memory: Memory, id: string, at: number, letters: string, batch: CallBatch): void {
    const before = memory.calls.get(id)
    if (before !== undefined) this.#forgetCall(memory, id, before)
    batch.left += 1
    memory.calls.set(id, { at, letters, batch })
  }

  #trim(memory: Memory, mono: number): void {
    const { calls } = memory
    for (let id = calls.firstKey(); id !== undefined; id = calls.firstKey()) {
      const call = calls.get(id)!
      if (calls.size <= callMemoryCount && call.at + callMemoryMs > mono) break
      this.#forgetCall(memory, id, call)
    }
  }

  #forgetCall(memory: Memory, id: string, call: RememberedCall): void {
    memory.calls.delete(id)
    // Its row is deleted after the next insert, not before: it may be the newest row, whose number the next one
    // follows.
    if (--call.batch.left === 0 && call.batch.cid > 0) memory.emptied.push(call.batch.cid)
  }
}
