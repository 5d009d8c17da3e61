/** The limits of a Postgres store in its canonical state: lanes and throttles, read from their tables. */

import { longestCountedMs, rulesIn, ruleText, type ThrottleRule } from '../../core/queue/throttle.js'
import type { PaceState } from '../../stores/postgres/limits/limits-look.js'
import { type CounterRow, gridsIn, type ThrottleRow, throttleIn } from '../../stores/rows/throttle-row.js'
import { compareBytes } from '../../stores/rules/byte-order.js'
import { turnStep } from '../../stores/rules/fair-share.js'
import { gridAtRest } from '../../stores/rules/throttle/grid.js'
import type { Counter } from '../../stores/rules/throttle/throttle-counter.js'
import { recoveredCounter } from '../../stores/rules/throttle/throttle-recovery.js'
import { rulesOfSubject } from '../../stores/rules/throttle/throttle-subjects.js'
import { type CanonicalLanes, type CanonicalThrottle, canonicalCounter, canonicalTurn } from './canonical-state.js'

/** A row; whole numbers of 8 bytes come as text. */
export type PgRow = Readonly<Record<string, unknown>>
/** The rows of a statement, in which `@.` is the schema. */
export type AskPostgres = (text: string, values?: unknown[]) => Promise<PgRow[]>

/** Of the lanes of a queue, by group. */
export function postgresLanes(lanes: readonly PgRow[], now: number): CanonicalLanes {
  const told = (column: string) =>
    lanes
      .filter((lane) => lane[column] !== null)
      .map((lane) => ({ group: String(lane['grp']), inMs: Number(lane[column]) - now }))
  return {
    turns: lanes
      .filter(({ turn }) => turn !== null)
      .sort((a, b) => Number(a['turn']) - Number(b['turn']))
      .map(({ grp, turn }) => canonicalTurn(String(grp), Number(turn) % turnStep)),
    shut: told('shut_until'),
    held: told('held_until').filter(({ inMs }) => inMs > 0),
    paused: lanes.filter(({ paused }) => paused === true).map(({ grp }) => String(grp)),
  }
}

/** By scope, with the instants before which queues are granted nothing. */
export async function postgresThrottles(
  ask: AskPostgres,
  now: number,
): Promise<{ readonly throttles: CanonicalThrottle[]; readonly shut: ReadonlyMap<string, number> }> {
  const shut = new Map<string, number>()
  const throttles: CanonicalThrottle[] = []
  const latest = 'SELECT DISTINCT ON (scope) * FROM @.pace ORDER BY scope, version DESC'
  for (const { state, from_ms, late_ms } of await ask(latest)) {
    const { t, shut: until = {} } = JSON.parse(String(state)) as PaceState
    const moved = (at: number) => (at >= Number(from_ms) ? at + Number(late_ms) : at)
    for (const [qid, at] of Object.entries(until)) shut.set(qid, moved(at))
    if (t !== undefined)
      throttles.push(await canonicalThrottle(ask, { ...t, last_at: t.last_at === null ? null : moved(t.last_at) }, now))
  }
  return { throttles, shut }
}

async function canonicalThrottle(ask: AskPostgres, row: ThrottleRow, now: number): Promise<CanonicalThrottle> {
  const { scope, counts_by, quiet_until, recoveries, last_at } = row
  const throttle = throttleIn(row)
  const sharing = await ask('SELECT name FROM @.queue WHERE throttle = $1', [scope])
  const rates = await ask('SELECT grp, rules FROM @.rate WHERE scope = $1', [scope])
  const rateOf = (group: string) => {
    const own = rates.find(({ grp }) => grp === group)
    return own && rulesIn(String(own['rules']))
  }
  const at = Math.max(now, last_at ?? now)
  const fromOf = (subject: string) => at - longestCountedMs(rulesOfSubject(throttle, subject, rateOf))
  const counters: { readonly group: string; readonly counter: Counter }[] = []
  for (const counter of await ask('SELECT * FROM @.counter WHERE scope = $1', [scope])) {
    const subject = String(counter['subject'])
    const starts = await ask('SELECT at, nth FROM @.start WHERE tid = $1 ORDER BY at', [counter['tid']])
    counters.push({
      group: subject,
      counter: counterOf(row, counter, starts, rulesOfSubject(throttle, subject, rateOf)),
    })
  }
  return {
    scope,
    by: counts_by,
    rules: throttle.rules.map(ruleText),
    eachGroup: throttle.eachGroup?.map(ruleText) ?? null,
    own: throttle.own ?? null,
    rates: rates.map(({ grp, rules }) => [String(grp), String(rules)] as const).sort(([a], [b]) => compareBytes(a, b)),
    queues: [...new Set(sharing.map(({ name }) => String(name)))].sort(compareBytes),
    recoveries,
    quietInMs: quiet_until !== null && quiet_until > now ? quiet_until - now : null,
    counters: counters
      .filter(({ group, counter }) => (counter.log.at(-1)?.at ?? Number.NEGATIVE_INFINITY) >= fromOf(group))
      .map(({ group, counter }) => canonicalCounter(group, counter, now, fromOf(group)))
      .sort((a, b) => compareBytes(a.group, b.group)),
  }
}

/** The present counter. Of each start the number of those before is stored: their differences are the counts. */
function counterOf(throttle: ThrottleRow, of: PgRow, starts: PgRow[], rules: readonly ThrottleRule[]): Counter {
  const row = Object.fromEntries(
    Object.entries(of).map(([name, value]) => [
      name,
      typeof value === 'string' && name !== 'grids' ? Number(value) : value,
    ]),
  ) as unknown as CounterRow
  if (row.last_at === null) return { log: [], grids: [] }
  const log = starts.map(({ at, nth }, i) => ({
    at: Number(at) + row.base,
    count: (i + 1 < starts.length ? Number(starts[i + 1]!['nth']) : row.total) - Number(nth),
  }))
  const isOfRules = row.epoch === throttle.epoch
  const grids = isOfRules ? gridsIn(row.grids) : rules.map((rule) => gridAtRest(rule, row.last_at!))
  const { run, recoveries, recovered_at, shift_ms } = throttle
  const recovery = { run: run!, count: recoveries, at: recovered_at, shiftMs: shift_ms }
  return recoveredCounter({ log, grids }, rules, { count: row.recoveries, shiftMs: row.shift_ms }, recovery)
}
