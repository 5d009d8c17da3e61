/** Lanes and counters of a limited queue as they were looked at, and what a decision changes in them. Pure. */

import { HeldLanes, type LaneRow } from '../../rows/held-lanes.js'
import type { CountedQueue } from '../../rows/queue-row.js'
import type { RateShelf } from '../../rows/scope-throttle.js'
import type { CounterRow, CounterShelf } from '../../rows/throttle-row.js'
import { compareBytes } from '../../rules/byte-order.js'
import { turnStep } from '../../rules/fair-share.js'
import type { LimitedPlan, LimitsLook, LookedStarts, ScopeChanges } from './limits-look.js'

/** Stands for all other queues of the scope. */
export const elsewhereQid = -1

const absent: LaneRow = { ready: 0, running: 0, turn: null, shut_until: null, held_until: null, paused: 0 }

export class LookedLanes extends HeldLanes {
  readonly #before = new Map<string, LaneRow>()
  readonly #now = new Map<string, LaneRow>()
  readonly #elsewhere = new Set<string>()
  readonly #opening: number | undefined
  /** The last turn that was looked at, if there are more: lanes that come later must wait for those. */
  readonly #lastTurn: number

  constructor({ limits }: LimitsLook) {
    super()
    const turns = limits.lanes.filter(([, turn]) => turn !== null)
    for (const [group, turn, shut_until, held_until, paused, n, , , running, elsewhere] of limits.lanes) {
      const ready = group === '' ? 0 : n > limits.most ? n + 1 : n
      const lane = { ready, running: running ?? 0, turn, shut_until, held_until, paused: paused ? 1 : 0 }
      this.#before.set(group, group === '' ? { ...lane, running: 0 } : lane)
      if (elsewhere) this.#elsewhere.add(group)
    }
    this.#opening = limits.opening ?? undefined
    this.#lastTurn = limits.open > turns.length ? Math.max(...turns.map(([, turn]) => turn!)) : Number.POSITIVE_INFINITY
  }

