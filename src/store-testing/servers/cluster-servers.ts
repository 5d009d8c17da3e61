/** Cluster servers: a Redis Cluster of three masters on this machine, with or without a replica for each. */

import { loopback } from './free-port.js'
import { poll } from './poll.js'
import { type RedisServer, type RedisServerOptions, startServers, stopServers } from './redis-server-process.js'
import { RespClient } from './resp-client.js'

export interface ClusterOptions extends RedisServerOptions {
  /** Replicas of each master. Default 0. */
  readonly replicas?: 0 | 1
}

export interface MoveOptions {
  /** Keys of one step. Default 10. */
  readonly batch?: number
}

const slots = 16_384
const masters = 3
/** How long until a node is taken for dead: short for drills, but not so short that a busy machine looks dead. */
const nodeTimeout = 'cluster-node-timeout 2000'
const formedWithinMs = 30_000
const migrateTimeoutMs = 5_000

export class ClusterServers {
  /** The three masters, in the order of their slots, then their replicas in the same order. As they were started. */
  readonly servers: readonly RedisServer[]

  private constructor(servers: readonly RedisServer[]) {
    this.servers = servers
  }

  /** Resolves when every node finds the cluster complete and every replica follows its master. */
  static async start({ replicas = 0, config = [] }: ClusterOptions = {}): Promise<ClusterServers> {
    const lines = ['repl-diskless-sync-delay 0', nodeTimeout, ...config]
    const launch = { config: lines, isClustered: true }
    const servers = await startServers(Array.from({ length: masters * (1 + replicas) }, () => launch))
    try {
      await form(servers)
    } catch (error) {
      await stopServers(servers)
      throw error
    }
    return new ClusterServers(servers)
  }

  get url(): string {
    return `redis+cluster://${this.servers.map(({ host, port }) => `${host}:${port}`).join(',')}`
  }

  /** The server of the slot, by the first node that answers. Throws if there is none. */
  async masterOf(slot: number): Promise<RedisServer> {
    for (const server of this.servers) {
      const ranges = await server.ask('CLUSTER', 'SLOTS').catch(() => [])
      for (const [from, to, [, port]] of ranges as [number, number, [string, number]][])
        if (from <= slot && slot <= to) return this.servers.find((one) => one.port === port)!
    }
    throw new Error(`no node that answers says who serves slot ${slot}`)
  }

  /**
   * Moves a slot with its keys, step by step: the slot is opened on both sides, keys move in batches, and both sides
   * learn the new owner; the others hear it from that owner. Yields before each step the number of keys that this call
   * has moved. A loop that is left leaves the slot half moved, and another call goes on from there.
   */
  async *moveSlot(
    slot: number,
    from: RedisServer,
    to: RedisServer,
    { batch = 10 }: MoveOptions = {},
  ): AsyncGenerator<number, void, void> {
    const [source, target] = [new RespClient(from.port), new RespClient(to.port)]
    try {
      const [sourceId, targetId] = await Promise.all([source, target].map((node) => node.call('CLUSTER', 'MYID')))
      await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', sourceId as string)
      await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId as string)
      let moved = 0
      yield moved
      for (;;) {
        const keys = (await source.call('CLUSTER', 'GETKEYSINSLOT', slot, batch)) as string[]
        if (keys.length === 0) break
        // A step whose answer was lost may have brought a key. As long as the source has it, that one counts.
        await source.call('MIGRATE', to.host, to.port, '', 0, migrateTimeoutMs, 'REPLACE', 'KEYS', ...keys)
        moved += keys.length
        yield moved
      }
      // The new owner first: if it died in between, the slot would otherwise belong to nobody.
      const assign = ['CLUSTER', 'SETSLOT', slot, 'NODE', targetId as string]
      await target.call(...assign)
      await source.call(...assign)
    } finally {
      source.close()
      target.close()
    }
  }

  /** Kills all of them and removes their data. Stopping twice is harmless. */
  stop(): Promise<void> {
    return stopServers(this.servers)
  }
}

async function form(servers: readonly RedisServer[]): Promise<void> {
  const share = Math.ceil(slots / masters)
  await Promise.all(
    servers.map(async (server, i) => {
      // With equal epochs, one of the nodes would have to give way first.
      await server.ask('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
      const first = i * share
      if (i < masters) await server.ask('CLUSTER', 'ADDSLOTSRANGE', first, Math.min(first + share, slots) - 1)
    }),
  )
  // Each meets each: learning of one another by gossip would take seconds.
  for (const [i, server] of servers.entries())
    for (const { port, busPort } of servers.slice(i + 1)) await server.ask('CLUSTER', 'MEET', loopback, port, busPort!)
  await Promise.all(servers.map((server) => poll(() => knowsAll(server, servers.length), waiting(server, 'know all'))))
  await Promise.all(
    servers.slice(masters).map(async (replica, i) => {
      const id = (await servers[i]!.ask('CLUSTER', 'MYID')) as string
      await replica.ask('CLUSTER', 'REPLICATE', id)
    }),
  )
  await Promise.all(servers.map((server) => poll(() => isFormed(server, servers.length), waiting(server, 'be formed'))))
}

function waiting({ port }: RedisServer, what: string) {
  return { what: `the node of port ${port} should ${what}`, withinMs: formedWithinMs }
}

async function knowsAll(server: RedisServer, nodes: number): Promise<true | undefined> {
  const lines = await nodeLines(server)
  return lines.length === nodes && lines.every((line) => !line.includes('handshake')) ? true : undefined
}

/** It finds all slots served, knows which nodes are replicas, and follows its master if it is one. */
async function isFormed(server: RedisServer, nodes: number): Promise<true | undefined> {
  const lines = await nodeLines(server)
  const info = (await server.ask('CLUSTER', 'INFO')) as string
  const replication = (await server.ask('INFO', 'replication')) as string
  const fits =
    info.includes('cluster_state:ok') &&
    info.includes(`cluster_slots_ok:${slots}`) &&
    lines.filter((line) => line.includes('slave')).length === nodes - masters &&
    lines.every((line) => !/handshake|\bfail\b|disconnected/.test(line)) &&
    !replication.includes('master_link_status:down')
  return fits ? true : undefined
}

async function nodeLines(server: RedisServer): Promise<string[]> {
  return ((await server.ask('CLUSTER', 'NODES')) as string).trimEnd().split('\n')
}
