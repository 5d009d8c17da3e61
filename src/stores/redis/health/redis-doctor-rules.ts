/** The doctor's rules for a Redis server: findings from what it reports about itself. Pure. */

import { formatDuration } from '../../../core/values/duration.js'
import type { FsckFinding } from '../../contract/store-health.js'
import { error, ok, warning } from '../../rules/findings.js'
import type { RedisInfo } from '../client/redis-server-info.js'
import { type RedisRight, userLine } from './redis-acl.js'

export interface ServerFacts {
  readonly info: RedisInfo
  /** The reply to CONFIG GET; undefined if it could not be read. */
  readonly settings: RedisInfo | undefined
  /** The number of replicas that an enqueue waits for. */
  readonly replicas: number
}

interface ClusterFacts {
  /** The reply to CLUSTER INFO. */
  readonly info: RedisInfo
  /** For each server that has shards, their number. */
  readonly shards: readonly number[]
}

export interface RightsFacts {
  readonly namespace: string
  readonly isCluster: boolean
  /** For each right whether this user may run the command; undefined if the server has no such command. */
  readonly rights: readonly (RedisRight & { readonly may: boolean | undefined })[]
}

/** The settings to read with CONFIG GET. */
export const settingNames = [
  'appendfsync',
  'save',
  'stop-writes-on-bgsave-error',
  'min-replicas-to-write',
  'maxmemory-clients',
  'timeout',
  'tcp-keepalive',
] as const

/** Judges one server, or one master of a cluster. */
export function judgeServer(facts: ServerFacts): FsckFinding[] {
  return [
    judgeVersion(facts),
    judgeUptime(facts.info),
    judgeBlockedClients(facts),
    judgeEviction(facts.info),
    judgeMemory(facts.info),
    ...judgePersistence(facts),
    ...judgeReplication(facts),
    ...judgeConnections(facts),
  ].filter((finding) => finding !== undefined)
}

function judgeVersion({ info }: ServerFacts): FsckFinding {
  const what = 'version'
  const valkey = info.get('valkey_version')
  if (valkey !== undefined) return ok(what, `Valkey ${valkey}`)
  const version = info.get('redis_version')
  if (version === undefined) return warning(what, 'INFO does not tell the version. Redis 7.0 or Valkey is needed.')
  if (!isAtLeast(version, '7.0'))
    return error(what, `Redis ${version} cannot run the scripts of the store. Upgrade to Redis 7.0 or Valkey.`)
  return ok(what, `Redis ${version}`)
}

/** CVE-2026-23479. It names versions of Redis, and does not say which versions of Valkey are affected. */
function judgeBlockedClients({ info, settings }: ServerFacts): FsckFinding | undefined {
  const version = info.get('redis_version') ?? ''
  if (info.has('valkey_version') || !isAtLeast(version, '7.2.0') || isAtLeast(version, '8.6.3')) return undefined
  const what = 'CVE-2026-23479'
  const about = `Redis ${version} is one of the versions (7.2.0 to 8.6.2) in which evicting a blocked client uses memory that was freed`
  if (settings?.get('maxmemory-clients') === '0')
    return ok(what, `${about}; clients are never evicted here ('maxmemory-clients' is 0). Upgrade when you can.`)
  return warning(
    what,
    `${about}, and workers wait as blocked clients. Upgrade, make sure that your vendor has mended it, or set 'maxmemory-clients' to 0${settings === undefined ? ' (what it is cannot be read)' : ''}.`,
  )
}

/** A server that has just started may have lost what was not on disk, and has forgotten its peaks. */
function judgeUptime(info: RedisInfo): FsckFinding | undefined {
  const seconds = info.get('uptime_in_seconds')
  return seconds === undefined ? undefined : ok('uptime', `up for ${formatDuration(Number(seconds) * 1_000)}`)
}

function judgeEviction(info: RedisInfo): FsckFinding {
  const what = 'eviction policy'
  const policy = info.get('maxmemory_policy')
  if (policy === 'noeviction') return ok(what, policy)
  if (policy === undefined)
    return warning(what, "INFO does not tell it. Make sure that 'maxmemory-policy' is noeviction.")
  return error(
    what,
    `${policy}: when memory is full Redis deletes keys, and jobs with them. Run CONFIG SET maxmemory-policy noeviction and put it into the configuration too.`,
  )
}

