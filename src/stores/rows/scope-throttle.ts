/**
 * The throttle of a scope in a SQL store: the decisions that are made of its rows, and what is written into them. Pure; the
 * store has the statements that read and write the rows.
 */

import {
  allRules,
  longestCountedMs,
  rulesIn,
  ruleText,
  type Throttle,
  type ThrottleRule,
} from '../../core/queue/throttle.js'
import type { GroupRate } from '../contract/throttles.js'
import { trimLimit } from '../rules/bounds.js'
import { firstGrid, type Grid, gridAfter, gridAtRest, permitsOf, type Sight } from '../rules/throttle/grid.js'
import { longestOf, ownAfter, ownIn, ownText } from '../rules/throttle/own-rates.js'
import {
  firstRecovery,
  longestSilenceMs,
  ownQuietUntil,
  type Recovery,
  recovered,
  recoveredCounter,
} from '../rules/throttle/throttle-recovery.js'
import { groupIn, rulesOfSubject, subjectOf } from '../rules/throttle/throttle-subjects.js'
import {
  type CounterRow,
  type CounterShelf,
  gridsIn,
  gridsText,
  type Outlook,
  sightIn,
  type ThrottleRow,
  throttleIn,
} from './throttle-row.js'

/** The two clocks at the moment of a call, and the boot from which the monotonic one counts. */
export interface Moment {
  readonly now: number
  readonly mono: number
  readonly run: string
}

/** The rules that groups have for themselves, as stored texts. */
export interface RateShelf {
  of(scope: string, group: string): string | undefined
  /** `undefined`: the group has none. */
  set(scope: string, group: string, rules: string | undefined): void
  /** The first groups, by name. */
  first(scope: string, most: number): { readonly grp: string; readonly rules: string }[]
}

/** A counter as it is now, with at least one start that a window still sees. */
interface SeenCounter {
  readonly row: CounterRow
  readonly outlook: Outlook
  readonly lastAt: number
  readonly grids: readonly Grid[]
}

/** Of grids that begin anew. */
const noEpoch = -1

const nothing: Sight = { hits: 0, opensAt: Number.NEGATIVE_INFINITY, catchesUpAt: Number.NEGATIVE_INFINITY }

/**
 * The throttle of one scope during a transaction: how many more jobs it permits, and what it records of those that start.
 * It reads and writes rows by its shelves, and decides by the rules of `rules/throttle`.
 */
export class ScopeThrottle {
  readonly row: ThrottleRow
  readonly #counters: CounterShelf
  readonly #rates: RateShelf
  #settings: Throttle
  /** The rules of groups that were looked up; undefined: those of all groups. */
  readonly #ofGroups = new Map<string, readonly ThrottleRule[] | undefined>()

  constructor(row: ThrottleRow, counters: CounterShelf, rates: RateShelf) {
    this.row = row
    this.#counters = counters
    this.#rates = rates
    this.#settings = throttleIn(row)
  }

  get by(): Throttle['by'] {
    return this.row.counts_by
  }

  /** The throttle as it is set; `row` has what was counted, too. */
  get settings(): Throttle {
    return this.#settings
  }

  /** The rules that this group has for itself. */
  rateOf(group: string): readonly ThrottleRule[] | undefined {
    if (this.row.own === '') return undefined
    if (!this.#ofGroups.has(group)) {
      const text = this.#rates.of(this.row.scope, group)
      this.#ofGroups.set(group, text === undefined ? undefined : rulesIn(text))
    }
    return this.#ofGroups.get(group)
  }

  /** The first groups with rules of their own, by name. */
  rates(most: number): GroupRate[] {
    return this.#rates.first(this.row.scope, most).map(({ grp, rules }) => ({ group: grp, rules: rulesIn(rules) }))
  }

