/** The fair share over rows: a store that must decide before it takes anything gets a plan, and the rows to write. */
import { expect, it } from 'vitest'
import { countTaken, DealtRow } from '#src/stores/rows/dealt-row.js'
import { HeldLanes, type LaneRow } from '#src/stores/rows/held-lanes.js'
import { ready } from '#src/stores/rows/job-row.js'
import type { CountedQueue } from '#src/stores/rows/queue-row.js'
import { ShardLimits } from '#src/stores/rows/shard-limits.js'
import { deal, groupIn, type ReadyPool } from '#src/stores/rules/fair-share.js'

/** Lanes that were read before, and are written afterwards. */
class ReadLanes extends HeldLanes {
  readonly rows = new Map<string, LaneRow>()

  protected read(_: CountedQueue, group: string): LaneRow | undefined {
    return this.rows.get(group)
  }

  protected write(_: CountedQueue, group: string, lane: LaneRow | undefined): void {
    if (lane === undefined) this.rows.delete(group)
    else this.rows.set(group, { ...lane })
  }

  turns(_: CountedQueue, most: number): string[] {
    this.flush()
    const open = [...this.rows].filter(([, { turn }]) => turn !== null)
    return open.sort(([, a], [, b]) => a.turn! - b.turn!).flatMap(([group], i) => (i < most ? [group] : []))
  }

  opensAt(): undefined {}

  openDue(): void {}
}

const counts = { scheduled: 0, ready: 0, running: 0, completed: 0, dead: 0, retries: 0, suspects: 0, remembered: 0 }
const more = { pending: 0, processed: 0, failed: 0, crashed: 0, expired: 0, laned: 0, grouped: 0, grouped_running: 0 }
const none = { held_until: null, shut_until: null, throttle: null, throttle_by: null, resharding: null }

function queueOf(settings: Partial<CountedQueue>, waiting: Readonly<Record<string, number>>) {
  const queue = {
    ...{ ...counts, ...more, ...none, open_lanes: 0, last_lane_turn: 0, max_running: null, max_per_group: null },
    ...{ qid: 1, name: 'mails', shard: 0, shards: 1, kind: 'plain', exclusive: 'id', paused: 0, ...settings },
  } as CountedQueue
  const lanes = new ReadLanes()
  for (const [group, jobs] of Object.entries(waiting)) {
    queue.ready += jobs
    for (let i = 0; i < jobs; i += 1)
      lanes.count(queue, { state: ready, suspect: 0, grp: group === '' ? null : group }, 1)
    lanes.refresh(queue, group === '' ? null : group)
  }
  return { queue, lanes }
}

function planOf({ queue, lanes }: ReturnType<typeof queueOf>, limit: number) {
  const plan: (readonly [pool: ReadyPool, count: number])[] = []
  const limits = new ShardLimits({ shardsOf: () => [queue] }, lanes)
  const moment = { now: 0, mono: 0, run: 'r' }
  const parts = { queue, lanes, limits, throttle: undefined, sharing: () => [], moment, from: {} }
  const dealt = new DealtRow(parts, {
    suspectGroups: () => [],
    isFull: () => false,
    take(pool, most) {
      plan.push([pool, most])
      countTaken(queue, lanes, pool, most, 0, groupIn(pool))
      return most
    },
  })
  deal(dealt, limit, false)
  lanes.flush()
  return plan
}

it('a queue without groups is planned as one take', () => {
  const subject = queueOf({}, { '': 5 })
  expect(planOf(subject, 3)).toEqual([['free', 3]])
  expect(subject.queue).toMatchObject({ ready: 2, running: 3 })
  expect(subject.lanes.rows.size).toBe(0)
})

it('groups are planned in turns, and the next plan goes on behind them', () => {
  const subject = queueOf({}, { a: 3, b: 1, '': 1 })
  expect(planOf(subject, 3)).toEqual([
    [{ group: 'a' }, 1],
    [{ group: 'b' }, 1],
    ['free', 1],
  ])
  expect(subject.lanes.rows.get('a')).toMatchObject({ ready: 2, running: 1 })
  expect(planOf(subject, 9)).toEqual([[{ group: 'a' }, 2]])
})

it('a plan keeps to the bounds of the queue and of its groups', () => {
  const subject = queueOf({ max_running: 3, max_per_group: 2 }, { a: 4, b: 4 })
  expect(planOf(subject, 10)).toEqual([
    [{ group: 'a' }, 2],
    [{ group: 'b' }, 1],
  ])
  expect(subject.lanes.rows.get('a')).toMatchObject({ ready: 2, running: 2, turn: null })
  expect(subject.queue).toMatchObject({ running: 3, open_lanes: 1 })
  expect(planOf(subject, 10)).toEqual([])
})
