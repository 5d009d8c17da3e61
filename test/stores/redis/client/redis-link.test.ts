/** A Redis link: what its calls are told when time is over. */

import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { systemClock } from '#src/core/platform/clock.js'
import type { RedisCall } from '#src/stores/redis/client/redis-call.js'
import type { RedisClients } from '#src/stores/redis/client/redis-connection-options.js'
import { RedisLink } from '#src/stores/redis/client/redis-link.js'
import { wireOf } from '#src/stores/redis/client/redis-wire.js'

/** A client whose calls fail with these errors, one after the other; only answers of the server have a socket. */
class FailingClient extends EventEmitter {
  readonly status = 'ready'
  readonly errors: Error[]

  constructor(...errors: Error[]) {
    super()
    this.errors = errors
  }

  call(): RedisCall {
    const error = this.errors.shift()!
    const promise = Promise.reject(error)
    return { promise, ...(error.name === 'ReplyError' && { socket: {} }) } as unknown as RedisCall
  }

  sendCommand(call: RedisCall): unknown {
    return call.promise
  }

  disconnect(): void {}
}

it('a call that could not be repeated in time names what blocks the connection', async () => {
  const readOnly = Object.assign(new Error("READONLY You can't write against a read only replica."), {
    name: 'ReplyError',
  })
  const client = new FailingClient(
    readOnly,
    new Error("Stream isn't writeable and enableOfflineQueue options is false"),
  )
  const clients = { where: 'redis://here', call: () => client.call() } as unknown as RedisClients
  const times = [0, 0, 10_000]
  const clock = { ...systemClock, mono: () => times.shift()! }
  const link = new RedisLink(clients, client as never, 5_000, clock)

  await expect(link.call({ name: 'get', wire: wireOf(['GET', 'a']) })).rejects.toThrow('it is a replica')
  link.close()
})
