/**
 * The keys of a Redis store: a fixed set for each shard of a queue. All keys of a shard have one tag, and so are on one
 * server. Every script gets all of them, in this order, and uses no other keys. The shards of ordered queues have a few
 * more after them.
 */

import type { QueueKind } from '../contract/queue-settings.js'

/**
 * A member of a sorted set is bytes that sort in the right order, then an id. All scores are 0 unless stated otherwise.
 * Numbers are big-endian: a stamp has 7 bytes, a sequence number (which counts the jobs that were added) 6, and an
 * instant in ms 6.
 */
export const shardKeys = [
  /**
   * List: ready jobs that were added without delay and with priority 0, first in first out: stamp, sequence, id. Most
   * jobs are only ever here.
   */
  'ready-list',
  /**
   * Sorted set: all other ready jobs without a group: 32,767 − priority (2 bytes), stamp (each byte inverted if last in
   * is first out), sequence, id.
   */
  'ready',
  /** Sorted set: suspects, as in `ready`. */
  'suspects',
  /** Sorted set: scheduled jobs: stamp, sequence, id. */
  'scheduled',
  /**
   * Sorted set by their end in ms: leases. The claims of one call share one lease: NUL and the fence (7 bytes). A
   * renewed claim has its own lease: its id.
   */
  'leases',
  /**
   * Hash, id → the job as it was added (redis-record.ts); for an ordered job with its payload while it has only one.
   */
  'jobs',
  /** Hash, id → the current claim: its head, its element, and perhaps its place as a member (`claim_head`). */
  'claims',
  /**
   * Hash, for each shared lease: `n` and fence → number of claims that have it; `i` and fence → ids, NUL between them.
   */
  'batches',
  /** Hash, id → the changes of the job since it was added; absent for a fresh job. */
  'history',
  /**
   * Hash, a letter and an id → `e` error, `b` what beats reported, `r` result, `w` the worker that held an ended job,
   * `k` checkpoint, `l` log, `f` fields (redis-records.ts); `p` the record of a job that was cancelled after it had
   * begun, whose other notes stay with its id in `ended`; `d` of a dead job the number (7 bytes) of its death in `deaths`,
   * if that is not reported yet.
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
  /** Hash, id → what is remembered of an ended job (`readMemory`). If the first bit is 1, its notes remain too. */
  'ended',
  /** Sorted set by the instant in ms until which an id is remembered: the first 6 bytes of its entry in `ended`, id. */
  'ended-until',
  /** Hash, call id → instant and answers. */
  'calls',
  /** List of remembered calls, oldest first. */
  'call-order',
  /**
   * Hash: settings, counters, the last values given (fence, stamp, sequence), leads; `waited` once a job has waited for
   * others, or for a signal.
   */
  'meta',
  /**
   * Sorted set: the marker that a waiter is to be woken. On a cluster also the name of the channel that announces it.
   */
  'wake',
  /**
   * Hash, id → those who wait for the result of the job: for each 8 characters, and the instant in ms until which it is
   * kept for them (6 bytes). Also the name of the channel that announces ended jobs.
   */
  'ends',
  /** Sorted set: ready jobs with a group, which are not in `ready`: group, NUL, place as in `ready`. */
  'lanes',
  /** Sorted set: the same jobs regardless of their groups, as in `ready`. */
  'grouped',
  /**
   * Sorted set by turn, the next first: groups whose lanes are open. A turn is a multiple of `turnStep`, and the turns that
   * the group has had in its round.
   */
  'turns',
  /** Sorted set by the instant in ms at which they open: groups whose lanes are shut. */
  'shut',
  /**
   * Sorted set by the instant in ms until which they are held back: groups, whether or not they have jobs. A group that
   * is paused is there (also) as NUL and its name, with the score +inf; `pausedGroups` in `meta` says whether any is.
   */
  'holds',
  /** Hash, group → how many of its jobs run. Jobs without a group are not counted. */
  'running-by-group',
  /** Sorted set by the instant in ms at which they expire: waiting jobs that were never taken: sequence, id. */
  'expiring',
  /** Sorted set: jobs that wait for the members of a join, or for a signal, as in `scheduled`. */
  'joining',
  /** Hash: the joins of the shard, and what those of all shards know of the members here (`joins-lua.ts`). */
  'joins',
  /** Hash, number of a fragment, dot and number of a member → its end, unless it completed and left nothing. */
  'joined',
  /**
   * Sorted set: what is to be done about joins: a letter, and a fragment or an id (`joins-lua.ts`). A negative score is
   * minus the instant in ms since which something is to be told elsewhere; a positive one when a sweep is to do it.
   */
  'join-tasks',
  /** Hash: the steps and signals that jobs keep, and the signals that they wait for (`steps-lua.ts`). */
  'steps',
  /** Sorted set by the instant in ms at which their time is over: jobs that wait for a signal: sequence, id. */
  'signal-waits',
  /** Sorted set: deaths that are not reported yet (`redis-deaths.ts`). `deaths` in `meta` is the number of the last. */
  'deaths',
] as const

