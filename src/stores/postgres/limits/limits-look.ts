/** What the database says of the limits of a queue, and what a decision writes back. Instants are ms, but turns and places. */

import type { ThrottleRule } from '../../../core/queue/throttle.js'
import { countedMs, groupRules } from '../../../core/queue/throttle.js'
import type { QueueSettingsRow } from '../../rows/queue-row.js'
import type { ScopeThrottle } from '../../rows/scope-throttle.js'
import type { CounterRow, ThrottleRow } from '../../rows/throttle-row.js'
import type { LookedQueue } from './queue-look.js'

/** The number of jobs that were looked at, their weight, and each weight if they are heavy. */
type LookedJobs = [n: number, bytes: number, weights: number[] | null]

/** The starts of a counter, the oldest first: when, on its clock, and how many others came before. */
export type LookedStarts = [at: number, nth: number][]

type LookedCounter = CounterRow & { readonly subject: string }

/** A group, with its jobs, running jobs if these are bounded, whether other queues of the scope have some, and its counter. */
type LookedLane = [
  group: string,
  turn: number | null,
  shutUntil: number | null,
  heldUntil: number | null,
  paused: boolean | null,
  n: number,
  bytes: number,
  weights: number[] | null,
  running: number | null,
  elsewhere: boolean,
  rules: string | null,
  counter: LookedCounter | null,
  starts: LookedStarts | null,
]

/** See `look_limits_2`. */
export interface LimitsLook extends LookedQueue {
  readonly now: number
  /** Whether a claim may receive jobs. */
  readonly grants: boolean
  readonly limits: {
    readonly of: Pick<QueueSettingsRow, 'qid' | 'name' | 'kind' | 'shard' | 'shards' | 'ord' | 'exclusive'>
    /** The other shards of a queue that bounds what runs of all together, and the number of their running jobs. */
    readonly siblings: number[]
    readonly siblingsRunning: number
    /** The scope of which this is a version, and the run of the server. */
    readonly key: string
    readonly version: number
    readonly run: string
    readonly from: number | null
    readonly late: number | null
    readonly state: PaceState | null
    readonly name: string | null
    readonly by: 'queue' | 'group' | 'both' | null
    readonly total: number | null
    readonly perGroup: number | null
    readonly held: number | null
    /** The jobs of each lane that were looked at, at most one more. */
    readonly most: number
    /** The number of open lanes, at most one more than are listed. */
    readonly open: number
    readonly running: number
    readonly groupedRunning: number
    readonly free: LookedJobs
    /** The open lanes in turn, then others that were asked for. */
    readonly lanes: LookedLane[]
    /** Whether jobs wait in lanes that are shut, blocked or paused. */
    readonly others: boolean
    /** The groups of the first suspects in their order, `''` for none: for a claim one more than it looks at, as it may take one. */
    readonly suspects: string[]
    /** Whether jobs or lanes whose time has come wait for a claim. */
    readonly due: boolean
    /** Whether other queues of the scope have ready jobs of groups, and others. */
    readonly elsewhere: boolean
    readonly elsewhereFree: boolean
    /** When the first lane of a group opens. */
    readonly opening: number | null
    readonly whole: [counter: LookedCounter, starts: LookedStarts | null] | null
    readonly oldest: Pick<CounterRow, 'recoveries' | 'shift_ms' | 'last_at'> | null
  }
}

/** The state of a scope, by queue the instants before which its throttle grants nothing, and the spans of its rules. */
export interface PaceState {
  readonly t?: ThrottleRow
  readonly shut?: Readonly<Record<string, number>>
  readonly whole?: readonly CountedSpan[]
  readonly each?: readonly CountedSpan[]
}

/** The limit of a rule, how long a start counts, and the buffer. */
type CountedSpan = readonly [limit: number, forMs: number, buffer: number]

export function spansOf(rules: readonly ThrottleRule[] = []): CountedSpan[] {
  return rules.map((rule) => [rule.limit, countedMs(rule), rule.elasticBuffer ?? 0])
}

/** The state with the throttle as it is now. */
export function paceState(throttle: ScopeThrottle | undefined, shut: PaceState['shut'] = {}): PaceState {
  if (throttle === undefined) return {}
  const { settings, row } = throttle
  return { t: row, shut, whole: spansOf(settings.rules), each: spansOf(groupRules(settings)) }
}

/** A throttle that nobody has asked yet. */
export function newThrottleRow(of: Pick<ThrottleRow, 'scope' | 'counts_by' | 'rules' | 'each_group'>): ThrottleRow {
  const never = { last_at: null, last_wall: null, quiet_until: null }
  return { ...of, own: '', epoch: 0, run: null, recoveries: 0, recovered_at: 0, shift_ms: 0, ...never }
}

/** See `write_scope_1`. */
export interface ScopeChanges {
  /** Null: it stays. */
  readonly state: string | null
  readonly counters: readonly CounterChange[]
  readonly trims: readonly { readonly recoveries: number; readonly before: number; readonly most: number }[]
}

interface CounterChange extends Omit<CounterRow, 'tid'> {
  readonly subject: string
  readonly starts: readonly (readonly [at: number, nth: number])[]
  /** Starts before this instant go. */
  readonly dropBefore: number | null
}

/** See `apply_2`. */
export interface LimitedPlan extends ScopeChanges {
  readonly groups: readonly { readonly g: string; readonly n: number }[]
  readonly free: number
  readonly suspects: number
  /** The group of the suspect. */
  readonly suspect: string | null
  /** Lanes with a new turn, in this order, or with one `kept`, or that are shut. */
  readonly lanes: readonly { readonly g: string; readonly until: number | null; readonly kept: number | null }[]
  /** Lanes out of the turns. */
  readonly closed: readonly string[]
}
