/**
 * The keys of a Redis store: a fixed set for each shard of a queue, all with one tag and so all on one server. Every script
 * is given all of them, in this order, and touches no other key. Those of an ordered queue's shard have a few more behind them.
 */

import type { QueueKind } from '../../contract/queue-settings.js'
/**
 * A member of a sorted set is an order-preserving text of bytes and the id behind it; all scores are 0 unless said. Numbers
 * are big-endian: a stamp has 7 bytes, a sequence number 6 (it counts the jobs that came in), an instant in ms 6.
 */
export const shardKeys = [
  /** List: ready jobs that came in for at once with priority 0, first in first out: stamp, sequence, id. Most jobs only ever stand here. */
  'ready-list',
  /** Sorted set: all other ready jobs: 32,767 − priority (2 bytes), stamp (each byte inverted where last in is first out), sequence, id. */
  'ready',
  /** Sorted set: suspects, as in `ready`. */
  'suspects',
  /** Sorted set: scheduled jobs: stamp, sequence, id. */
  'scheduled',
  /**
   * Sorted set by its end in ms: leases. The claims of one call share one, NUL and the fence (7 bytes); a claim that was
   * renewed has its own, its id.
   */
  'leases',
  /** Hash, id → the job as it came in (redis-record.ts); of an ordered one with its payload, as long as that is the only one. */
  'jobs',
  /** Hash, id → the current claim: its head and its element (`claim_head`). */
  'claims',
  /** Hash, of each shared lease `n` and the fence → how many claims have it, `i` and the fence → ids of the call, NUL between them. */
  'batches',
  /** Hash, id → what has become of the job since it came in; absent for one that is fresh. */
  'history',
  /**
   * Hash, a letter and an id → `e` error, `b` what beats said, `r` result, `w` the worker that held an ended job, `k`
   * checkpoint, `l` log, `f` fields (fields-script.ts).
   */
  'notes',
  /** Sorted set: completed jobs whose result is kept: end (6 bytes), sequence, id. */
  'completed',
  /** Sorted set by the instant in ms at which a kept result expires: sequence, id. */
  'expiry',
  /** Sorted set: dead jobs: end (6 bytes), sequence, id. */
  'dead',
  /** Sorted set: waiting and running jobs that failed: attempt (3 bytes), sequence, id. */
  'retries',
  /** Hash, id → what is remembered of a job that ended. */
  'ended',
  /** Sorted set by the instant in ms until which an id is remembered: sequence, id. */
  'ended-until',
  /** Hash, call id → instant and answers. */
  'calls',
  /** List of remembered calls, oldest first. */
  'call-order',
  /** Hash: settings, counters, what was given last, leads. */
  'meta',
  /** Sorted set: the marker that somebody is to be woken. On a cluster also the channel that says so. */
  'wake',
  /** The channel that tells of jobs that ended; never a key. */
  'ends',
  /** Sorted set: ready jobs that have a group, which are not in `ready`: group, NUL, place as in `ready`. */
  'lanes',
  /** Sorted set: the same jobs without regard to their groups, as in `ready`. */
  'grouped',
  /** Sorted set by their turn, the first of which is next: groups whose lanes are open. */
  'turns',
  /** Sorted set by the instant in ms at which they open: groups whose lanes are shut. */
  'shut',
  /** Sorted set by the instant in ms until which they are held back: groups, be there jobs of theirs or not. */
  'holds',
  /** Hash, group → how many of its jobs run; of jobs without a group none is counted. */
  'running-by-group',
  /** Sorted set by the instant in ms at which they expire: waiting jobs that were never taken: sequence, id. */
  'expiring',
] as const

/**
 * What the shard of an ordered queue has besides. It has no ready list, keeps no results and remembers no ids; its jobs have no
 * sequence number, and zeros in its place. A payload is its place (score, 8 bytes in order; arrival, 6 bytes) and its body
 * (redis-payload.ts); it is known by its digest. One that is the only one of its id stays in the record, while the job waits and
 * while it runs; `many` of `meta` counts the jobs that wait with theirs in `payloads`.
 */
const orderedKeys = [
  /** Sorted set: payloads that wait: id, NUL, place, length of place and body (4 bytes), digest. */
  'payloads',
  /** Hash, id, NUL and digest → place and body of a payload that waits. */
  'bodies',
  /** Hash, id → what its claim took: the number of payloads (4 bytes), and of each its length (4 bytes), digest, place, body. */
  'claimed-payloads',
  /** Hash, id → stamp and createdAt (6 bytes) of the job that follows the one that runs. */
  'successors',
  /** Hash, id → header of its entry in the morgue: see `write_header`. */
  'morgue',
  /** Sorted set: payloads of the dead, as in `payloads`. */
  'dead-payloads',
  /** Hash: payloads of the dead, as in `bodies`. */
  'dead-bodies',
  /** Hash: the batch of jobs that has left and has not been put elsewhere: its number, what it holds, how many `live` and `dead` jobs. */
  'transit',
] as const

const allKeys = [...shardKeys, ...orderedKeys]