function judgeMemory(info: RedisInfo): FsckFinding {
  const what = 'memory'
  const [used, most] = [numberOf(info, 'used_memory'), numberOf(info, 'maxmemory')]
  const peak = info.has('used_memory_peak')
    ? `, at most ${megabytes(numberOf(info, 'used_memory_peak'))} since its start`
    : ''
  if (most === 0)
    return ok(
      what,
      `${megabytes(used)} in use${peak}; 'maxmemory' is not set, so the system decides what happens when its memory is full`,
    )
  const text = `${megabytes(used)} of ${megabytes(most)} in use (${Math.round((used / most) * 100)} %)${peak}`
  if (used < most * 0.8) return ok(what, text)
  return warning(
    what,
    `${text}. When it is full enqueues fail with StoreFullError, while workers go on. Let them catch up, or raise 'maxmemory'.`,
  )
}

function judgePersistence({ info, settings }: ServerFacts): FsckFinding[] {
  const failures: FsckFinding[] = []
  if (failed(info, 'aof_last_write_status'))
    failures.push(
      error(
        'append-only file',
        'its last write failed: all writes are refused. Make room on its disk, or mend the rights there.',
      ),
    )
  if (failed(info, 'aof_last_bgrewrite_status'))
    failures.push(
      warning('append-only file', 'its last rewrite failed; it grows. See the log of the server for the reason.'),
    )
  if (failed(info, 'rdb_last_bgsave_status')) {
    const text = 'the last snapshot failed; see the log of the server. Most often its disk is full.'
    const isStopping = settings?.get('stop-writes-on-bgsave-error') !== 'no' && hasSnapshots(settings)
    failures.push(
      isStopping
        ? error('snapshots', `${text} Until one succeeds all writes are refused ('stop-writes-on-bgsave-error').`)
        : warning('snapshots', text),
    )
  }
  return [judgeDurability(info, settings), ...failures]
}

function judgeDurability(info: RedisInfo, settings: RedisInfo | undefined): FsckFinding {
  const what = 'persistence'
  if (info.get('aof_enabled') !== '1') {
    const lost = hasSnapshots(settings)
      ? 'a crash of the server loses every job since its last snapshot'
      : 'a crash or restart of the server loses every job'
    return warning(what, `no append-only file: ${lost}. Set 'appendonly yes'.`)
  }
  switch (settings?.get('appendfsync')) {
    case 'always':
      return ok(what, "append-only file, 'appendfsync always': what was accepted survives a crash of the machine")
    case 'everysec':
      return ok(
        what,
        "append-only file, 'appendfsync everysec': a crash of the server loses nothing, one of the machine up to 2 s",
      )
    case 'no':
      return warning(
        what,
        "append-only file, 'appendfsync no': a crash of the machine loses what its system had not written yet, often 30 s. Set 'everysec'.",
      )
    default:
      return ok(what, 'append-only file; how often it reaches the disk cannot be read')
  }
}

function judgeReplication({ info, settings, replicas }: ServerFacts): FsckFinding[] {
  const what = 'replication'
  if (info.get('role') === 'slave')
    return [error(what, `this is a replica and takes no writes. Give the address of its master.`)]
  const connected = numberOf(info, 'connected_slaves')
  const said = connected === 1 ? '1 replica is connected' : `${connected} replicas are connected`
  const least = Number(settings?.get('min-replicas-to-write') ?? 0)
  const findings: FsckFinding[] = []
  if (replicas > connected)
    findings.push(
      error(
        what,
        `${said}, and 'replicas' waits for ${replicas}: no enqueue is ever confirmed. Connect more, or lower 'replicas'.`,
      ),
    )
  if (least > connected)
    findings.push(
      error(what, `${said}, and 'min-replicas-to-write' asks for ${least}: all writes are refused. Connect more.`),
    )
  if (findings.length > 0) return findings
  const waited = replicas === 0 ? '' : `; every enqueue waits for ${replicas}`
  return [ok(what, `master; ${said}${waited}`)]
}

