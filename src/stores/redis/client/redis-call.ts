/** A Redis call: one command on its way, written as it is and answered as the server answers it. */

import type { Socket } from 'node:net'
import type { Command } from 'ioredis'
import type { RedisReply } from './redis-client.js'
import { isReply } from './redis-errors.js'
import type { Wire } from './redis-wire.js'

export interface RedisCall extends Command {
  readonly promise: Promise<RedisReply>
  /** Where it was last written to; undefined as long as no server can have it, be it that none was sent it or that all refused. */
  readonly socket: Socket | undefined
  /** To be called once it is sent, where the client may send it on to other nodes. */
  followRedirections(): void
}

/** Makes a call; a cluster sends it to the master that holds `key`. */
export type MakeRedisCall = (name: string, wire: Wire, key?: string) => RedisCall

/** Calls for the ioredis whose `Command` this is; its own would encode each argument, and the replies of some commands. */
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

    /** Called when it is written. What follows in the same tick leaves in the same write. */
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
        // A node has answered: it has not carried it out. Where the next one cannot be reached, nothing is in doubt.
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
