/** A Redis call: one command that is sent as it is, and whose reply is not converted. */

import type { Socket } from 'node:net'
import type { Command } from 'ioredis'
import type { RedisReply } from './redis-client.js'
import { isReply } from './redis-errors.js'
import type { Wire } from './redis-wire.js'

export interface RedisCall extends Command {
  readonly promise: Promise<RedisReply>
  /**
   * The socket that it was last written to. Undefined while no server can have it: it was not sent, or all refused it.
   */
  readonly socket: Socket | undefined
  /** Call it after sending if the client may redirect the call to other nodes. */
  followRedirections(): void
}

/** Makes a call. A cluster sends it to the master that holds `key`. */
export type MakeRedisCall = (name: string, wire: Wire, key?: string) => RedisCall

/**
 * Makes calls for the ioredis with this `Command`, which itself would encode each argument and some commands' replies.
 */
export function redisCalls(CommandOfClient: typeof Command): MakeRedisCall {
  class Call extends CommandOfClient {
    declare readonly promise: Promise<RedisReply>
    socket: Socket | undefined = undefined
    readonly #wire: Wire
    readonly #key: string | undefined

    constructor(name: string, wire: Wire, key: string | undefined) {
      super(name)
      this.#wire = wire
      this.#key = key
    }

    override getKeys(): string[] {
      return this.#key === undefined ? [] : [this.#key]
    }

    /** Called when the call is written. Calls that follow in the same tick are sent in the same write. */
    override toWritable(socket: object): Wire {
      const to = socket as Socket
      this.socket = to
      if (to.writableCorked === 0) {
        to.cork()
        process.nextTick(() => to.uncork())
      }
      return this.#wire
    }

    followRedirections(): void {
      const { reject } = this
      this.reject = (error) => {
        // A node has answered, so it has not executed the call. If the next node is unreachable, nothing is in doubt.
        if (isReply(error)) this.socket = undefined
        reject(error)
      }
    }

    override transformReply(reply: Buffer): Buffer {
      return reply
    }
  }
  return (name, wire, key) => new Call(name, wire, key)
}