function judgeConnections({ info, settings }: ServerFacts): (FsckFinding | undefined)[] {
  const what = 'connections'
  const [open, most] = [numberOf(info, 'connected_clients'), numberOf(info, 'maxclients')]
  const idleSeconds = Number(settings?.get('timeout') ?? 0)
  const findings = [
    most > 0 && open >= most * 0.8
      ? warning(
          what,
          `${open} of ${most} are open; beyond that clients are refused. Each process needs up to three. Raise 'maxclients'.`,
        )
      : undefined,
    idleSeconds > 0
      ? warning(
          what,
          `the server closes connections that are idle for ${idleSeconds} s ('timeout'): a call at that moment is in doubt. Set 'timeout 0'.`,
        )
      : undefined,
    settings?.get('tcp-keepalive') === '0'
      ? warning(
          what,
          "'tcp-keepalive' is 0: clients whose machine died stay connected, and wake-ups go to them. Set 'tcp-keepalive 300'.",
        )
      : undefined,
  ]
  return findings.some((finding) => finding !== undefined)
    ? findings
    : [ok(what, `${open} of at most ${most} are open`)]
}

export function judgeCluster({ info, shards }: ClusterFacts): FsckFinding[] {
  const state = info.get('cluster_state')
  const served = numberOf(info, 'cluster_slots_ok')
  const masters = numberOf(info, 'cluster_size')
  const total = shards.reduce((sum, count) => sum + count, 0)
  const most = Math.max(0, ...shards)
  const spread = `${total} on ${shards.length} of ${masters} masters${shards.length > 1 ? `, ${shards.join(' + ')}` : ''}`
  return [
    state === 'ok' && served === 16_384
      ? ok('cluster', `state ok, all 16384 slots served by ${masters} masters`)
      : error(
          'cluster',
          `state '${state}', ${served} of 16384 slots served: keys in the others cannot be reached. See redis-cli --cluster check.`,
        ),
    total >= masters * 2 && most > (total / masters) * 2
      ? warning(
          'shards',
          `${spread}: one bears more than twice its share. Move slots, or give large queues more 'shards'.`,
        )
      : ok('shards', total === 0 ? 'no queue is stored yet' : spread),
  ]
}

/** `offsetMs`: how far the server's clock is ahead of the local one, accurate to `marginMs`. */
export function judgeClock(offsetMs: number, marginMs: number): FsckFinding {
  const off = Math.abs(offsetMs)
  if (off <= marginMs + 1) return ok('clock', "the server's and this machine's agree")
  return ok(
    'clock',
    `the server's is ${formatDuration(off)} ${offsetMs > 0 ? 'ahead of' : 'behind'} this machine's. The store goes by the server's alone; only 'runAt' compares them.`,
  )
}

export function judgeRights({ namespace, isCluster, rights }: RightsFacts): FsckFinding[] {
  const rules = (may: boolean | undefined) => [
    ...new Set(rights.filter((right) => right.may === may).map(({ rule }) => rule)),
  ]
  const [denied, missing] = [rules(false), rules(undefined)]
  const findings: FsckFinding[] = []
  if (denied.length > 0)
    findings.push(
      error(
        'rights',
        `this user may not run ${denied.join(', ')} on the keys and channels of namespace '${namespace}'. Grant what the line below grants.`,
      ),
    )
  if (missing.length > 0)
    findings.push(warning('rights', `the server has no command ${missing.join(', ')}; what needs it fails.`))
  if (findings.length === 0)
    findings.push(ok('rights', `this user may run all ${rules(true).length} commands that the store uses`))
  return [
    ...findings,
    ok('least rights', `a user with what the store needs and no more: ${userLine(namespace, isCluster)}`),
  ]
}

/** The finding if nobody can use the server at all: it is away, refuses access, or is unfit for a store. */
export function unusable(why: string): FsckFinding {
  return error('server', why)
}

/** The finding for something that could not be read, and why. */
export function unreadable(what: string, why: string): FsckFinding {
  return warning(what, `could not be read (${why}).`)
}

function failed(info: RedisInfo, field: string): boolean {
  return (info.get(field) ?? 'ok') !== 'ok'
}

/** Whether it writes snapshots. If the settings are unknown, yes, as by default. */
function hasSnapshots(settings: RedisInfo | undefined): boolean {
  return settings?.get('save') !== ''
}

function numberOf(info: RedisInfo, field: string): number {
  return Number(info.get(field) ?? 0)
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MB`
}

/** Compares versions by their numbers. */
export function isAtLeast(version: string, least: string): boolean {
  const [have, need] = [version, least].map((text) => text.split('.').map(Number))
  for (const [i, n] of need!.entries()) if ((have![i] ?? 0) !== n) return (have![i] ?? 0) > n
  return true
}