  turns({ qid }: CountedQueue, most: number): string[] {
    if (qid === elsewhereQid) return []
    this.flush()
    return [...this.#all()]
      .filter(([, { turn }]) => turn !== null && turn <= this.#lastTurn)
      .sort(([, a], [, b]) => a.turn! - b.turn!)
      .slice(0, most)
      .map(([group]) => group)
  }

  opensAt(queue: CountedQueue): number | undefined {
    this.flush()
    const shut = [...this.#all()].flatMap(([group, { shut_until }]) =>
      shut_until === null || (group === '' && this.readyIn(queue, '') <= 0) ? [] : [shut_until],
    )
    const opening = this.#opening === undefined ? [] : [this.#opening]
    return shut.length + opening.length === 0 ? undefined : Math.min(...shut, ...opening)
  }

  openDue(queue: CountedQueue, now: number, most: number): void {
    this.flush()
    const due = [...this.#all()].flatMap(([group, { shut_until: until }]) =>
      until !== null && until <= now ? [{ group, until }] : [],
    )
    due.sort((a, b) => a.until - b.until || compareBytes(a.group, b.group))
    for (const { group } of due.slice(0, most)) this.open(queue, group)
  }

  /** What becomes of the lanes that have changed. */
  changes(): Pick<LimitedPlan, 'lanes' | 'closed'> {
    this.flush()
    const changed = [...this.#now].filter(([group, lane]) => {
      const { turn, shut_until } = this.#before.get(group) ?? absent
      return lane.turn !== turn || lane.shut_until !== shut_until
    })
    const closed = changed.filter(([, { turn, shut_until }]) => turn === null && shut_until === null)
    return {
      lanes: changed
        .filter((one) => !closed.includes(one))
        .sort(([, a], [, b]) => (a.turn ?? 0) - (b.turn ?? 0))
        .map(([g, { turn, shut_until }]) => ({ g, until: shut_until, kept: this.#isKept(g, turn) ? turn : null })),
      closed: closed.map(([group]) => group),
    }
  }

  /** Whether it has its place in the turns once more. */
  #isKept(group: string, turn: number | null): boolean {
    const before = this.#before.get(group)?.turn ?? null
    return turn !== null && before !== null && Math.floor(turn / turnStep) === Math.floor(before / turnStep)
  }

  protected read({ qid }: CountedQueue, group: string): LaneRow | undefined {
    if (qid === elsewhereQid) return this.#elsewhere.has(group) ? { ...absent, ready: 1 } : undefined
    return this.#before.get(group)
  }

  protected write({ qid }: CountedQueue, group: string, lane: LaneRow | undefined): void {
    if (qid !== elsewhereQid) this.#now.set(group, { ...(lane ?? absent) })
  }

  #all(): Map<string, LaneRow> {
    return new Map([...this.#before, ...this.#now])
  }
}

/** How many counters have a last start at `from` or later: a question that only the database answers. */
interface CounterQuestion {
  readonly earlier: boolean
  readonly recoveries: number
  readonly from: number
  readonly except: string | null
}

export class LookedCounters implements CounterShelf, RateShelf {
  readonly questions: CounterQuestion[] = []
  readonly #rows = new Map<string, CounterRow>()
  readonly #starts = new Map<number, LookedStarts>()
  readonly #rules = new Map<string, string>()
  readonly #oldest: LimitsLook['limits']['oldest']
  readonly #changed = new Set<string>()
  readonly #started = new Map<number, LookedStarts>()
  readonly #dropped = new Map<number, number>()
  readonly #trims: { recoveries: number; before: number; most: number }[] = []

  constructor({ limits }: LimitsLook) {
    const counters = limits.lanes.map(([, , , , , , , , , , , counter, starts]) => [counter, starts] as const)
    for (const [counter, starts] of [...counters, limits.whole ?? [null, null]]) {
      if (counter === null) continue
      this.#rows.set(counter.subject, counter)
      this.#starts.set(counter.tid, [...(starts ?? [])])
    }
    for (const [group, , , , , , , , , , rules] of limits.lanes) if (rules !== null) this.#rules.set(group, rules)
    this.#oldest = limits.oldest
  }

  /** The rules of its own that a group has. */
  of(_: string, group: string): string | undefined {
    return this.#rules.get(group)
  }

  set(_: string, group: string, rules: string | undefined): void {
    if (rules === undefined) this.#rules.delete(group)
    else this.#rules.set(group, rules)
  }

  first(): never[] {
    return []
  }

  find(_: string, subject: string): CounterRow | undefined {
    return this.#rows.get(subject)
  }

  write(_: string, subject: string, row: Omit<CounterRow, 'tid'>, before: CounterRow | undefined): CounterRow {
    const written = { ...row, tid: before?.tid ?? -1 - this.#rows.size }
    this.#rows.set(subject, written)
    this.#changed.add(subject)
    return written
  }

  firstSeen(tid: number, from: number): number | undefined {
    return this.#startsOf(tid).find(([at]) => at >= from)?.[1]
  }

  atOf(tid: number, nth: number): number | undefined {
    return this.#startsOf(tid).findLast(([, before]) => before <= nth)?.[0]
  }

  start(tid: number, at: number, total: number): void {
    const starts = this.#startsOf(tid)
    if (starts.some(([one]) => one === at)) return
    starts.push([at, total])
    this.#started.set(tid, [...(this.#started.get(tid) ?? []), [at, total]])
  }

  drop(tid: number, before: number): void {
    this.#dropped.set(tid, before)
  }

  oldest(): Pick<CounterRow, 'recoveries' | 'shift_ms' | 'last_at'> | undefined {
    return this.#oldest ?? undefined
  }

  dropIdle(_: string, recoveries: number, before: number, most: number): void {
    this.#trims.push({ recoveries, before, most })
  }

  countSince(_: string, recoveries: number, from: number, except: string | null): number {
    this.questions.push({ earlier: false, recoveries, from, except })
    return 0
  }

  countBefore(_: string, recoveries: number, from: number, except: string | null): number {
    this.questions.push({ earlier: true, recoveries, from, except })
    return 0
  }

  changes(): Pick<ScopeChanges, 'counters' | 'trims'> {
    return {
      counters: [...this.#changed].map((subject) => {
        const { tid, ...row } = this.#rows.get(subject)!
        const { base, total, last_at, grids, epoch, recoveries, shift_ms } = row
        const starts = this.#started.get(tid) ?? []
        const dropBefore = this.#dropped.get(tid) ?? null
        return { subject, base, total, last_at, grids, epoch, recoveries, shift_ms, starts, dropBefore }
      }),
      trims: this.#trims,
    }
  }

  #startsOf(tid: number): LookedStarts {
    let starts = this.#starts.get(tid)
    if (starts === undefined) {
      starts = []
      this.#starts.set(tid, starts)
    }
    return starts
  }
}
