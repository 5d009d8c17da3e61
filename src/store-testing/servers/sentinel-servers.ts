/** Sentinel servers: a master, its replica and three Sentinels that watch them, on this machine. */

import { poll } from './poll.js'
import { RedisServer, type RedisServerOptions, startServers, stopServers } from './redis-server-process.js'
import type { RespReply } from './resp-client.js'

/** The name that the Sentinels know the master by. */
const masterName = 'mymaster'
const downAfterMs = 800
const failoverTimeoutMs = 5_000
const quorum = 2
const sentinelCount = 3
const formedWithinMs = 30_000
const failoverWithinMs = 30_000

export class SentinelServers {
  /** The two servers that hold data: the first master and its replica. */
  readonly servers: readonly RedisServer[]
  readonly sentinels: readonly RedisServer[]

  private constructor(servers: readonly RedisServer[], sentinels: readonly RedisServer[]) {
    this.servers = servers
    this.sentinels = sentinels
  }

  /** `config` is for the servers that hold data. Resolves when every Sentinel knows the replica and the other Sentinels. */
  static async start({ config = [] }: RedisServerOptions = {}): Promise<SentinelServers> {
    const started: RedisServer[] = []
    try {
      const lines = ['repl-diskless-sync-delay 0', ...config]
      const master = await RedisServer.start({ config: lines })
      started.push(master)
      const replica = await RedisServer.start({ config: [...lines, `replicaof ${master.host} ${master.port}`] })
      started.push(replica)
      await poll(() => follows(replica), { what: 'the replica should follow its master', withinMs: formedWithinMs })
      const launch = { config: watch(master), isSentinel: true }
      const sentinels = await startServers(Array.from({ length: sentinelCount }, () => launch))
      started.push(...sentinels)
      await Promise.all(sentinels.map(introduce))
      return new SentinelServers([master, replica], sentinels)
    } catch (error) {
      await stopServers(started)
      throw error
    }
  }

  get url(): string {
    return `redis+sentinel://${this.sentinels.map(({ host, port }) => `${host}:${port}`).join(',')}/${masterName}`
  }

  /** The master, by the first Sentinel that answers. Throws if none does. */
  async master(): Promise<RedisServer> {
    for (const sentinel of this.sentinels) {
      const address = await sentinel.ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName).catch(() => null)
      if (Array.isArray(address)) return this.servers.find(({ port }) => port === Number(address[1]))!
    }
    throw new Error('no Sentinel answers')
  }

  /** The servers that answer and say that they are replicas. */
  async replicas(): Promise<RedisServer[]> {
    const roles = await Promise.all(this.servers.map(role))
    return this.servers.filter((_, i) => roles[i] === 'slave')
  }

  /**
   * Resolves with the new master once every Sentinel that answers names one other than `old`, and that server agrees.
   */
  async masterAfter(old: RedisServer): Promise<RedisServer> {
    const other = async () => {
      const named = await Promise.all(this.sentinels.map(namedPort))
      const ports = new Set(named.filter((port) => port !== undefined))
      const server = this.servers.find(({ port }) => ports.size === 1 && ports.has(port))
      return server !== undefined && server !== old && (await role(server)) === 'master' ? server : undefined
    }
    return poll(other, { what: `another master than port ${old.port}`, withinMs: failoverWithinMs })
  }

  /** Kills all of them and removes their data. Stopping twice is harmless. */
  stop(): Promise<void> {
    return stopServers([...this.sentinels, ...this.servers])
  }
}

function watch({ host, port }: RedisServer): string[] {
  return [
    `sentinel monitor ${masterName} ${host} ${port} ${quorum}`,
    `sentinel down-after-milliseconds ${masterName} ${downAfterMs}`,
    `sentinel failover-timeout ${masterName} ${failoverTimeoutMs}`,
  ]
}

async function follows(replica: RedisServer): Promise<true | undefined> {
  const info = (await replica.ask('INFO', 'replication')) as string
  return info.includes('master_link_status:up') ? true : undefined
}

async function introduce(sentinel: RedisServer): Promise<void> {
  const knowsAll = async () => {
    const master = fields(await sentinel.ask('SENTINEL', 'MASTER', masterName))
    const replicas = (await sentinel.ask('SENTINEL', 'REPLICAS', masterName)) as readonly RespReply[]
    const fits =
      master.get('flags') === 'master' &&
      master.get('num-other-sentinels') === String(sentinelCount - 1) &&
      replicas.length === 1 &&
      fields(replicas[0]!).get('master-link-status') === 'ok'
    return fits ? true : undefined
  }
  await poll(knowsAll, { what: `the Sentinel of port ${sentinel.port} should know all`, withinMs: formedWithinMs })
}

async function role(server: RedisServer): Promise<RespReply | undefined> {
  const answer = await server.ask('ROLE').catch(() => null)
  return Array.isArray(answer) ? answer[0] : undefined
}

async function namedPort(sentinel: RedisServer): Promise<number | undefined> {
  const address = await sentinel.ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName).catch(() => null)
  return Array.isArray(address) ? Number(address[1]) : undefined
}

/** A map that was sent as a list of names and values. */
function fields(reply: RespReply): Map<string, string> {
  const flat = reply as string[]
  return new Map(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1]!] as const] : [])))
}
