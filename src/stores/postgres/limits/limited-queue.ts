/**
 * A limited queue as it was looked at: what a claim receives is decided by the rules that all stores share, and written down
 * as a plan. Pure.
 */

import { groupRules } from '../../../core/queue/throttle.js'
import type { Claimer, ClaimFrom } from '../../contract/claim.js'
import { countTaken, DealtRow } from '../../rows/dealt-row.js'
import { LeftRow } from '../../rows/left-row.js'
import { type CountedQueue, isStopped, leadOf, ordinary } from '../../rows/queue-row.js'
import { type Moment, ScopeThrottle } from '../../rows/scope-throttle.js'
import { ShardLimits } from '../../rows/shard-limits.js'
import { reportsSuspects } from '../../rules/claim-waits.js'
import { deal, groupIn, mostSuspects, type ReadyPool, suspectInMs, turnStep } from '../../rules/fair-share.js'
import { dueAt } from '../../rules/sequence.js'
import { asksNow, isLed } from '../../rules/wake-lead.js'
import type { ClaimedColumns } from '../schema/claimed-job.js'
import { type LimitedPlan, type LimitsLook, paceState, type ScopeChanges } from './limits-look.js'
import { elsewhereQid, LookedCounters, LookedLanes } from './looked-shelves.js'

export class LimitedQueue {
  look: LimitsLook
  readonly counters: LookedCounters
  readonly throttle: ScopeThrottle | undefined
  readonly row: CountedQueue
  readonly moment: Moment
  readonly #lanes: LookedLanes
  readonly #limits: ShardLimits
  readonly #stateBefore: string
  readonly #shut: Readonly<Record<string, number>>
  /** The open lanes that were looked at. */
  readonly #listed: number
  /** The groups of the suspects that were looked at. */
  #suspects: readonly string[]
  /** See `suspectInMs` in `fair-share`. */
  #suspectInMs = Number.POSITIVE_INFINITY

