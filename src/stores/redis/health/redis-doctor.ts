/** The doctor of a Redis store: it examines what the store runs on, and judges it. It only reads. */

import { hasCode } from '../../../core/errors.js'
import { messageOf } from '../../../core/messages/describe.js'
import { type Clock, systemClock } from '../../../core/platform/clock.js'
import type { FsckFinding } from '../../contract/store-health.js'
import type { RedisClient } from '../client/redis-client.js'
import { listIn, numberIn, rowsIn, textIn } from '../client/redis-reply.js'
import { type RedisInfo, redisInfo } from '../client/redis-server-info.js'
import { queuesKey } from '../redis-keys.js'
import { liveShards } from '../redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { bringUpToDate } from '../shards/redis-version.js'
import { rightsOf } from './redis-acl.js'
import {
  judgeClock,
  judgeCluster,
  judgeRights,
  judgeServer,
  type RightsFacts,
  settingNames,
  unreadable,
  unusable,
} from './redis-doctor-rules.js'
import { type RedisServerSeen, rightsScript, serversOf } from './redis-servers.js'

interface DoctorParts {
  readonly client: RedisClient
  readonly queues: RedisQueues
  readonly namespace: string
  readonly replicas: number
}

/**
 * Examines the server. If it cannot be used at all, that is the only finding. If something cannot be read, mostly
 * because a right is missing, a warning names it. On a cluster, it asks each master that holds a shard for its INFO,
 * and one of them for its settings.
 */
export async function examineRedis(parts: DoctorParts, clock: Clock = systemClock): Promise<FsckFinding[]> {
  const findings: FsckFinding[] = []
  const attempt = async <T>(what: string, ask: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await ask()
    } catch (error) {
      findings.push(unreadable(what, messageOf(error)))
      return undefined
    }
  }
  const { client, namespace, replicas } = parts
  try {
    await client.reach()
  } catch (error) {
    return [unusable(reasonOf(error))]
  }
  const seen = await bringUpToDate(client, namespace).catch((error: unknown) => error)
  if (hasCode(seen, 'store-newer')) return [unusable(seen.message)]
  const settings = await attempt('settings (CONFIG GET)', () => settingsOf(client))
  const shardKeys = (await attempt('queues', () => firstKeys(parts))) ?? []
  const servers = await attempt('server (INFO)', () => serversOf(client, [...shardKeys, queuesKey(namespace)]))
  if (servers !== undefined)
    findings.unshift(...merged(servers.map(({ info }) => [info, judgeServer({ info, settings, replicas })])))
  if (client.isCluster && servers !== undefined) {
    const info = await attempt('cluster (CLUSTER INFO)', async () =>
      redisInfo(textIn(await client.command('CLUSTER', ['INFO']))),
    )
    if (info !== undefined) findings.push(...judgeCluster({ info, shards: shardsOn(servers, namespace) }))
  }
  const clocks = await attempt('clock (TIME)', () => clocksOf(client, clock))
  if (clocks !== undefined) findings.push(judgeClock(clocks.offsetMs, clocks.marginMs))
  const rights = await attempt('rights', () => askRights(client, namespace))
  if (rights !== undefined) findings.push(...judgeRights({ namespace, isCluster: client.isCluster, rights }))
  return findings
}

function reasonOf(error: unknown): string {
  return hasCode(error, 'config-invalid') ? error.issues.map(({ message }) => message).join(' ') : messageOf(error)
}

/** One key of each shard. */
async function firstKeys({ queues }: DoctorParts): Promise<string[]> {
  const found = await queues.findNow(await queues.names())
  return found.flatMap(liveShards).map(({ keys }) => keys[0]!)
}

/** Counts shards on each server. The key of the namespace is no shard. */
function shardsOn(servers: readonly RedisServerSeen[], namespace: string): number[] {
  const counts = servers.map(({ keys }) => keys.filter((key) => key !== queuesKey(namespace)).length)
  return counts.filter((count) => count > 0)
}

/** Reports a finding once if all servers have the same, otherwise with the port of each server. */
function merged(judged: readonly (readonly [RedisInfo, readonly FsckFinding[]])[]): FsckFinding[] {
  const byText = new Map<string, { finding: FsckFinding; ports: string[] }>()
  for (const [info, findings] of judged)
    for (const finding of findings) {
      const key = JSON.stringify(finding)
      const { ports } = byText.get(key) ?? { ports: [] }
      byText.set(key, { finding, ports: [...ports, info.get('tcp_port') ?? '?'] })
    }
  return [...byText.values()].map(({ finding, ports }) =>
    ports.length === judged.length ? finding : { ...finding, what: `${finding.what} (port ${ports.join(', ')})` },
  )
}

async function settingsOf(client: RedisClient): Promise<RedisInfo> {
  const rows = rowsIn(await client.command('CONFIG', ['GET', ...settingNames]), 2)
  return new Map(rows.map(([name, value]) => [textIn(name), textIn(value)]))
}

/** Assumes that the server read its clock in the middle of the trip. */
async function clocksOf(client: RedisClient, clock: Clock): Promise<{ offsetMs: number; marginMs: number }> {
  const [sentAt, startedMono] = [clock.now(), clock.mono()]
  const [seconds, microseconds] = listIn(await client.command('TIME', [])).map(numberIn)
  const marginMs = (clock.mono() - startedMono) / 2
  return { offsetMs: seconds! * 1_000 + microseconds! / 1_000 - (sentAt + marginMs), marginMs }
}

async function askRights(client: RedisClient, namespace: string): Promise<RightsFacts['rights']> {
  const rights = rightsOf(namespace, client.isCluster)
  const args = rights.flatMap(({ words }) => [String(words.length), ...words])
  const answers = listIn(await client.run(rightsScript, [queuesKey(namespace)], args))
  return rights.map((right, i) => ({ ...right, may: answers[i] === -1 ? undefined : answers[i] === 1 }))
}
