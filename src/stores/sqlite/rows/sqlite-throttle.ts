/** One throttle of a SQLite store during a transaction: what has started in its scope, by group where it counts by group, and what may. */

import { longestCountedMs, rulesIn, ruleText, type Throttle, type ThrottleRule } from '../../../core/queue/throttle.js'
import { trimLimit } from '../../rules/bounds.js'
import { type Arming, armed, armedTempo, firstArming, longestSilenceMs } from '../../rules/throttle/arming.js'
import {
  firstStride,
  permitsOf,
  type Sight,
  type Stride,
  strideAfter,
  strideAtRest,
} from '../../rules/throttle/stride.js'
import { type Outlook, type SqliteTempos, stridesIn, stridesText, type TempoRow } from './sqlite-tempo.js'

/** A row of `throttle`. Property names are those of the columns; instants are on the monotonic clock, but for `last_wall`. */
export interface ThrottleRow {
  readonly scope: string
  readonly counts_by: Throttle['by']
  /** `ruleText` of each, with a space between them. */
  rules: string
  /** How often they were changed. */
  epoch: number
  /** Null: nobody ever asked. */
  run: string | null
  armings: number
  armed_at: number
  shift_ms: number
  last_at: number | null
  last_wall: number | null
  quiet_until: number | null
}

/** The two clocks at the moment of a call, and the boot that the monotonic one counts from. */
export interface Moment {
  readonly now: number
  readonly mono: number
  readonly run: string
}

/** A tempo as it stands, in which something has started that a window still sees. */
interface SeenTempo {
  readonly row: TempoRow
  readonly outlook: Outlook
  readonly lastAt: number
  readonly strides: readonly Stride[]
}

const nothing: Sight = { hits: 0, opensAt: Number.NEGATIVE_INFINITY, catchesUpAt: Number.NEGATIVE_INFINITY }

export class SqliteThrottle {
  readonly row: ThrottleRow
  readonly #tempos: SqliteTempos
  #rules: readonly ThrottleRule[]

  constructor(row: ThrottleRow, tempos: SqliteTempos) {
    this.row = row
    this.#tempos = tempos
    this.#rules = rulesIn(row.rules)
  }

  get by(): Throttle['by'] {
    return this.row.counts_by
  }

  get told(): Throttle {
    return { scope: this.row.scope, by: this.by, rules: this.#rules }
  }

  /** Other rules: the starts stay, and the grids begin anew, each when it is looked at next. */
  change(rules: readonly ThrottleRule[]): void {
    this.#rules = rules
    this.row.rules = rules.map(ruleText).join(' ')
    this.row.epoch += 1
  }

  /** How many jobs may start, and, where none may, after how long one may. */
  permits(subject: string, moment: Moment): { readonly permits: number; readonly forMs: number } {
    this.#arm(moment)
    const at = this.#instant(moment.mono)
    const late = at - moment.mono
    const { permits, forMs } = this.#permitted(this.#seen(subject, at), at)
    const quietForMs = Math.max(0, (this.row.quiet_until ?? at) - at)
    if (quietForMs > 0) return { permits: 0, forMs: Math.max(quietForMs, forMs) + late }
    return { permits, forMs: permits > 0 ? 0 : forMs + late }
  }

  /** So many have been taken; and whether anything is left that could start. */
  started(subject: string, count: number, hasMore: boolean, { now, mono }: Moment): void {
    const { row } = this
    const at = this.#instant(mono)
    Object.assign(row, { last_at: at, last_wall: now + at - mono })
    const seen = this.#seen(subject, at)
    const strides = this.#rules.map((rule, i) =>
      hasMore ? strideAfter(rule, stridesOf(seen, i), this.#sight(seen, rule, at), count, at) : strideAtRest(rule, at),
    )
    const written = this.#written(subject, seen, { last_at: at, strides })
    const before = written.total
    written.total += count
    const found = this.#tempos.find(row.scope, subject)
    const { tid } = this.#tempos.write(row.scope, subject, written, found)
    this.#tempos.start(tid, at - written.base, before, count)
    if (found !== undefined) this.#tempos.drop(tid, at - longestCountedMs(this.#rules) - written.base)
  }

  /** Nothing is left that could start. */
  rests(subject: string, { mono }: Moment): void {
    const { scope, epoch, armings } = this.row
    const before = this.#tempos.find(scope, subject)
    if (before === undefined) return
    const seen = this.#seen(subject, this.#instant(mono))
    const strides = this.#rules.map((rule) => strideAtRest(rule, seen?.lastAt))
    const isSo = before.epoch === epoch && before.armings === armings && before.strides === stridesText(strides)
    if (isSo && (before.last_at ?? undefined) === seen?.lastAt) return
    this.#tempos.write(scope, subject, this.#written(subject, seen, { last_at: seen?.lastAt ?? null, strides }), before)
  }

  /** Starts in each window that ends now. */
  hits(subject: string, mono: number): number[] {
    const at = this.#instant(mono)
    const seen = this.#seen(subject, at)
    return this.#rules.map((rule) => this.#sight(seen, rule, at).hits)
  }

  /** After how long one more may start, as far as is known without asking whether the machine was started anew. */
  waitMs(subject: string, mono: number): number {
    const at = this.#instant(mono)
    const { permits, forMs } = this.#permitted(this.#seen(subject, at), at)
    return Math.max(this.quietForMs(mono), permits > 0 ? 0 : forMs + at - mono)
  }

  quietForMs(mono: number): number {
    return Math.max(0, (this.row.quiet_until ?? mono) - mono)
  }

  /** How many groups have started anything that a window still sees. */
  groups(mono: number): number {
    const { scope, armings, shift_ms } = this.row
    const from = this.#instant(mono) - longestCountedMs(this.#rules)
    const earlier = this.#tempos.countBefore(scope, armings, this.#earliest(from) - shift_ms)
    return this.#tempos.countSince(scope, armings, from) + earlier
  }

  /** Drops tempos in which nothing has started for the longest window, of groups: they are as good as none. */
  trim({ mono }: Moment): void {
    const { scope, armings, shift_ms } = this.row
    const oldest = this.#tempos.oldest(scope)
    if (oldest === undefined) return
    const from = this.#instant(mono) - longestCountedMs(this.#rules)
    const before = (oldest.armings === armings ? from : this.#earliest(from)) - (shift_ms - oldest.shift_ms)
    if (oldest.last_at === null || oldest.last_at >= before) return
    this.#tempos.dropIdle(scope, oldest.armings, before, trimLimit)
  }

  /**
   * From when on a tempo of an earlier arming has started something that counts, where one of today has from `from` on. What
   * the arming charges to a tempo that was not idle by then started then.
   */
  #earliest(from: number): number {
    const longestMs = longestCountedMs(this.#rules)
    const { armed_at } = this.row
    return longestMs > longestSilenceMs && armed_at >= from ? armed_at - longestMs : from
  }

  get #arming(): Arming | undefined {
    const { run, armings, armed_at, shift_ms, last_at, quiet_until } = this.row
    if (run === null) return undefined
    return {
      ...{ run, count: armings, at: armed_at, shiftMs: shift_ms },
      ...(last_at === null ? {} : { lastAt: last_at }),
      ...(quiet_until === null ? {} : { quietUntil: quiet_until }),
    }
  }

  #arm({ now, mono, run }: Moment): void {
    const { row } = this
    const before = this.#arming
    // The monotonic clock began anew with the boot: only the wall clock knows how long it was off.
    const isOther = before !== undefined && before.run !== run && row.last_wall !== null
    const since = isOther ? Math.max(0, now - row.last_wall!) : undefined
    const arming = before === undefined ? firstArming(run, mono) : armed(before, this.#rules, run, mono, since)
    if (arming === before) return
    const { count, at, shiftMs, lastAt = null, quietUntil = null } = arming
    const lastWall = lastAt === null ? null : now - (mono - lastAt)
    Object.assign(row, { run, armings: count, armed_at: at, shift_ms: shiftMs })
    Object.assign(row, { last_at: lastAt, last_wall: lastWall, quiet_until: quietUntil })
  }

  /** The instant that counts: a clock that was set back a little stands still. */
  #instant(mono: number): number {
    return Math.max(mono, this.row.last_at ?? mono)
  }

