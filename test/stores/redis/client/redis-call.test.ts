import { EventEmitter } from 'node:events'
import { Writable } from 'node:stream'
import { Command } from 'ioredis'
import { expect, it } from 'vitest'
import { systemClock } from '#src/core/platform/clock.js'
import { type RedisCall, redisCalls } from '#src/stores/redis/client/redis-call.js'
import type { RedisClients } from '#src/stores/redis/client/redis-connection-options.js'
import { RedisLink } from '#src/stores/redis/client/redis-link.js'
import { wireOf } from '#src/stores/redis/client/redis-wire.js'

/** A stream that notes what reaches it in one write. */
function noting(): { readonly socket: Writable; readonly writes: string[] } {
  const writes: string[] = []
  const socket = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      writes.push(String(chunk))
      done()
    },
    writev(chunks, done) {
      writes.push(chunks.map(({ chunk }) => String(chunk)).join(''))
      done()
    },
  })
  return { socket, writes }
}

const call = redisCalls(Command)
const tick = () => new Promise((resolve) => setImmediate(resolve))

it('calls sent in one tick leave in one write', async () => {
  const { socket, writes } = noting()
  for (const round of ['1', '2']) {
    for (const word of ['a', 'b', 'c']) socket.write(call('get', wireOf(['GET'], [word, round])).toWritable(socket))
    await tick()
  }
  expect(writes).toEqual(
    ['1', '2'].map((round) => ['a', 'b', 'c'].map((word) => wireOf(['GET', word, round])).join('')),
  )
})

it('a call knows the socket it was written to, and forgets it if a node refused it', () => {
  const { socket } = noting()
  const sent = call('get', wireOf(['GET', 'a']), 'a')
  sent.promise.catch(() => {})
  expect(sent.socket).toBeUndefined()
  sent.toWritable(socket)
  expect(sent.socket).toBe(socket)
  sent.followRedirections()
  const moved = new Error('MOVED 1 127.0.0.1:1')
  moved.name = 'ReplyError'
  sent.reject(moved)
  expect(sent.socket).toBeUndefined()
})

it.each([
  [['PING'], '*1\r\n$4\r\nPING\r\n'],
  [['SET', '', 'ab'], '*3\r\n$3\r\nSET\r\n$0\r\n\r\n$2\r\nab\r\n'],
  [['SET', 'é'], '*2\r\n$3\r\nSET\r\n$2\r\né\r\n'],
  [['SET', 'é', new Uint8Array([65, 66])], '*3\r\n$3\r\nSET\r\n$2\r\né\r\n$2\r\nAB\r\n'],
])('%o is encoded for the wire', (words, wire) => {
  expect(Buffer.from(wireOf(words) as string).toString()).toBe(wire)
})

it('words of any length and parts of a buffer have the right lengths on the wire', () => {
  const long = 'x'.repeat(70_000)
  expect(wireOf([long])).toBe(`*1\r\n$70000\r\n${long}\r\n`)
  const part = new Uint8Array([1, 65, 66, 255, 2]).subarray(1, 4)
  expect((wireOf([part]) as Buffer).toString('latin1')).toBe('*1\r\n$3\r\nAB\xff\r\n')
})

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
