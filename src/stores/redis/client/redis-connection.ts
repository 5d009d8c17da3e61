/** The connection to Redis: the client on ioredis, to a single server, a master named by sentinels, or a cluster. */

import type { Cluster, Redis } from 'ioredis'
import { ClosedError, isMillraceError } from '../../../core/errors.js'
import { messageOf } from '../../../core/messages/describe.js'
import { unfit } from '../../../core/values/store-address.js'
import type { ConnectRedis, RedisAddress } from './redis-address.js'
import { RedisBlockingConnection } from './redis-blocking-connection.js'
import type { PoppedMarker, RedisArgument, RedisClient, RedisReply, RedisScriptCall } from './redis-client.js'
import { type GivenClient, type RedisClients, redisClients } from './redis-connection-options.js'
import { failureOf, redisError } from './redis-errors.js'
import { patienceMs, type RedisErrand, RedisLink } from './redis-link.js'
import type { RedisScript } from './redis-script.js'
import { type RedisInfo, redisInfo, refuseUnfit } from './redis-server-info.js'
import { RedisSubscriber } from './redis-subscriber.js'
import { wireOf } from './redis-wire.js'

/** Longer than the server is ever asked to wait, because a pop has its own limit for silence. */
const popSilenceMs = 10_000

/** The clients once a server was reached and found fit. */
interface OpenedClients {
  readonly clients: RedisClients
  readonly main: RedisLink
}

/**
 * Makes the client. It connects at its first call, and opens a second and a third connection only to pop and to listen.
 * Every call throws `ConfigError` while ioredis is missing or the server is unfit: too old, a replica, or one that
 * evicts keys. It throws `StoreRefusedError` while a password or a right is missing.
 */
export function openRedisClient(source: RedisAddress | ConnectRedis): RedisClient {
  return new IoredisClient(source)
}

class IoredisClient implements RedisClient {
  readonly isCluster: boolean
  readonly #source: RedisAddress | GivenClient
  /** Keeps reaching for the server, fit or not. */
  #reaching: Promise<Omit<OpenedClients, 'about'>> | undefined
  #opening: Promise<OpenedClients> | undefined
  #opened: OpenedClients | undefined
  #popping: RedisBlockingConnection | undefined
  #listening: RedisSubscriber | undefined
  #isClosed = false

  constructor(source: RedisAddress | ConnectRedis) {
    this.#source = typeof source === 'function' ? { given: source(), connect: source } : source
    const { given } = this.#source as { readonly given?: { readonly isCluster?: unknown } }
    this.isCluster = given === undefined ? (source as RedisAddress).kind === 'cluster' : given?.isCluster === true
  }

  async run(
    { sha, text }: RedisScript,
    keys: readonly string[],
    args: readonly RedisArgument[],
    replicas = 0,
  ): Promise<RedisReply> {
    const { main } = this.#opened ?? (await this.#open())
    const count = String(keys.length)
    const place = this.isCluster ? { key: keys[0]! } : {}
    const errand: RedisErrand = {
      name: 'evalsha',
      wire: wireOf(['EVALSHA', sha, count], keys, args),
      ...place,
      fallback: () => ({ name: 'eval', wire: wireOf(['EVAL', text, count], keys, args), ...place }),
    }
    return main.call(errand, replicas)
  }

  async command(name: string, args: readonly RedisArgument[]): Promise<RedisReply> {
    const { main } = this.#opened ?? (await this.#open())
    const [key] = args
    const place = this.isCluster && key !== undefined ? { key: String(key) } : {}
    return main.call({ name: name.toLowerCase(), wire: wireOf([name], args), ...place })
  }

  async pop(keys: readonly string[], forMs: number, signal: AbortSignal): Promise<string | undefined> {
    return (await this.#blocking()).pop(keys, forMs, signal)
  }

  async popAndRun(
    keys: readonly string[],
    forMs: number,
    signal: AbortSignal,
    { script, keys: own, args }: RedisScriptCall,
  ): Promise<PoppedMarker> {
    const wire = wireOf(['EVALSHA', script.sha, String(own.length)], own, args)
    return (await this.#blocking()).popAndRun(keys, forMs, signal, { name: 'evalsha', wire })
  }

  async #blocking(): Promise<RedisBlockingConnection> {
    const { clients, main } = this.#opened ?? (await this.#open())
    if (this.isCluster) throw new Error('nothing can block on a cluster; listen instead')
    this.#popping ??= new RedisBlockingConnection(
      clients.where,
      new RedisLink(clients, clients.single(), popSilenceMs),
      main,
    )
    return this.#popping
  }

  async listen(channel: string, heard: (message: string | undefined) => void): Promise<() => void> {
    const { clients, main } = this.#opened ?? (await this.#open())
    this.#listening ??= new RedisSubscriber(clients, main)
    return this.#listening.listen(channel, heard)
  }

  async reach(): Promise<void> {
    if (this.#opened === undefined) await this.#open()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#popping?.close()
    this.#listening?.close()
    // A client that has made no attempt has nothing to close.
    await this.#reaching?.then(
      ({ main }) => main.close(),
      () => {},
    )
  }

  /** Makes one attempt at a time, which concurrent callers share. */
  #open(): Promise<OpenedClients> {
    this.#opening ??= this.#attempt().finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  async #attempt(): Promise<OpenedClients> {
    if (this.#isClosed) throw new ClosedError('the store')
    this.#reaching ??= redisClients(this.#source).then((clients) => ({
      clients,
      main: new RedisLink(clients, clients.main()),
    }))
    const { clients, main } = await this.#reaching
    await this.#inspect(clients, main)
    if (clients.login !== undefined) clients.login.hasWorked = true
    if (this.#isClosed) throw new ClosedError('the store')
    this.#opened = { clients, main }
    return this.#opened
  }

  /** Checks the server; on a cluster every master that answers. */
  async #inspect({ where, isCluster }: RedisClients, main: RedisLink): Promise<void> {
    await main.ready(patienceMs)
    const masters = isCluster ? (main.client as Cluster).nodes('master') : main.nodes()
    const answers = await Promise.allSettled(masters.map((master) => asked(where, master)))
    const failures = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason as unknown] : []))
    const servers = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
    const refused = failures.find((error) => failureOf(error, false) === 'refused')
    if (this.#isClosed) throw new ClosedError('the store')
    const typed = failures.find((error) => isMillraceError(error))
    if (typed !== undefined) throw typed
    if (refused !== undefined || servers.length === 0) {
      const error = refused ?? failures[0]
      throw redisError(where, error, failureOf(error, false))
    }
    const isSingle = 'kind' in this.#source && this.#source.kind === 'single'
    for (const info of servers) refuseUnfit(where, isSingle ? 'single' : 'other', info)
  }
}

async function asked(where: string, server: Redis): Promise<RedisInfo> {
  await select(where, server)
  return redisInfo(await server.info())
}

/**
 * Selects the database. ioredis does this too, but reports no failure: every call would then go to database 0, which
 * may belong to someone else.
 */
async function select(where: string, server: Redis): Promise<void> {
  const { db = 0 } = server.options
  if (db === 0) return
  try {
    await server.select(db)
  } catch (error) {
    if (!/DB index/i.test(messageOf(error))) throw error
    throw unfit(
      `the Redis at ${where} has no database ${db} (${messageOf(error)}); its 'databases' setting says how many there are, counted from 0. ` +
        'Give the number of one that it has, or none for database 0.',
    )
  }
}
