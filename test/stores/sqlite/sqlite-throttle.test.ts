import { beforeEach, describe, expect, it } from 'vitest'
import { ruleText, type ThrottleRule } from '#src/core/queue/throttle.js'
import { MemoryThrottle } from '#src/stores/memory/queue/memory-throttle.js'
import { ScopeThrottle } from '#src/stores/rows/scope-throttle.js'
import { gridsText, sightIn, type ThrottleRow } from '#src/stores/rows/throttle-row.js'
import { logAfter, type StartLog, sightOf } from '#src/stores/rules/throttle/start-log.js'
import { type Database, loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { limitTables } from '#src/stores/sqlite/file/sqlite-schema.js'
import { SqliteGroupRates } from '#src/stores/sqlite/rows/sqlite-throttle.js'
import { SqliteThrottleCounters } from '#src/stores/sqlite/rows/sqlite-throttle-counter.js'
import { seededRandom } from '../../seeded-random.js'

let db: Database
beforeEach(async () => {
  db = (await loadDriver())(':memory:')
  db.exec(`CREATE TABLE queue (throttle TEXT); ${limitTables}`)
})

const rule = (limit: number, windowMs: number, even: Partial<ThrottleRule> = {}): ThrottleRule => ({
  ...{ limit, windowMs, moderate: false },
  ...even,
})

function throttleRow(rules: readonly ThrottleRule[], by: 'queue' | 'group' = 'group'): ThrottleRow {
  const counts = { epoch: 0, run: null, recoveries: 0, recovered_at: 0, shift_ms: 0 }
  const instants = { last_at: null, last_wall: null, quiet_until: null }
  return {
    scope: 'api',
    counts_by: by,
    rules: rules.map(ruleText).join(' '),
    each_group: null,
    own: '',
    ...counts,
    ...instants,
  }
}

describe('the starts that a rule counts, found by two rows', () => {
  it('are those in the whole log, wherever the windows end and however many starts remain', () => {
    const random = seededRandom(11)
    const whole = (least: number, most: number) => least + Math.floor(random() * (most - least + 1))
    const counters = new SqliteThrottleCounters(db)
    for (let round = 0; round < 60; round += 1) {
      const rules = [{ ...rule(whole(3, 6), 1_000), elasticBuffer: whole(0, 2) }, rule(whole(1, 12), 5_000)]
      const base = whole(-3_000, 3_000)
      const values = { base, total: 0, last_at: 0, grids: gridsText([]), epoch: 0, recoveries: 0, shift_ms: 0 }
      let row = counters.write('api', `g${round}`, values, undefined)
      let log: StartLog = []
      let now = 10_000
      for (let step = 0; step < 40; step += 1) {
        now += [0, 1, 999, 1_000, 1_001, 4_999, 5_001, 20_000][whole(0, 7)]!
        const byMs = whole(0, 3) === 0 ? whole(-2_000, 2_000) : 0
        const charge = whole(0, 5) === 0 ? { at: now + byMs, count: whole(1, 9) } : undefined
        const outlook = { byMs, ...(charge === undefined ? {} : { charge }) }
        const moved = [...log.map(({ at, count }) => ({ at: at + byMs, count })), ...(charge ? [charge] : [])]
        for (const one of rules) {
          const later = now + Math.max(0, byMs) + whole(0, 1_001)
          const sight = sightIn(counters, row, outlook, one, later)
          const { hits, opensAt, catchesUpAt } = sight
          expect({ hits, opensAt, catchesUpAt }).toEqual(sightOf(one, moved, later))
        }
        const count = whole(1, 3)
        log = logAfter(log, count, 1e9, now)
        counters.start(row.tid, now - base, row.total, count)
        row = counters.write('api', `g${round}`, { ...row, total: row.total + count }, row)
      }
    }
  })

  it('are found in a log of 100,000 starts without reading it', () => {
    const counters = new SqliteThrottleCounters(db)
    const values = { base: 0, last_at: 0, grids: gridsText([]), epoch: 0, recoveries: 0, shift_ms: 0 }
    const { tid } = counters.write('api', '', { ...values, total: 100_000 }, undefined)
    db.prepare(
      'WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999) INSERT INTO throttle_start SELECT ?, i * 10, i, 1 FROM n',
    ).run(tid)
    const plans = [
      'nth FROM throttle_start WHERE tid = 1 AND at >= 5 ORDER BY at',
      'at FROM throttle_start WHERE tid = 1 AND nth <= 5 ORDER BY nth DESC',
    ].map((sql) =>
      (db.prepare(`EXPLAIN QUERY PLAN SELECT ${sql} LIMIT 1`).all() as { detail: string }[])
        .map(({ detail }) => detail)
        .join(),
    )

    const row = { ...values, tid, total: 100_000 }
    const { hits, opensAt } = sightIn(counters, row, { byMs: 0 }, rule(60_000, 500_000), 1_000_000)

    expect({ hits, opensAt }).toEqual({ hits: 50_000, opensAt: 400_000 + 500_001 })
    for (const plan of plans) expect(plan).toMatch(/^SEARCH throttle_start USING .*\(tid=\? AND (at>|nth<)\?\)$/)
  })
})

describe('a throttle of the SQLite store compared with the memory store', () => {
  const random = seededRandom(5)
  const whole = (least: number, most: number) => least + Math.floor(random() * (most - least + 1))
  const moderate = { moderate: true }
  const kinds: Record<string, (() => ThrottleRule)[]> = {
    'short windows': [() => rule(whole(1, 4), 1_000), () => rule(whole(2, 6), 5_000)],
    'evenly spaced starts': [
      () => rule(whole(2, 5), 3_000, { ...moderate, ...(whole(0, 1) ? { elasticBuffer: 0 } : {}) }),
    ],
    'a window that a recovery charges': [() => rule(whole(2, 4), 2_000, moderate), () => rule(whole(4, 9), 700_000)],
  }
  for (const [title, makers] of Object.entries(kinds)) {
    it(`permits the same in every history with ${title}`, () => {
      for (let round = 0; round < 25; round += 1) history(makers)
    })
  }

  function history(makers: readonly (() => ThrottleRule)[]): void {
    const rules = makers.map((make) => make())
    const by = whole(0, 1) ? 'queue' : 'group'
    // What was dropped as idle is gone, though a recovery, or a clock that is set back, would bring it back to life.
    const isTrimmed = rules.every(({ windowMs }) => windowMs < 600_000) && whole(0, 1) === 1
    const memory = new MemoryThrottle({ scope: 'api', by, rules })
    db.exec('DELETE FROM throttle_counter; DELETE FROM throttle_start; DELETE FROM throttle_rate')
    const counters = new SqliteThrottleCounters(db)
    const row = throttleRow(rules, by)
    const sqlite = new ScopeThrottle(row, counters, new SqliteGroupRates(db))
    let now = 1_000_000
    let run = 'first'
    for (let step = 0; step < 120; step += 1) {
      const subject = by === 'queue' ? '' : ['a', 'b', 'c'][whole(0, 2)]!
      now += [0, 1, 500, 999, 1_000, 1_001, 2_001, 5_001, 30_000, 700_001][whole(0, whole(0, 9))]!
      const moment = { now, mono: now, run }
      switch (whole(0, 9)) {
        case 0:
          memory.rests(subject, now)
          sqlite.rests(subject, moment)
          break
        case 1:
          if (whole(0, 3) === 0) run += '+'
          break
        case 2: {
          if (whole(0, 3) > 0) break
          const changed = makers.map((make) => make())
          memory.replaceRules(changed)
          sqlite.change(changed)
          break
        }
        case 3: {
          // The longest window stays: how far beyond the windows starts are remembered is the store's own affair.
          if (by === 'queue' || whole(0, 2) > 0) break
          const [last, ...others] = makers.toReversed()
          const kept = [...others.filter(() => whole(0, 1) === 1).toReversed(), last!]
          const own = whole(0, 2) === 0 ? undefined : kept.map((make) => make())
          memory.setRate(subject, own)
          sqlite.setRate(subject, own)
          break
        }
        case 4:
          counters.forget()
          if (isTrimmed) sqlite.trim(moment)
          break
        default: {
          const expected = memory.permits(subject, now, run)
          expect(sqlite.permits(subject, moment)).toEqual(expected)
          if (expected.permits <= 0) break
          const [count, hasMore] = [whole(1, expected.permits), whole(0, 2) > 0]
          const lateMs = [0, 0, 0, 1, 60, 1_000, 10_000][whole(0, 6)]!
          memory.started(subject, count, hasMore, now, lateMs)
          sqlite.started(subject, count, hasMore, moment, lateMs)
          // The clock is set back, be it a little or so far that the throttle is recovered.
          if (!isTrimmed && whole(0, 4) === 0) now -= whole(0, 2_000)
        }
      }
      if (memory.recovery === undefined) continue
      expect(sqlite.hits(subject, now)).toEqual(memory.hits(subject, now))
      expect(sqlite.waitMs(subject, now)).toBe(memory.waitMs(subject, now))
      expect(sqlite.quietForMs(now, subject)).toBe(memory.quietForMs(now, subject))
      expect(sqlite.settings).toEqual(memory.told)
      expect(sqlite.groups(now)).toBe(memory.subjects(now).length)
    }
  }
})

describe('after a restart of the machine', () => {
  it('starts have the same age on the new clock as on the wall clock', () => {
    const counters = new SqliteThrottleCounters(db)
    const rules = [rule(10, 3_600_000)]
    const throttle = new ScopeThrottle(throttleRow(rules), counters, new SqliteGroupRates(db))
    const before = { now: 50_000_000, mono: 9_000_000, run: 'first' }
    throttle.permits('a', before)
    throttle.started('a', 4, true, before)
    // Ten minutes later: a sixth of the window, of which nobody knows what it held.
    const after = { now: before.now + 600_000, mono: 5_000, run: 'second' }

    expect(throttle.permits('a', after)).toEqual({ permits: 10 - 4 - 2, forMs: 0 })
    expect(throttle.groups(after.mono)).toBe(1)
    throttle.started('a', 1, true, after)
    counters.forget()
    const later = { now: after.now + 3_000_000, mono: after.mono + 3_000_000, run: 'second' }
    expect(throttle.hits('a', later.mono)).toEqual([7])
    expect(throttle.hits('a', later.mono + 1)).toEqual([3])
  })

  it('idle counters are dropped, even if the old clock had higher numbers', () => {
    const counters = new SqliteThrottleCounters(db)
    const throttle = new ScopeThrottle(throttleRow([rule(10, 5_000)]), counters, new SqliteGroupRates(db))
    const before = { now: 50_000_000, mono: 9_000_000, run: 'first' }
    for (const group of ['a', 'b']) {
      throttle.permits(group, before)
      throttle.started(group, 1, true, before)
    }
    const after = { now: before.now + 1_000, mono: 300, run: 'second' }
    throttle.permits('a', after)
    throttle.trim(after)
    const left = () => (db.prepare('SELECT count(*) AS n FROM throttle_counter').get() as { n: number }).n
    expect([left(), throttle.groups(after.mono)]).toEqual([2, 2])

    throttle.trim({ ...after, mono: after.mono + 4_001 })

    expect(left()).toBe(0)
    expect(db.prepare('SELECT count(*) AS n FROM throttle_start').get()).toEqual({ n: 0 })
  })
})