/**
 * The additional keys of an ordered queue's shard. Such a shard has no ready list, keeps no results and remembers no
 * ids. Its jobs have zeros instead of a sequence number. A payload is its place (score, 8 sortable bytes; arrival, 6
 * bytes) and its body (redis-payload.ts); it is identified by its digest. If an id has only one payload, that stays in
 * the record while the job waits and runs. `many` in `meta` counts the waiting jobs whose payloads are in `payloads`.
 */
const orderedKeys = [
  /** Sorted set: waiting payloads: id, NUL, place, weight (4 bytes), digest. */
  'payloads',
  /** Hash, id, NUL and digest → place and body of a waiting payload. */
  'bodies',
  /**
   * Hash, id → what its claim took: number of payloads (4 bytes); for each its length (4 bytes), digest, place, body.
   */
  'claimed-payloads',
  /**
   * Hash, id → the job that follows a running one: its stamp and createdAt (6 bytes), and `r` if it is ready
   * (`write_successor`).
   */
  'successors',
  /** Hash, id → header of its entry in the morgue: see `write_header`. */
  'morgue',
  /** Sorted set: payloads of the dead, as in `payloads`. */
  'dead-payloads',
  /** Hash: payloads of the dead, as in `bodies`. */
  'dead-bodies',
  /**
   * Hash: the batch of jobs that left and is not yet elsewhere: its number, content, and count of `live` and `dead` jobs;
   * `at`, when it left, or when somebody last set about bringing it on; the queue `to` which it goes, and how many
   * `shards` that had then.
   */
  'transit',
] as const

const allKeys = [...shardKeys, ...orderedKeys]

export type ShardKey = (typeof allKeys)[number]

/** The names of the keys of a shard, in their order. */
export function keyNames(kind: QueueKind): readonly ShardKey[] {
  return kind === 'plain' ? shardKeys : allKeys
}

/** The local variable for this key in scripts. */
export function luaName(name: ShardKey): string {
  return name.toUpperCase().replaceAll('-', '_')
}

/** The type of each key, as the server names it. */
export const keyTypes: Readonly<Record<ShardKey, 'list' | 'hash' | 'zset'>> = {
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
  ends: 'hash',
  lanes: 'zset',
  grouped: 'zset',
  turns: 'zset',
  shut: 'zset',
  holds: 'zset',
  'running-by-group': 'hash',
  expiring: 'zset',
  joining: 'zset',
  joins: 'hash',
  joined: 'hash',
  'join-tasks': 'zset',
  steps: 'hash',
  'signal-waits': 'zset',
  deaths: 'zset',
  payloads: 'zset',
  bodies: 'hash',
  'claimed-payloads': 'hash',
  successors: 'hash',
  morgue: 'hash',
  'dead-payloads': 'zset',
  'dead-bodies': 'hash',
  transit: 'hash',
}

/** The keys of a throttle's scope (`throttle-lua.ts`), in this order. */
export const scopeKeyTypes = { rules: 'hash', starts: 'zset', counters: 'hash', idle: 'zset' } as const

