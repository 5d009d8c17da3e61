/**
 * The login of a user's client: user and password are asked for at each connection, because they may be a token that
 * changes while a process lives.
 */

import type { Cluster, Redis, RedisOptions } from 'ioredis'
import type { ConnectRedis } from './redis-address.js'

const names = ['username', 'password', 'sentinelUsername', 'sentinelPassword'] as const

type Login = Pick<RedisOptions, (typeof names)[number]>

export class RedisLogin {
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
