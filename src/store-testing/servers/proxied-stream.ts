/** A proxied stream: one direction of a connection through a fault proxy. It delivers in order, if at all. */

import type { Socket } from 'node:net'

/** The fault of one direction; read anew before each delivery. */
export interface StreamFault {
  /** `hold`: nothing arrives, not even an end, until that is over. `lose`: sent bytes are gone. */
  readonly fate: 'pass' | 'hold' | 'lose'
  readonly latencyMs: number
  /** Whether each byte is written by itself. */
  readonly split: boolean
}

interface Sent {
  /** Null is the end of the stream. */
  readonly bytes: Buffer | null
  readonly dueAt: number
}

/** With more bytes than this on their way, it stops reading from the sender. */
const mostOnItsWay = 1 << 20

export class ProxiedStream {
  readonly #from: Socket
  readonly #to: Socket
  readonly #fault: () => StreamFault
  readonly #onLost: () => void
  readonly #sent: Sent[] = []
  #bytesOnTheirWay = 0
  #hasEnded = false
  /** A connection never loses bytes in the middle: bytes after lost ones do not arrive either. */
  #isDumb = false
  #timer: NodeJS.Timeout | undefined
  #turn: NodeJS.Immediate | undefined

  constructor(from: Socket, to: Socket, fault: () => StreamFault, onLost: () => void) {
    this.#from = from
    this.#to = to
    this.#fault = fault
    this.#onLost = onLost
    from.on('data', (bytes) => this.#send(bytes))
    from.on('end', () => this.#end()).on('close', () => this.#end())
    to.on('drain', () => this.deliver())
  }

  /** Delivers due bytes; called again whenever the fault has changed. */
  deliver(): void {
    clearTimeout(this.#timer)
    while (this.#sent.length > 0 && this.#turn === undefined && (this.#to.destroyed || !this.#to.writableNeedDrain)) {
      const { fate, split } = this.#fault()
      if (fate === 'hold') break
      const forMs = this.#sent[0]!.dueAt - performance.now()
      if (forMs > 0) {
        this.#timer = setTimeout(() => this.deliver(), Math.ceil(forMs))
        break
      }
      this.#pass(this.#next(split), fate === 'lose')
      // In turns of the event loop, so that each byte leaves in a packet of its own.
      if (split) this.#turn = setImmediate(() => this.#nextTurn())
    }
    if (this.#from.isPaused() && this.#bytesOnTheirWay < mostOnItsWay) this.#from.resume()
  }

  /** Forgets the bytes that are on their way. */
  close(): void {
    clearTimeout(this.#timer)
    clearImmediate(this.#turn)
    this.#sent.length = 0
    this.#hasEnded = true
  }

  #send(bytes: Buffer | null): void {
    this.#sent.push({ bytes, dueAt: performance.now() + this.#fault().latencyMs })
    this.#bytesOnTheirWay += bytes?.length ?? 0
    if (this.#bytesOnTheirWay >= mostOnItsWay) this.#from.pause()
    this.deliver()
  }

  #end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#send(null)
  }

  /** The next delivery: everything sent at once, or its first byte. */
  #next(split: boolean): Buffer | null {
    const { bytes, dueAt } = this.#sent[0]!
    const next = split && bytes !== null ? bytes.subarray(0, 1) : bytes
    const rest = bytes?.subarray(next!.length)
    if (rest === undefined || rest.length === 0) this.#sent.shift()
    else this.#sent[0] = { bytes: rest, dueAt }
    this.#bytesOnTheirWay -= next?.length ?? 0
    return next
  }

  #pass(bytes: Buffer | null, isLost: boolean): void {
    this.#isDumb ||= isLost && bytes !== null
    if (bytes === null) this.#to.end()
    else if (this.#isDumb) this.#onLost()
    else if (!this.#to.destroyed) this.#to.write(bytes)
  }

  #nextTurn(): void {
    this.#turn = undefined
    this.deliver()
  }
}
