/** The options of a store's Redis connections, made from an address or copied from a user's client. */

import { createRequire } from 'node:module'
import type { ConnectionOptions } from 'node:tls'
import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis'
import { messageOf } from '../../../core/messages/describe.js'
import { systemRandom } from '../../../core/platform/clock.js'
import { outageDelayMs } from '../../../core/platform/timer.js'
import { defined } from '../../../core/values/defined.js'
import { unfit } from '../../../core/values/store-address.js'
import { addressText, type ConnectRedis, type RedisAddress, type RedisHost } from './redis-address.js'
import { type MakeRedisCall, redisCalls } from './redis-call.js'

/** Makes the clients. Each opens its connection when it is first used. */
export interface RedisClients {
  /** The server's address for messages, without secrets. */
  readonly where: string
  readonly isCluster: boolean
  readonly call: MakeRedisCall
  /** Absent: the login is part of the address, and never another. */
  readonly login?: RedisLogin
  /** The client for commands. */
  main(): Redis | Cluster
  /** One connection to the server, or to this node of the cluster. */
  single(node?: RedisHost): Redis
}

/** The pause in ms before the next attempt. */
export function againInMs(failures: number): number {
  return outageDelayMs(failures, systemRandom)
}

/** The options that the store's promises rely on. They override those of a user's client. */
const ours: RedisOptions = {
  lazyConnect: true,
  // Replies have the shapes of RESP2 with every version of ioredis.
  protocol: 2,
  replyMapping: 'legacy',
  stringNumbers: false,
  connectionName: 'millrace',
  connectTimeout: 1_500,
  disconnectTimeout: 500,
  keepAlive: 10_000,
  noDelay: true,
  retryStrategy: (times) => againInMs(times),
  sentinelRetryStrategy: (times) => againInMs(times),
  // Without it, a connected but silent sentinel would be waited for forever, and the next one never asked.
  sentinelCommandTimeout: 1_500,
  // A call is in doubt if its connection ends after it was sent, and ioredis must not send it again.
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  enableOfflineQueue: false,
  enableReadyCheck: false,
  maxLoadingRetryTime: 500,
  reconnectOnError: null,
  enableAutoPipelining: false,
}

const ofCluster: ClusterOptions = {
  lazyConnect: true,
  clusterRetryStrategy: (times) => againInMs(times),
  slotsRefreshTimeout: 1_500,
  scaleReads: 'master',
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  enableOfflineQueue: false,
  enableReadyCheck: false,
  enableAutoPipelining: false,
}

/** A client of a user's, and the function that made it. */
export interface GivenClient {
  readonly given: object
  readonly connect: ConnectRedis
}

/** Throws `ConfigError` if ioredis is missing, or if the user's client is no client of ioredis. */
export async function redisClients(source: RedisAddress | GivenClient): Promise<RedisClients> {
  const library = ioredis()
  return 'given' in source ? copies(source, library) : clientsOf(source, library)
}

/** The used part of ioredis, whose own types do not distinguish an absent option from an undefined one. */
interface Library {
  readonly Redis: new (options: RedisOptions) => Redis
  readonly Cluster: new (nodes: readonly RedisHost[], options: ClusterOptions) => Cluster
  readonly Command: typeof import('ioredis')['Command']
}

/** By `require`, because an `import` of its 59 CommonJS files takes 40 ms and 7 MB more, in each thread that does it. */
const require = createRequire(import.meta.url)

function ioredis(): Library {
  try {
    return require('ioredis') as Library
  } catch (error) {
    const isMissing = (error as { code?: unknown }).code === 'MODULE_NOT_FOUND'
    throw unfit(
      isMissing
        ? "a store on Redis needs the package ioredis; install it: 'npm install ioredis'"
        : `the package ioredis cannot be loaded: ${messageOf(error)}`,
    )
  }
}

