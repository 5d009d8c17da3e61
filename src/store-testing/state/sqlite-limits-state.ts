/** The limits of a SQLite store in its canonical state: lanes and throttles, read from their tables. */

import { longestCountedMs, rulesIn, ruleText, type ThrottleRule } from '../../core/queue/throttle.js'
import { type CounterRow, gridsIn, type ThrottleRow, throttleIn } from '../../stores/rows/throttle-row.js'
import { compareBytes } from '../../stores/rules/byte-order.js'
import { turnStep } from '../../stores/rules/fair-share.js'
import { gridAtRest } from '../../stores/rules/throttle/grid.js'
import type { StartLog } from '../../stores/rules/throttle/start-log.js'
import type { Counter } from '../../stores/rules/throttle/throttle-counter.js'
import { type Recovery, recoveredCounter } from '../../stores/rules/throttle/throttle-recovery.js'
import { rulesOfSubject } from '../../stores/rules/throttle/throttle-subjects.js'
import type { Database } from '../../stores/sqlite/file/sqlite-driver.js'
import type { QueueRow } from '../../stores/sqlite/rows/sqlite-queue.js'
import { type CanonicalLanes, type CanonicalThrottle, canonicalCounter, canonicalTurn } from './canonical-state.js'

interface LaneColumns {
  readonly grp: string
  readonly ready: number
  readonly running: number
  readonly turn: number | null
  readonly shut_until: number | null
  readonly held_until: number | null
  readonly paused: number
}

export type JobColumns = Record<string, string | number | Uint8Array | null>

export function canonicalLanes(db: Database, { qid }: QueueRow, now: number): CanonicalLanes {
  const lanes = db.prepare('SELECT * FROM lane WHERE qid = ? ORDER BY grp').all(qid) as LaneColumns[]
  const told = (column: 'shut_until' | 'held_until') =>
    lanes.filter((lane) => lane[column] !== null).map((lane) => ({ group: lane.grp, inMs: lane[column]! - now }))
  return {
    turns: lanes
      .filter(({ turn }) => turn !== null)
      .sort((a, b) => a.turn! - b.turn!)
      .map(({ grp, turn }) => canonicalTurn(grp, turn! % turnStep)),
    shut: told('shut_until'),
    held: told('held_until').filter(({ inMs }) => inMs > 0),
    paused: lanes.filter(({ paused }) => paused === 1).map(({ grp }) => grp),
  }
}

export function canonicalThrottle(db: Database, row: ThrottleRow, now: number): CanonicalThrottle {
  const { scope, counts_by, quiet_until, recoveries, last_at } = row
  const rules = rulesIn(row.rules)
  const sharing = db.prepare('SELECT DISTINCT name FROM queue WHERE throttle = ?').all(scope) as { name: string }[]
  const at = Math.max(now, last_at ?? now)
  const rates = db.prepare('SELECT grp, rules FROM throttle_rate WHERE scope = ?').all(scope) as {
    grp: string
    rules: string
  }[]
  const throttle = throttleIn(row)
  const rateOf = (group: string) => {
    const own = rates.find(({ grp }) => grp === group)
    return own && rulesIn(own.rules)
  }
  const ofGroup = (subject: string) => rulesOfSubject(throttle, subject, rateOf)
  const fromOf = (group: string) => at - longestCountedMs(ofGroup(group))
  const counters = db.prepare('SELECT * FROM throttle_counter WHERE scope = ?').all(scope) as unknown as (CounterRow & {
    subject: string
  })[]
  return {
    scope,
    by: counts_by,
    rules: rules.map(ruleText),
    eachGroup: throttle.eachGroup?.map(ruleText) ?? null,
    own: throttle.own ?? null,
    rates: rates.map(({ grp, rules }) => [grp, rules] as const).sort(([a], [b]) => compareBytes(a, b)),
    queues: sharing.map(({ name }) => name).sort(compareBytes),
    recoveries,
    quietInMs: quiet_until !== null && quiet_until > now ? quiet_until - now : null,
    counters: counters
      .map((counter) => ({ group: counter.subject, counter: counterOf(db, row, counter, ofGroup(counter.subject)) }))
      .filter(({ group, counter }) => (counter.log.at(-1)?.at ?? Number.NEGATIVE_INFINITY) >= fromOf(group))
      .map(({ group, counter }) => canonicalCounter(group, counter, now, fromOf(group)))
      .sort((a, b) => compareBytes(a.group, b.group)),
  }
}

/** The present counter. Starts outside every window may still be stored. */
function counterOf(db: Database, throttle: ThrottleRow, row: CounterRow, rules: readonly ThrottleRule[]): Counter {
  if (row.last_at === null) return { log: [], grids: [] }
  const log = db
    .prepare('SELECT at + ? AS at, nth, count FROM throttle_start WHERE tid = ? ORDER BY at')
    .all(row.base, row.tid) as unknown as (StartLog[number] & { readonly nth: number })[]
  const counted = log.reduce(
    (before, { nth, count }) => {
      if (before !== undefined && before !== nth)
        throw new Error(`start ${nth} of a counter comes after ${before} others`)
      return nth + count
    },
    undefined as number | undefined,
  )
  if (counted !== row.total) throw new Error(`a counter counts ${row.total} starts, but the last was the ${counted}th`)
  const isOfRules = row.epoch === throttle.epoch
  const grids = isOfRules ? gridsIn(row.grids) : rules.map((rule) => gridAtRest(rule, row.last_at!))
  const { run, recoveries, recovered_at, shift_ms } = throttle
  const recovery: Recovery = { run: run!, count: recoveries, at: recovered_at, shiftMs: shift_ms }
  const written = { log: log.map(({ at, count }) => ({ at, count })), grids }
  return recoveredCounter(written, rules, { count: row.recoveries, shiftMs: row.shift_ms }, recovery)
}
