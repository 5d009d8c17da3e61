/**
 * The line channel: messages between two processes over a pipe, one line of JSON for each.
 *
 * Node's own channel throws out of the event loop if a line is no JSON. The job in a process can write anything to any
 * of its file descriptors, and its worker must not end for that. Nothing that the other side writes, or breaks off,
 * throws here.
 */

import type { Socket } from 'node:net'
import { StringDecoder } from 'node:string_decoder'

/** Much longer than any message; the longest carries the text of an error. */
const longestMessage = 1_048_576

export class LineChannel {
  /** Resolves when the other side is gone, or this side has closed the channel. */
  readonly closed: Promise<void>
  readonly #socket: Socket

  /** `heard`: called with each object that arrives, whatever it holds. */
  constructor(socket: Socket, heard: (message: object) => void) {
    this.#socket = socket
    const decoder = new StringDecoder('utf8')
    const lines = new LineCutter(longestMessage)
    socket.on('data', (bytes: Buffer) => {
      for (const line of lines.cut(decoder.write(bytes))) {
        const message = objectIn(line)
        if (message !== undefined) heard(message)
      }
    })
    this.closed = new Promise((resolve) => {
      socket.once('error', () => resolve())
      socket.once('end', () => resolve())
      socket.once('close', () => resolve())
    })
    // A later error is the same news.
    socket.on('error', () => {})
  }

  /** Resolves with true when the system has it, with false if the other side is gone. Never rejects. */
  say(message: object): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.#socket.writable) this.#socket.write(`${JSON.stringify(message)}\n`, (error) => resolve(!error))
      else resolve(false)
    })
  }

  close(): void {
    this.#socket.destroy()
  }
}

function objectIn(line: string): object | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** The line cutter: joins the pieces of a stream into whole lines. */
export class LineCutter {
  readonly #longest: number
  #rest = ''
  #isSkipping = false

  /** A line of more than `longest` characters is left out: a writer without line breaks must not fill our memory. */
  constructor(longest: number) {
    this.#longest = longest
  }

  /** The lines that this piece completes, without their breaks. */
  cut(piece: string): string[] {
    const lines = (this.#rest + piece).split('\n')
    this.#rest = lines.pop()!
    if (lines.length > 0 && this.#isSkipping) {
      this.#isSkipping = false
      lines.shift()
    }
    if (this.#isSkipping || this.#rest.length > this.#longest) {
      this.#isSkipping = true
      this.#rest = ''
    }
    return lines.filter(({ length }) => length <= this.#longest)
  }
}