export type ShardKey = (typeof allKeys)[number]
/** The names of the keys of a shard, in their order. */
export function keyNames(kind: QueueKind): readonly ShardKey[] {
  return kind === 'plain' ? shardKeys : allKeys
}

/** The local of each of them in scripts. */
export function luaName(name: ShardKey): string {
  return name.toUpperCase().replaceAll('-', '_')
}

/** What the server calls each of them. */
export const keyTypes: Readonly<Record<ShardKey, 'list' | 'hash' | 'zset' | 'none'>> = {
  'ready-list': 'list',
  ready: 'zset',
  suspects: 'zset',
  scheduled: 'zset',
  leases: 'zset',
  jobs: 'hash',
  claims: 'hash',
  batches: 'hash',
  history: 'hash',
  notes: 'hash',
  completed: 'zset',
  expiry: 'zset',
  dead: 'zset',
  retries: 'zset',
  ended: 'hash',
  'ended-until': 'zset',
  calls: 'hash',
  'call-order': 'list',
  meta: 'hash',
  wake: 'zset',
  ends: 'none',
  lanes: 'zset',
  grouped: 'zset',
  turns: 'zset',
  shut: 'zset',
  holds: 'zset',
  'running-by-group': 'hash',
  expiring: 'zset',
  payloads: 'zset',
  bodies: 'hash',
  'claimed-payloads': 'hash',
  successors: 'hash',
  morgue: 'hash',
  'dead-payloads': 'zset',
  'dead-bodies': 'hash',
  transit: 'hash',
}

/** What a throttle keeps for its scope (`throttle-lua.ts`), in this order. */
export const scopeKeyTypes = { rules: 'hash', starts: 'zset', counters: 'hash', idle: 'zset' } as const

/** The keys of a scope, as the scripts of throttled queues are given them. */
export function scopeKeys(namespace: string, scope: string): string[] {
  return Object.keys(scopeKeyTypes).map((key) => `{${namespace}:${scope}}:${key}`)
}

/**
 * What the keys of a shard begin with; what stands in braces decides where it lies. A plain queue of one shard has no number
 * in it.
 */
export function shardTag(namespace: string, queue: string, shard: number, shards: number): string {
  return shards === 1 ? `{${namespace}:${queue}}` : `{${namespace}:${queue}:${shard}}`
}

/** The same of a shard of an ordered queue. With another number of shards the queue is another generation, with tags of its own. */
export function orderedTag(namespace: string, queue: string, generation: number, shard: number): string {
  return `{${namespace}:${queue}:${generation}.${shard}}`
}

/** The same where all that shares limits lies in one place: of the shard of an ordered queue with `number`, its generation and number. */
export function placedTag(namespace: string, place: string, queue: string, number?: string): string {
  if (number === undefined) return place === queue ? `{${namespace}:${queue}}` : `{${namespace}:${place}}:${queue}`
  return `{${namespace}:${place}}:${queue}:${number}`
}

/** The keys of a shard, as every script is given them. */
export function keysOf(tag: string, kind: QueueKind = 'plain'): string[] {
  return keyNames(kind).map((key) => `${tag}:${key}`)
}

/** One key of a shard. */
export function keyIn(keys: readonly string[], name: ShardKey): string {
  return keys[allKeys.indexOf(name)]!
}

/** The channel on which processes tell what becomes of the jobs of a queue; never a key. */
export function liveChannel(namespace: string, queue: string): string {
  return `{${namespace}:${queue}}:live`
}

/** Hash by minute of an hour, and by hour of a day, each with what the queue's jobs did in it (history-scripts.ts). */
export type HistoryKey = 'minutes' | 'hours'

/** `number`: of that hour, or day, since 1970. */
export function historyKey(namespace: string, queue: string, key: HistoryKey, number: number): string {
  return `{${namespace}:${queue}}:${key}:${number}`
}

/** Whether it is the key of a history, be it of a queue that is no more. */
export function isHistoryKey(key: string): boolean {
  return /\}:(minutes|hours):\d+$/.test(key)
}

/** Hash: the queues of a namespace, name → number and kind of its shards (redis-layout.ts). */
export function queuesKey(namespace: string): string {
  return `{${namespace}}:queues`
}

/** Hash: the workers of a namespace, id → seen at, lapses at, record. */
export function workersKey(namespace: string): string {
  return `{${namespace}}:workers`
}

/** Beside the keys of a shard, what the schedules have whose jobs lie there: a hash, name → record, and a sorted set by the next tick. */
export function scheduleKeys(tag: string): string[] {
  return [`${tag}:schedules`, `${tag}:schedule-due`]
}

/**
 * What is known of the schedules of a namespace: a hash, name → tag of the shard that has it; a hash of all tags that may have
 * some; a hash that says who leads.
 */
export function scheduleIndexKeys(namespace: string): readonly [index: string, places: string, lead: string] {
  return [`{${namespace}}:schedules`, `{${namespace}}:schedule-places`, `{${namespace}}:schedule-lead`]
}

/** The channel that tells of schedules that were written. It begins as a queue's do, of which none has no name. */
export function scheduleChannel(namespace: string): string {
  return `{${namespace}:}:schedule-changes`
}