  /** The tempo as it stands; undefined for one in which nothing has started for the longest window: it is as good as none. */
  #seen(subject: string, at: number): SeenTempo | undefined {
    const row = this.#tempos.find(this.row.scope, subject)
    if (row === undefined || row.last_at === null) return undefined
    const last = row.last_at
    const isOfRules = row.epoch === this.row.epoch
    const strides = isOfRules ? stridesIn(row.strides) : this.#rules.map((rule) => strideAtRest(rule, last))
    const written = { log: [{ at: last, count: 1 }], strides }
    const before = { count: row.armings, shiftMs: row.shift_ms }
    const arming = this.#arming!
    const tempo = armedTempo(written, this.#rules, before, arming)
    const [moved, charge] = tempo.log
    if (moved === undefined) return undefined
    const lastAt = (charge ?? moved).at
    if (lastAt < at - longestCountedMs(this.#rules)) return undefined
    const outlook = { byMs: moved.at - last, ...(charge === undefined ? {} : { charge }) }
    return { row, outlook, lastAt, strides: tempo.strides }
  }

  /** The row as it is to be written under the arming of today; what that charges has started. */
  #written(
    subject: string,
    seen: SeenTempo | undefined,
    { last_at, strides }: { readonly last_at: number | null; readonly strides: readonly Stride[] },
  ): Omit<TempoRow, 'tid'> {
    const { scope, armings, shift_ms, epoch } = this.row
    const row = this.#tempos.find(scope, subject)
    const base = row === undefined ? 0 : row.base + shift_ms - row.shift_ms
    const charge = seen?.outlook.charge
    if (charge !== undefined) this.#tempos.start(row!.tid, charge.at - base, row!.total, charge.count)
    const total = (row?.total ?? 0) + (charge?.count ?? 0)
    return { base, total, last_at, strides: stridesText(strides), epoch, armings, shift_ms }
  }

  #sight(seen: SeenTempo | undefined, rule: ThrottleRule, at: number): Sight {
    return seen === undefined ? nothing : this.#tempos.sight(seen.row, seen.outlook, rule, at)
  }

  #permitted(seen: SeenTempo | undefined, at: number): { readonly permits: number; readonly forMs: number } {
    const each = this.#rules.map((rule, i) => permitsOf(rule, stridesOf(seen, i), this.#sight(seen, rule, at), at))
    return {
      permits: Math.min(...each.map(({ permits }) => permits)),
      forMs: Math.max(...each.map(({ forMs }) => forMs)),
    }
  }
}

function stridesOf(seen: SeenTempo | undefined, i: number): Stride {
  return seen?.strides[i] ?? firstStride
}
