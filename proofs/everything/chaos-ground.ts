/** The grounds of the chaos: a store that all processes open, and what can be done to it while they work. */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type ClusterServers, type RedisServer, startRedis } from 'millrace/store-testing'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { TestVolume } from '../grounds/test-volume.js'
import type { ClockShim } from '../starts/clock-shim.js'

export interface StoreFault {
  /** In the plural, as a sum says it. */
  readonly name: string
  readonly times: number
  make(): Promise<void>
}

export interface ChaosGround {
  readonly url: string
  readonly faults: readonly StoreFault[]
  close(): Promise<void>
}

const shiftsMs = [-60_000, -5_000, 0, 5_000, 60_000]
/** Any queue's: its slot moves. */
const movedQueues = ['plain', 'grouped', 'throttled', 'chained']
const withinMs = 20_000
const lookMs = 20
const lockWithinMs = 30_000

type Pick = <Item>(items: readonly Item[]) => Item

export function pickBy(random: () => number): Pick {
  return (items) => items[Math.floor(random() * items.length)]!
}

export function clockSteps(shim: ClockShim, pick: Pick, times: number): StoreFault {
  return { name: 'clock steps', times, make: async () => shim.set(pick(shiftsMs)) }
}

/** A file on a volume of its own where that may be mounted: then it can be filled. */
export async function sqliteChaos(pick: Pick, scale: number): Promise<ChaosGround> {
  const volume = await TestVolume.of('tmpfs').catch(() => undefined)
  const folder = volume?.folder ?? mkdtempSync(join(tmpdir(), 'millrace-chaos-'))
  const file = join(folder, 'jobs.db')
  const filling = join(folder, 'filling')
  const fill = async () => {
    // It takes all that is left, and fails for want of more.
    try {
      execFileSync('dd', ['if=/dev/zero', `of=${filling}`, 'bs=4M'], { stdio: 'ignore' })
    } catch {}
    await delay(pick([300, 1_000, 2_000]))
    rmSync(filling, { force: true })
  }
  const lock = async () => {
    const other = (await loadDriver())(file)
    other.exec(`PRAGMA busy_timeout = ${lockWithinMs}; BEGIN IMMEDIATE`)
    await delay(pick([200, 800, 1_500]))
    other.exec('ROLLBACK')
    other.close()
  }
  const full: StoreFault[] =
    volume === undefined ? [] : [{ name: 'full disks', times: Math.ceil(6 * scale), make: fill }]
  return {
    url: `sqlite:${file}`,
    faults: [...full, { name: 'write locks held by others', times: Math.ceil(8 * scale), make: lock }],
    async close() {
      if (volume === undefined) rmSync(folder, { recursive: true })
      else volume.close()
    },
  }
}

/** Three masters, each with a replica. A master is restarted before its replica could take over without all that it accepted. */
export async function clusterChaos(pick: Pick, scale: number): Promise<ChaosGround> {
  const config = ['appendonly yes', 'appendfsync always', 'cluster-replica-no-failover yes', 'save ""']
  const cluster = await startRedis({ mode: 'cluster', replicas: 1, config })
  const faults: StoreFault[] = [
    { name: 'store kills', times: Math.ceil(12 * scale), make: () => killMaster(cluster, pick) },
    { name: 'failovers', times: Math.ceil(8 * scale), make: () => failOver(cluster, pick) },
    { name: 'cuts of all connections', times: Math.ceil(6 * scale), make: () => cutAll(cluster) },
    { name: 'full memories', times: Math.ceil(5 * scale), make: () => fillMemory(cluster, pick) },
    { name: 'slot moves', times: Math.ceil(4 * scale), make: () => moveSlot(cluster, pick) },
  ]
  return { url: cluster.url, faults, close: () => cluster.stop() }
}

async function roleOf(server: RedisServer): Promise<string> {
  const [role] = (await server.ask('ROLE')) as [string]
  return role
}

async function serversOf(cluster: ClusterServers, role: string): Promise<RedisServer[]> {
  const roles = await Promise.all(cluster.servers.map(roleOf))
  return cluster.servers.filter((_, i) => roles[i] === role)
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!(await isSo().catch(() => false))) {
    if (performance.now() > deadline) throw new Error(`${what} within ${withinMs} ms`)
    await delay(lookMs)
  }
}

/** All its data are in its own append-only file: not so while one is being written anew after it has followed another. */
async function isOnDisk(server: RedisServer): Promise<boolean> {
  const info = (await server.ask('INFO', 'persistence')) as string
  return ['aof_rewrite_in_progress:0', 'aof_rewrite_scheduled:0', 'loading:0', 'aof_last_bgrewrite_status:ok'].every(
    (line) => info.includes(line),
  )
}

async function isWhole(cluster: ClusterServers): Promise<boolean> {
  for (const server of cluster.servers) {
    const info = (await server.ask('CLUSTER', 'INFO')) as string
    const replication = (await server.ask('INFO', 'replication')) as string
    if (!info.includes('cluster_state:ok') || replication.includes('master_link_status:down')) return false
  }
  const masters = await serversOf(cluster, 'master')
  return masters.length === cluster.servers.length / 2
}

async function killMaster(cluster: ClusterServers, pick: Pick): Promise<void> {
  await until('the cluster is whole', () => isWhole(cluster))
  const master = pick(await serversOf(cluster, 'master'))
  await until('the data of a master are in its file', () => isOnDisk(master))
  await master.kill()
  await master.restart()
}

/** Handed over: the replica has all that its master accepted. */
async function failOver(cluster: ClusterServers, pick: Pick): Promise<void> {
  await until('the cluster is whole', () => isWhole(cluster))
  const replica = pick(await serversOf(cluster, 'slave'))
  await replica.ask('CLUSTER', 'FAILOVER')
  await until('a replica takes over', async () => (await roleOf(replica)) === 'master')
  await until('the cluster is whole', () => isWhole(cluster))
}

async function cutAll(cluster: ClusterServers): Promise<void> {
  for (const server of await serversOf(cluster, 'master')) await server.ask('CLIENT', 'KILL', 'TYPE', 'normal')
}

async function fillMemory(cluster: ClusterServers, pick: Pick): Promise<void> {
  const masters = await serversOf(cluster, 'master')
  for (const server of masters) await server.ask('CONFIG', 'SET', 'maxmemory', '1')
  await delay(pick([100, 500, 1_000]))
  for (const server of masters) await server.ask('CONFIG', 'SET', 'maxmemory', '0')
}

async function moveSlot(cluster: ClusterServers, pick: Pick): Promise<void> {
  await until('the cluster is whole', () => isWhole(cluster))
  const masters = await serversOf(cluster, 'master')
  const slot = Number(await masters[0]!.ask('CLUSTER', 'KEYSLOT', `{millrace:${pick(movedQueues)}}`))
  const from = await cluster.masterOf(slot)
  const to = pick(masters.filter((server) => server !== from))
  for await (const _ of cluster.moveSlot(slot, from, to, { batch: 50 }));
  await until('the cluster is whole', () => isWhole(cluster))
}