  /** Gives one group other rules; `undefined`: those of all groups. Its starts stay; its grids begin anew. */
  setRate(group: string, rules: readonly ThrottleRule[] | undefined): void {
    const { row } = this
    row.own = ownText(ownAfter(ownIn(row.own), this.rateOf(group) !== undefined, rules))
    this.#settings = throttleIn(row)
    this.#rates.set(row.scope, group, rules?.map(ruleText).join(' '))
    this.#ofGroups.delete(group)
    const subject = subjectOf(this.#settings, group)
    const counter = this.#counters.find(row.scope, subject)
    if (counter !== undefined) this.#counters.write(row.scope, subject, { ...counter, epoch: noEpoch }, counter)
  }

  #rulesOf(subject: string): readonly ThrottleRule[] {
    return rulesOfSubject(this.#settings, subject, (group) => this.rateOf(group))
  }

  /** Replaces the rules, of all jobs or of each group. The starts stay; grids begin anew when they are next looked at. */
  change(rules: readonly ThrottleRule[], by = this.by): void {
    const text = rules.map(ruleText).join(' ')
    if (by === this.by) this.row.rules = text
    else this.row.each_group = text
    this.row.epoch += 1
    this.#settings = throttleIn(this.row)
  }

  /** How many jobs may start, and, if none may, the ms until one may. */
  permits(subject: string, moment: Moment): { readonly permits: number; readonly forMs: number } {
    this.#arm(moment)
    const at = this.#instant(moment.mono)
    const late = at - moment.mono
    const { permits, forMs } = this.#permitted(subject, at)
    const quietForMs = this.quietForMs(at, subject)
    if (quietForMs > 0) return { permits: 0, forMs: Math.max(quietForMs, forMs) + late }
    return { permits, forMs: permits > 0 ? 0 : forMs + late }
  }

  /** Records that `count` jobs were taken, which may be late. `hasMore`: something is left that could start. */
  started(subject: string, count: number, hasMore: boolean, { now, mono }: Moment, lateMs = 0): void {
    const { row } = this
    const at = this.#instant(mono)
    Object.assign(row, { last_at: at, last_wall: now + at - mono })
    const rules = this.#rulesOf(subject)
    const seen = this.#seen(subject, at)
    const startAt = Math.max(at + lateMs, seen?.lastAt ?? at)
    const grids = rules.map((rule, i) =>
      hasMore ? gridAfter(rule, gridOf(seen, i), this.#sight(seen, rule, at), count, at) : gridAtRest(rule, startAt),
    )
    const written = this.#written(subject, seen, { last_at: startAt, grids })
    const before = written.total
    written.total += count
    const found = this.#counters.find(row.scope, subject)
    const { tid } = this.#counters.write(row.scope, subject, written, found)
    this.#counters.start(tid, startAt - written.base, before, count)
    if (found !== undefined) this.#counters.drop(tid, at - longestCountedMs(rules) - written.base)
  }

  /** Records that nothing is left that could start. */
  rests(subject: string, { mono }: Moment): void {
    const { scope, epoch, recoveries } = this.row
    const before = this.#counters.find(scope, subject)
    if (before === undefined) return
    const seen = this.#seen(subject, this.#instant(mono))
    const grids = this.#rulesOf(subject).map((rule) => gridAtRest(rule, seen?.lastAt))
    const isSo = before.epoch === epoch && before.recoveries === recoveries && before.grids === gridsText(grids)
    if (isSo && (before.last_at ?? undefined) === seen?.lastAt) return
    this.#counters.write(scope, subject, this.#written(subject, seen, { last_at: seen?.lastAt ?? null, grids }), before)
  }

  /** The starts in each rule's window that ends now. */
  hits(subject: string, mono: number): number[] {
    const at = this.#instant(mono)
    const seen = this.#seen(subject, at)
    return this.#rulesOf(subject).map((rule) => this.#sight(seen, rule, at).hits)
  }

  /** Ms until one more job may start, without asking whether the machine was started anew. */
  waitMs(subject: string, mono: number): number {
    const at = this.#instant(mono)
    const { permits, forMs } = this.#permitted(subject, at)
    return Math.max(this.quietForMs(mono, subject), permits > 0 ? 0 : forMs + at - mono)
  }

  /** For how long nothing starts after a restart: of any group, or of this one. */
  quietForMs(mono: number, subject?: string): number {
    const group = subject === undefined ? undefined : groupIn(this.#settings, subject)
    const own = group === undefined ? undefined : this.rateOf(group)
    const recovery = this.#recovery
    const until = own === undefined || recovery === undefined ? this.row.quiet_until : ownQuietUntil(recovery, own)
    return Math.max(0, (until ?? mono) - mono)
  }

  /** The number of groups with a start that a window still sees. */
  groups(mono: number): number {
    const { scope, recoveries, shift_ms } = this.row
    const from = this.#instant(mono) - this.#longestMs
    // Beside the counters of groups there may be one for all jobs.
    const except = this.#settings.eachGroup === undefined ? null : ''
    const earlier = this.#counters.countBefore(scope, recoveries, this.#earliest(from) - shift_ms, except)
    return this.#counters.countSince(scope, recoveries, from, except) + earlier
  }

  /** Drops counters of groups without a start in the longest window: such a counter equals none. */
  trim({ mono }: Moment): void {
    const { scope, recoveries, shift_ms } = this.row
    const oldest = this.#counters.oldest(scope)
    if (oldest === undefined) return
    const from = this.#instant(mono) - this.#longestMs
    const before = (oldest.recoveries === recoveries ? from : this.#earliest(from)) - (shift_ms - oldest.shift_ms)
    if (oldest.last_at === null || oldest.last_at >= before) return
    this.#counters.dropIdle(scope, oldest.recoveries, before, trimLimit)
  }

  /**
   * The earliest last start with which a counter of an earlier recovery still counts, where a counter of the present
   * recovery needs one at `from` or later. The recovery charges starts to each counter that was not idle by then, and
   * these starts count as started at the recovery.
   */
  #earliest(from: number): number {
    const longestMs = this.#longestMs
    const { recovered_at } = this.row
    return longestMs > longestSilenceMs && recovered_at >= from ? recovered_at - longestMs : from
  }

  /** How long any start counts. */
  get #longestMs(): number {
    return longestOf(allRules(this.#settings), this.#settings.own)
  }

  get #recovery(): Recovery | undefined {
    const { run, recoveries, recovered_at, shift_ms, last_at, quiet_until } = this.row
    if (run === null) return undefined
    return {
      ...{ run, count: recoveries, at: recovered_at, shiftMs: shift_ms },
      ...(last_at === null ? {} : { lastAt: last_at }),
      ...(quiet_until === null ? {} : { quietUntil: quiet_until }),
    }
  }

  #arm({ now, mono, run }: Moment): void {
    const { row } = this
    const before = this.#recovery
    // The monotonic clock began anew with the boot: only the wall clock knows how long the machine was off.
    const isOther = before !== undefined && before.run !== run && row.last_wall !== null
    const since = isOther ? Math.max(0, now - row.last_wall!) : undefined
    const recovery =
      before === undefined ? firstRecovery(run, mono) : recovered(before, allRules(this.#settings), run, mono, since)
    if (recovery === before) return
    const { count, at, shiftMs, lastAt = null, quietUntil = null } = recovery
    const lastWall = lastAt === null ? null : now - (mono - lastAt)
    Object.assign(row, { run, recoveries: count, recovered_at: at, shift_ms: shiftMs })
    Object.assign(row, { last_at: lastAt, last_wall: lastWall, quiet_until: quietUntil })
  }

  /** The instant that counts, never before the last start: a clock that was set back a little stands still. */
  #instant(mono: number): number {
    return Math.max(mono, this.row.last_at ?? mono)
  }

  /**
   * The counter as it is now; undefined if nothing has started in it for the longest window: such a counter equals
   * none.
   */
  #seen(subject: string, at: number): SeenCounter | undefined {
    const row = this.#counters.find(this.row.scope, subject)
    if (row === undefined || row.last_at === null) return undefined
    const last = row.last_at
    const rules = this.#rulesOf(subject)
    const isOfRules = row.epoch === this.row.epoch
    const grids = isOfRules ? gridsIn(row.grids) : rules.map((rule) => gridAtRest(rule, last))
    const written = { log: [{ at: last, count: 1 }], grids }
    const before = { count: row.recoveries, shiftMs: row.shift_ms }
    const recovery = this.#recovery!
    const counter = recoveredCounter(written, rules, before, recovery)
    const [moved, charge] = counter.log
    if (moved === undefined) return undefined
    const lastAt = (charge ?? moved).at
    if (lastAt < at - longestCountedMs(rules)) return undefined
    const outlook = { byMs: moved.at - last, ...(charge === undefined ? {} : { charge }) }
    return { row, outlook, lastAt, grids: counter.grids }
  }

  /** The row as it is to be written under the present recovery. Also records the starts that the recovery charges. */
  #written(
    subject: string,
    seen: SeenCounter | undefined,
    { last_at, grids }: { readonly last_at: number | null; readonly grids: readonly Grid[] },
  ): Omit<CounterRow, 'tid'> {
    const { scope, recoveries, shift_ms, epoch } = this.row
    const row = this.#counters.find(scope, subject)
    const base = row === undefined ? 0 : row.base + shift_ms - row.shift_ms
    const charge = seen?.outlook.charge
    if (charge !== undefined) this.#counters.start(row!.tid, charge.at - base, row!.total, charge.count)
    const total = (row?.total ?? 0) + (charge?.count ?? 0)
    return { base, total, last_at, grids: gridsText(grids), epoch, recoveries, shift_ms }
  }

  #sight(seen: SeenCounter | undefined, rule: ThrottleRule, at: number): Sight {
    return seen === undefined ? nothing : sightIn(this.#counters, seen.row, seen.outlook, rule, at)
  }

  #permitted(subject: string, at: number): { readonly permits: number; readonly forMs: number } {
    const seen = this.#seen(subject, at)
    const each = this.#rulesOf(subject).map((rule, i) =>
      permitsOf(rule, gridOf(seen, i), this.#sight(seen, rule, at), at),
    )
    return {
      permits: Math.min(...each.map(({ permits }) => permits)),
      forMs: Math.max(...each.map(({ forMs }) => forMs)),
    }
  }
}

function gridOf(seen: SeenCounter | undefined, i: number): Grid {
  return seen?.grids[i] ?? firstGrid
}
