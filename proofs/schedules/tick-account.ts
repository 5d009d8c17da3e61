/**
 * The account of ticks: for each schedule the instants that were due, those that were enqueued, and the cause of each
 * that was not. A cause is what a worker has told. If the worker was killed before it could, it is the count that the
 * store has kept.
 */

import type { ScheduleRecord } from 'millrace'

export interface TickRow {
  readonly schedule: string
  readonly due: number
  readonly enqueued: number
  readonly causes: readonly (readonly [cause: string, count: number])[]
  readonly unknown: number
}

interface Account {
  /** When each instant was passed: the first and the last that the store has told. */
  firstAt: number
  lastAt: number
  record: ScheduleRecord
  /** The job of each instant. */
  readonly ticked: Map<number, string>
  readonly causes: Map<number, string>
}

const unknown = 'unknown'

export class TickAccount {
  readonly #everyMs: number
  readonly #accounts = new Map<string, Account>()

  constructor(everyMs: number) {
    this.#everyMs = everyMs
  }

  /** Instants in which more than one job was enqueued; a job that runs again is the same. */
  twice = 0

  /** A job of this instant began. */
  ticked(schedule: string, at: number, id: string): void {
    const { ticked } = this.#of(schedule)
    if ((ticked.get(at) ?? id) !== id) this.twice += 1
    ticked.set(at, id)
  }

  /** A worker told of ticks that it left out: up to this instant for the overlap, otherwise from it on. */
  told(schedule: string, at: number, ticks: number, reason: string): void {
    const { causes } = this.#of(schedule)
    const step = reason.startsWith('overlap') ? -this.#everyMs : this.#everyMs
    for (let i = 0; i < ticks; i += 1) causes.set(at + i * step, reason)
  }

  /** What the store has counted: instants that were passed since the last look, and how many of them were left out. */
  seen(records: readonly ScheduleRecord[]): void {
    for (const record of records) {
      const account = this.#of(record.name)
      const lastAt = record.lastAt?.getTime()
      if (lastAt === undefined) continue
      const before = account.record as ScheduleRecord | undefined
      if (account.firstAt === 0) {
        account.firstAt = lastAt
        account.lastAt = lastAt
      } else if (before !== undefined && lastAt > account.lastAt) {
        const [skipped, missed] = [record.skipped - before.skipped, record.missed - before.missed]
        // The latest of them was enqueued, unless it was skipped itself.
        let left = skipped + missed
        const cause = skipped > 0 ? 'overlap, counted; its teller was killed' : 'missed, counted; its teller was killed'
        for (let at = account.lastAt + this.#everyMs; at <= lastAt && left > 0; at += this.#everyMs, left -= 1)
          if (!account.causes.has(at) && !account.ticked.has(at)) account.causes.set(at, cause)
        account.lastAt = lastAt
      }
      account.record = record
    }
  }

  table(): TickRow[] {
    return [...this.#accounts]
      .filter(([, { firstAt }]) => firstAt > 0)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([schedule, { firstAt, lastAt, ticked, causes }]) => {
        const counts = new Map<string, number>()
        let due = 0
        for (let at = firstAt + this.#everyMs; at <= lastAt; at += this.#everyMs) {
          due += 1
          if (ticked.has(at)) continue
          const cause = causes.get(at) ?? unknown
          counts.set(cause, (counts.get(cause) ?? 0) + 1)
        }
        const leftOut = [...counts.values()].reduce((sum, count) => sum + count, 0)
        return { schedule, due, enqueued: due - leftOut, causes: [...counts], unknown: counts.get(unknown) ?? 0 }
      })
  }

  #of(schedule: string): Account {
    const known = this.#accounts.get(schedule)
    if (known !== undefined) return known
    const made = { firstAt: 0, lastAt: 0, ticked: new Map(), causes: new Map() } as unknown as Account
    this.#accounts.set(schedule, made)
    return made
  }
}