function clientsOf(address: RedisAddress, library: Library): RedisClients {
  const { kind, hosts, username, password, db, tls, master } = address
  const tlsOptions = (tls === true ? {} : tls) as ConnectionOptions
  const secure = tls === false ? {} : { tls: tlsOptions }
  const login = defined({ username, password })
  const common: RedisOptions = { ...ours, ...login, ...secure }
  const where = addressText(address)
  const call = redisCalls(library.Command)
  if (kind === 'cluster') {
    const options = { ...ofCluster, redisOptions: common }
    return {
      where,
      isCluster: true,
      call,
      main: () => new library.Cluster(hosts, options),
      single: (node) => new library.Redis({ ...common, ...node }),
    }
  }
  const { sentinelUsername, sentinelPassword } = address
  const options: RedisOptions =
    kind === 'single'
      ? { ...common, ...hosts[0], db }
      : {
          ...common,
          db,
          sentinels: [...hosts],
          name: master!,
          // A sentinel may still name the old master: each connection asks the server for its role.
          enableReadyCheck: true,
          ...defined({ sentinelUsername, sentinelPassword }),
          ...(tls === false ? {} : { enableTLSForSentinelMode: true, sentinelTLS: tlsOptions }),
        }
  const make = () => new library.Redis(options)
  return { where, isCluster: false, call, main: make, single: make }
}

function copies({ given, connect }: GivenClient, library: Library): RedisClients {
  const { options } = given as Partial<Redis>
  if (typeof (given as Partial<Redis>).duplicate !== 'function' || typeof options !== 'object')
    throw unfit("'connect' must return a client of ioredis: a Redis or a Cluster")
  if (options.keyPrefix)
    throw unfit("a client with 'keyPrefix' cannot be used, as keys must hash by their tag; set 'namespace' instead")
  const login = new RedisLogin(connect, given)
  if ((given as Cluster).isCluster) {
    const cluster = given as Cluster
    const redisOptions = { ...cluster.options.redisOptions, ...ours } as object
    const Single = library.Redis
    // Not inferred in place: the compiler would then compare all commands of a cluster with all of a server.
    const main = () => {
      const made = cluster.duplicate([], { ...ofCluster, redisOptions })
      // Each is made anew after its connection has ended.
      made.on('+node', (node: Redis) => login.givenTo(node))
      return made
    }
    return {
      where: 'the cluster of your client',
      isCluster: true,
      call: redisCalls(library.Command),
      login,
      main,
      single: (node) => login.givenTo(new Single({ ...redisOptions, ...node })),
    }
  }
  const redis = given as Redis
  const { host, port, path, sentinels, name, db = 0 } = options
  const tls = Boolean(options.tls)
  const make = () => login.givenTo(redis.duplicate({ ...ours, enableReadyCheck: Boolean(sentinels) }))
  const where = sentinels
    ? addressText({ kind: 'sentinel', hosts: sentinels as RedisHost[], db, tls, master: String(name) })
    : (path ?? addressText({ kind: 'single', hosts: [{ host: host!, port: port! }], db, tls }))
  return { where, isCluster: false, call: redisCalls(library.Command), login, main: make, single: make }
}

const names = ['username', 'password', 'sentinelUsername', 'sentinelPassword'] as const

type Login = Pick<RedisOptions, (typeof names)[number]>

/**
 * The login of a user's client: user and password are asked for at each connection, because they may be a token that
 * changes while a process lives.
 */
class RedisLogin {
  /** A server has taken it: a refusal from now on may be that of a token which is about to be replaced. */
  hasWorked = false
  readonly #connect: ConnectRedis
  readonly #first: object
  #last: Login
  /** Whether it was asked for in this turn: a connection reads each of its parts. */
  #isFresh = false

  /** `first`: the client that `connect` has returned. */
  constructor(connect: ConnectRedis, first: object) {
    this.#connect = connect
    this.#first = first
    this.#last = loginOf(first)
  }

  /** The client, which reads the login anew whenever it connects. */
  givenTo(client: Redis): Redis {
    for (const name of names)
      Object.defineProperty(client.options, name, {
        get: () => this.#now()[name],
        enumerable: true,
        configurable: true,
      })
    return client
  }

  /** If it cannot be asked for, the one before: ioredis would never connect again after an error here. */
  #now(): Login {
    if (this.#isFresh) return this.#last
    this.#isFresh = true
    queueMicrotask(() => {
      this.#isFresh = false
    })
    try {
      const asked = this.#connect()
      this.#last = loginOf(asked)
      if (asked !== this.#first) endUnused(asked as Redis)
    } catch {
      // The server says whether the one before is still good.
    }
    return this.#last
  }
}

function loginOf(client: object): Login {
  const { isCluster, options } = client as Redis | Cluster
  return (isCluster ? (options as Cluster['options']).redisOptions : (options as RedisOptions)) ?? {}
}

/** Without `lazyConnect` it has begun to connect by itself. */
function endUnused(client: Redis): void {
  if (client.status !== 'wait') client.disconnect()
}