  constructor(look: LimitsLook) {
    const { limits, now } = look
    const { of, state, from, late, siblingsRunning } = limits
    const moved = (at: number) => (from !== null && at >= from ? at + (late ?? 0) : at)
    this.look = look
    this.#suspects = limits.suspects
    this.#listed = limits.lanes.filter(([, turn]) => turn !== null).length
    this.#lanes = new LookedLanes(look)
    this.counters = new LookedCounters(look)
    this.moment = { now, mono: now, run: limits.run }
    this.#shut = Object.fromEntries(Object.entries(state?.shut ?? {}).map(([one, at]) => [one, moved(at)]))
    if (state?.t !== undefined) {
      const { last_at, last_wall } = state.t
      const at = last_at === null ? null : moved(last_at)
      const row = { ...state.t, last_at: at, last_wall: last_wall === null ? null : moved(last_wall) }
      this.throttle = new ScopeThrottle(row, this.counters, this.counters)
    }
    this.row = rowOf(look, this.#shut[of.qid])
    const others = { ...none, running: siblingsRunning } as unknown as CountedQueue
    this.#limits = new ShardLimits({ shardsOf: () => [this.row, others] }, this.#lanes)
    // A lane has a turn while it has a job and its group has room.
    for (const [group, turn] of limits.lanes) if (turn !== null && group !== '') this.#lanes.refresh(this.row, group)
    this.#stateBefore = JSON.stringify(paceState(this.throttle, this.#shut))
  }

  /** What the claim receives. Undefined: nothing, and nothing is to be written. */
  decide(from: ClaimFrom, by: Claimer, mostBytes: number): DecidedClaim | undefined {
    const { row, throttle, moment } = this
    const taken: TakenPool[] = []
    const load = new PlannedLoad(this.look, mostBytes)
    const sharing = () => [row, elsewhere(this.look.limits)]
    const parts = { queue: row, lanes: this.#lanes, limits: this.#limits, throttle, sharing, moment }
    const dealt = new DealtRow(
      { ...parts, from },
      {
        suspectGroups: () => [...new Set(this.#suspects.slice(0, mostSuspects))],
        isFull: () => load.isFull,
        take: (pool, most) => {
          const count = load.take(pool, most)
          const group = groupIn(pool)
          if (count > 0) {
            countTaken(row, this.#lanes, pool, count, 0, group)
            taken.push({ pool, group, count })
            if (isOfSuspects(pool)) this.#suspects = this.#suspects.toSpliced(this.#suspects.indexOf(group), 1)
          }
          return count
        },
      },
    )
    let count = 0
    if (!this.#limits.isClosed(row, moment.mono) && !this.look.expiring) {
      count = deal(dealt, from.limit, by.alone === true)
      // Some were not looked at.
      if (this.look.limits.open > this.#listed) row.open_lanes = Math.max(1, row.open_lanes)
      const isGrouped = throttle !== undefined && groupRules(throttle.settings) !== undefined
      if (isGrouped && (count > 0 || ordinary(row) > 0)) throttle.trim(moment)
    }
    // What that finds of the throttle is written with the plan.
    if (row.suspects > 0 && reportsSuspects(this.left(), by, { limit: from.limit, taken: count }, moment.mono))
      this.#suspectInMs = suspectInMs(dealt)
    const changes = this.changes()
    const { lanes, closed } = this.#lanes.changes()
    const isSame = taken.length + lanes.length + closed.length + changes.counters.length + changes.trims.length === 0
    if (isSame && changes.state === null) return undefined
    return new DecidedClaim({ ...changes, lanes, closed }, taken, load.bytes)
  }

  /** The instant before which nothing is granted of the queue, or of the group. */
  heldUntil(group: string | undefined): number {
    const whole = this.row.held_until ?? Number.NEGATIVE_INFINITY
    return group === undefined ? whole : Math.max(whole, this.#lanes.heldUntil(this.row, group))
  }

  /** What has changed in the scope. `opens`: its throttle shuts no queue any more. */
  changes(opens = false): ScopeChanges {
    const shut = opens
      ? {}
      : this.row.shut_until === null
        ? this.#shut
        : { ...this.#shut, [this.row.qid]: this.row.shut_until }
    const state = JSON.stringify(paceState(this.throttle, shut))
    return { state: state === this.#stateBefore ? null : state, ...this.counters.changes() }
  }

  /** A claim was made, whose lease ends then. */
  granted(leaseAt: number): void {
    this.look = { ...this.look, lease: Math.min(leaseAt, this.look.lease ?? leaseAt) }
  }

  left(): LeftRow {
    return new LeftRow(this.#limits, this.row, this.moment.mono, {
      nextChangeMs: () => this.nextChangeMs(),
      suspectInMs: () => this.#suspectInMs,
    })
  }

  /** Whether an ordinary claim would receive a job. */
  isClaimable(): boolean {
    return !this.look.expiring && this.#limits.isClaimable(this.row, this.moment.mono)
  }

  /** Whether the end of a claim made room for a job that is ready. */
  isFreed(): boolean {
    return this.isClaimable() || this.#limits.isOpenForSuspects(this.row, this.moment.mono)
  }

  /** Ms until a job falls due, a lease ends, or jobs are no longer shut; undefined: nothing of that will happen. */
  nextChangeMs(): number | undefined {
    const { place, lease, spares, limits } = this.look
    const { now } = this.moment
    if (limits.due) return 0
    const ends = lease === null ? Number.POSITIVE_INFINITY : Math.max(lease, spares)
    const opens = this.#limits.opensAt(this.row, now) ?? Number.POSITIVE_INFINITY
    const at = Math.min(place === null ? Number.POSITIVE_INFINITY : dueAt(place), ends, opens)
    return at > Number.MAX_SAFE_INTEGER ? undefined : Math.max(0, at - now)
  }

  /** Whether a waiter must ask, or, for a change that comes later, whether nobody will ask by then. */
  wakes(isLater: boolean): boolean {
    if (isStopped(this.row)) return false
    if (this.isClaimable()) return true
    const lead = leadOf(this.row)
    const forMs = this.nextChangeMs()
    const { now } = this.moment
    if (!isLater) return forMs === 0 && !asksNow(lead, now)
    const { place } = this.look
    const opens = this.#limits.isFull(this.row) ? undefined : this.#limits.opensAt(this.row, now)
    const at = Math.min(place === null ? Number.POSITIVE_INFINITY : dueAt(place), opens ?? Number.POSITIVE_INFINITY)
    return at < Number.POSITIVE_INFINITY && !(isLed(lead, now) && lead.wakeAt <= at)
  }
}

function isOfSuspects(pool: ReadyPool): boolean {
  return typeof pool === 'object' && 'suspectsOf' in pool
}

/** Jobs of one pool that a claim takes at one visit. */
interface TakenPool {
  readonly pool: ReadyPool
  readonly group: string
  readonly count: number
}

/** A decision, in the form in which the database carries it out. */
class DecidedClaim {
  readonly plan: LimitedPlan
  /** The weight of its jobs. */
  readonly bytes: number
  readonly #taken: readonly TakenPool[]

  constructor(
    changes: ScopeChanges & Pick<LimitedPlan, 'lanes' | 'closed'>,
    taken: readonly TakenPool[],
    bytes: number,
  ) {
    this.#taken = taken
    this.bytes = bytes
    const of = (is: (pool: ReadyPool) => boolean) => taken.filter(({ pool }) => is(pool))
    const groups = new Map<string, number>()
    for (const { group, count } of of((pool) => typeof pool === 'object' && 'group' in pool))
      groups.set(group, (groups.get(group) ?? 0) + count)
    const suspects = of(isOfSuspects)
    this.plan = {
      ...changes,
      groups: [...groups].map(([g, n]) => ({ g, n })),
      free: of((pool) => pool === 'free').reduce((sum, { count }) => sum + count, 0),
      suspects: suspects.length,
      suspect: suspects[0]?.group ?? null,
    }
  }

  /** The jobs in the order in which the lanes were visited. */
  inOrder(jobs: readonly ClaimedColumns[]): ClaimedColumns[] {
    const byGroup = new Map<string, ClaimedColumns[]>()
    for (const columns of jobs) byGroup.set(columns[14] ?? '', [...(byGroup.get(columns[14] ?? '') ?? []), columns])
    return this.#taken.flatMap(({ group, count }) => byGroup.get(group)?.splice(0, count) ?? [])
  }
}

/** How many of the jobs that were looked at a claim can carry. */
class PlannedLoad {
  isFull = false
  bytes = 0
  readonly #mostBytes: number
  readonly #left = new Map<string, { n: number; readonly each: number; readonly weights: number[] | undefined }>()

  constructor({ limits }: LimitsLook, mostBytes: number) {
    this.#mostBytes = mostBytes
    const add = (group: string, n: number, bytes: number, weights: number[] | null) =>
      this.#left.set(group, { n, each: n === 0 ? 0 : bytes / n, weights: weights?.slice() })
    for (const [group, , , , , n, bytes, weights] of limits.lanes) add(group, n, bytes, weights)
    add('', ...limits.free)
  }

  take(pool: ReadyPool, most: number): number {
    if (isOfSuspects(pool)) return 1
    const left = this.#left.get(groupIn(pool))
    let count = 0
    while (left !== undefined && count < most && left.n > 0 && this.bytes < this.#mostBytes) {
      this.bytes += left.weights?.shift() ?? left.each
      left.n -= 1
      count += 1
    }
    this.isFull = count < most || this.bytes >= this.#mostBytes
    return count
  }
}

function rowOf(look: LimitsLook, shut: number | undefined): CountedQueue {
  const { limits, place, stopped } = look
  const counted = limits.lanes.reduce(
    (sum, [group, , , , , n]) => sum + (group === '' ? 0 : n > limits.most ? n + 1 : n),
    0,
  )
  const grouped = counted + (limits.others ? 1 : 0)
  const turns = limits.lanes.flatMap(([, turn]) => turn ?? [])
  return {
    ...{ ...limits.of, resharding: null, merge: 'all' },
    ...{ paused: stopped ? 1 : 0, draining: 0, limits: '', max_pending: null, crash_limit: 0, results_limit: null },
    ...{ dead_age_ms: null, dead_count: null, max_running: limits.total, max_per_group: limits.perGroup },
    ...{ throttle: limits.name, throttle_by: limits.by, held_until: limits.held, shut_until: shut ?? null },
    ...{ lead_worker: look.lead, lead_wake_at: look.wake },
    ...{ suspect_lead_worker: look.suspectLead, suspect_lead_wake_at: look.suspectWake },
    ...none,
    scheduled: place === null ? 0 : 1,
    ready: limits.free[0] + grouped + limits.suspects.length,
    running: limits.running,
    suspects: limits.suspects.length,
    ...{ laned: 1, grouped, grouped_running: limits.groupedRunning },
    open_lanes: limits.open,
    last_lane_turn: turnStep * (Math.floor(Math.max(0, ...turns) / turnStep) + 1),
  }
}

const none = {
  ...{ scheduled: 0, waiting: 0, ready: 0, running: 0, completed: 0, dead: 0, retries: 0, suspects: 0, remembered: 0 },
  ...{ pending: 0, processed: 0, failed: 0, crashed: 0, expired: 0, laned: 1, grouped: 0, grouped_running: 0 },
  ...{ open_lanes: 0, last_lane_turn: 0 },
}

/** The other queues of the scope, as one. */
function elsewhere({ elsewhere: grouped, elsewhereFree: free }: LimitsLook['limits']): CountedQueue {
  const counts = { ready: Number(grouped) + Number(free), grouped: Number(grouped) }
  const row = { ...none, qid: elsewhereQid, ...counts, paused: 0, resharding: null }
  return row as unknown as CountedQueue
}
