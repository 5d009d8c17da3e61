/** A RESP client: one connection to a Redis server with the plain protocol, as far as tests need it. */

import { connect, type Socket } from 'node:net'
import { loopback } from './free-port.js'

export type RespReply = string | number | null | readonly RespReply[]

/** An error that the server answered; the message is its text, whose first word is the kind. */
export class RespError extends Error {
  override readonly name = 'RespError'
}

interface WaitingReply {
  readonly resolve: (reply: RespReply) => void
  readonly reject: (error: Error) => void
}

type Parsed = { readonly reply: RespReply | RespError; readonly end: number }

export class RespClient {
  readonly #socket: Socket
  readonly #waiting: WaitingReply[] = []
  readonly #what: string
  #received: Buffer = Buffer.alloc(0)
  #failure: Error | undefined

  /** `timeoutMs`: a server that says nothing for this long during a call is given up. */
  constructor(port: number, host = loopback, timeoutMs = 5_000) {
    this.#what = `the connection to ${host}:${port}`
    this.#socket = connect({ port, host, noDelay: true })
      .on('data', (bytes) => {
        try {
          this.#read(bytes)
        } catch (error) {
          this.#fail(error as Error)
        }
      })
      .on('error', (error) => this.#fail(error))
      .on('close', () => this.#fail(new Error(`${this.#what} was closed`)))
      .setTimeout(timeoutMs, () => {
        if (this.#waiting.length > 0) this.#fail(new Error(`${this.#what} was silent for ${timeoutMs} ms`))
      })
  }

  /** One command; several may be under way. Throws `RespError`, or the connection's error. */
  call(...args: readonly (string | number)[]): Promise<RespReply> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    const parts = args.map((arg) => `$${Buffer.byteLength(String(arg))}\r\n${arg}\r\n`)
    this.#socket.write(`*${args.length}\r\n${parts.join('')}`)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
    })
  }

  close(): void {
    this.#fail(new Error(`${this.#what} was closed here`))
  }

  #read(bytes: Buffer): void {
    this.#received = Buffer.concat([this.#received, bytes])
    for (let parsed = parse(this.#received, 0); parsed !== undefined; parsed = parse(this.#received, 0)) {
      this.#received = this.#received.subarray(parsed.end)
      const { reply } = parsed
      const waiting = this.#waiting.shift()
      if (reply instanceof RespError) waiting?.reject(reply)
      else waiting?.resolve(reply)
    }
  }

  #fail(error: Error): void {
    this.#failure ??= error
    this.#socket.destroy()
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure)
  }
}

/** One command on a connection of its own. Throws like `RespClient.call`. */
export async function askOnce(port: number, ...args: readonly (string | number)[]): Promise<RespReply> {
  const client = new RespClient(port)
  try {
    return await client.call(...args)
  } finally {
    client.close()
  }
}

/** The reply that begins at `start`; undefined until all of it has come. */
function parse(bytes: Buffer, start: number): Parsed | undefined {
  const lineEnd = bytes.indexOf('\r\n', start)
  if (lineEnd < 0) return undefined
  const line = bytes.toString('utf8', start + 1, lineEnd)
  const end = lineEnd + 2
  switch (String.fromCharCode(bytes[start]!)) {
    case '+':
      return { reply: line, end }
    case '-':
      return { reply: new RespError(line), end }
    case ':':
      return { reply: Number(line), end }
    case '$':
      return bulk(bytes, Number(line), end)
    case '*':
      return list(bytes, Number(line), end)
    default:
      throw new Error(`not RESP2: ${JSON.stringify(line.slice(0, 40))}`)
  }
}

function bulk(bytes: Buffer, length: number, start: number): Parsed | undefined {
  if (length < 0) return { reply: null, end: start }
  const end = start + length + 2
  return bytes.length < end ? undefined : { reply: bytes.toString('utf8', start, end - 2), end }
}

function list(bytes: Buffer, length: number, start: number): Parsed | undefined {
  if (length < 0) return { reply: null, end: start }
  const replies: RespReply[] = []
  let end = start
  while (replies.length < length) {
    const parsed = parse(bytes, end)
    if (parsed === undefined) return undefined
    // Within a list (of a transaction) an error is an answer like others.
    replies.push(parsed.reply instanceof RespError ? parsed.reply.message : parsed.reply)
    end = parsed.end
  }
  return { reply: replies, end }
}