/** The keys of a scope, as the scripts of throttled queues get them. */
export function scopeKeys(namespace: string, scope: string): string[] {
  return Object.keys(scopeKeyTypes).map((key) => `{${namespace}:${scope}}:${key}`)
}

/**
 * The beginning of a shard's keys. The part in braces decides on which server they are. A plain queue of one shard has
 * no number in it.
 */
export function shardTag(namespace: string, queue: string, shard: number, shards: number): string {
  return shards === 1 ? `{${namespace}:${queue}}` : `{${namespace}:${queue}:${shard}}`
}

/**
 * The same for a shard of an ordered queue. Each change of the number of shards is a new generation, with its own tags.
 */
export function orderedTag(namespace: string, queue: string, generation: number, shard: number): string {
  return `{${namespace}:${queue}:${generation}.${shard}}`
}

/** The same if all that shares limits is in one place. `number`: generation and number of an ordered queue's shard. */
export function placedTag(namespace: string, place: string, queue: string, number?: string): string {
  if (number === undefined) return place === queue ? `{${namespace}:${queue}}` : `{${namespace}:${place}}:${queue}`
  return `{${namespace}:${place}}:${queue}:${number}`
}

/** The keys of a shard, as every script gets them. */
export function keysOf(tag: string, kind: QueueKind = 'plain'): string[] {
  return keyNames(kind).map((key) => `${tag}:${key}`)
}

/** One key of a shard. */
export function keyIn(keys: readonly string[], name: ShardKey): string {
  return keys[allKeys.indexOf(name)]!
}

/** The channel on which processes publish what happens to the jobs of a queue; never a key. */
export function liveChannel(namespace: string, queue: string): string {
  return `{${namespace}:${queue}}:live`
}

/**
 * Hashes with what the queue's jobs did: one for each hour with its minutes, and one for each day with its hours
 * (redis-history.ts).
 */
export type HistoryKey = 'minutes' | 'hours'

/** `number`: the number of the hour, or day, since 1970. */
export function historyKey(namespace: string, queue: string, key: HistoryKey, number: number): string {
  return `{${namespace}:${queue}}:${key}:${number}`
}

/** Whether it is the key of a history, even of a queue that no longer exists. */
export function isHistoryKey(key: string): boolean {
  return /\}:(minutes|hours):\d+$/.test(key)
}

/** Hash: the queues of a namespace, name → number and kind of its shards (redis-layout.ts). */
export function queuesKey(namespace: string): string {
  return `{${namespace}}:queues`
}

/** Hash: the version of the layout of a namespace (redis-version.ts). */
export function versionKey(namespace: string): string {
  return `{${namespace}}:version`
}

/** Hash: the workers of a namespace, id → last seen, expiry, record. */
export function workersKey(namespace: string): string {
  return `{${namespace}}:workers`
}

/** The schedules of a shard, next to its other keys: a hash, name → record, and a sorted set by the next tick. */
export function scheduleKeys(tag: string): string[] {
  return [`${tag}:schedules`, `${tag}:schedule-due`]
}

/**
 * The index of the schedules of a namespace: a hash, name → tag of the shard that has it; a hash of all tags that may
 * have schedules; a hash that says which worker leads.
 */
export function scheduleIndexKeys(namespace: string): readonly [index: string, places: string, lead: string] {
  return [`{${namespace}}:schedules`, `{${namespace}}:schedule-places`, `{${namespace}}:schedule-lead`]
}

/**
 * The index of what is swept in a namespace: a hash of all queues that may have joins or members, jobs that wait for a
 * signal for a bounded time, or jobs that a move has taken out; a hash that says which worker sweeps.
 */
export function joinIndexKeys(namespace: string): readonly [places: string, lead: string] {
  return [`{${namespace}}:join-places`, `{${namespace}}:join-lead`]
}

/** The channel that announces changed schedules. It begins like the keys of a queue, but no queue has an empty name. */
export function scheduleChannel(namespace: string): string {
  return `{${namespace}:}:schedule-changes`
}
