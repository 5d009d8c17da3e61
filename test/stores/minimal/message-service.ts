/**
 * A message service: what a cloud offers by the name of a queue. A message that was received is hidden for a time and comes
 * back unless it is deleted; whoever deletes it shows a receipt, and an old one is as good as the latest. Nobody can look into it.
 */

import type { NewJob } from 'millrace/store'

interface Message {
  readonly job: NewJob
  readonly sentAt: number
  visibleAt: number
  receives: number
  readonly receipts: Set<number>
}

export interface Received {
  readonly job: NewJob
  readonly sentAt: number
  readonly receives: number
  readonly receipt: number
}

export class MessageService {
  readonly #now: () => number
  readonly #queues = new Map<string, { messages: Message[]; readonly dead: Message[] }>()
  #receipts = 0

  constructor(now: () => number) {
    this.#now = now
  }

  get names(): string[] {
    return [...this.#queues.keys()]
  }

  create(queue: string): void {
    if (!this.#queues.has(queue)) this.#queues.set(queue, { messages: [], dead: [] })
  }

  send(queue: string, job: NewJob, delayMs: number): void {
    const now = this.#now()
    const message = { job: structuredClone(job), sentAt: now, visibleAt: now + delayMs, receives: 0 }
    this.#of(queue).messages.push({ ...message, receipts: new Set() })
  }

  /** Up to `most` messages, in no order that anybody should rely on, hidden from others for `hideMs`. */
  receive(queue: string, most: number, hideMs: number): Received[] {
    const visible = this.#of(queue).messages.filter((message) => message.visibleAt <= this.#now())
    const received = visible.reverse().slice(0, most)
    return received.map((message) => {
      const receipt = ++this.#receipts
      message.receipts.add(receipt)
      message.receives += 1
      message.visibleAt = this.#now() + hideMs
      return { job: message.job, sentAt: message.sentAt, receives: message.receives, receipt }
    })
  }

  /** False where no message has the receipt. */
  delete(queue: string, receipt: number): boolean {
    const found = this.#of(queue)
    const before = found.messages.length
    found.messages = found.messages.filter(({ receipts }) => !receipts.has(receipt))
    return found.messages.length < before
  }

  /** Copies a message into the queue of the dead. False where no message has the receipt. */
  bury(queue: string, receipt: number): boolean {
    const message = this.#holding(queue, receipt)
    if (message !== undefined) this.#of(queue).dead.push(message)
    return message !== undefined
  }

  /** Hides a message from now on for so long. False where no message has the receipt. */
  hide(queue: string, receipt: number, forMs: (leftMs: number) => number): boolean {
    const message = this.#holding(queue, receipt)
    if (message !== undefined) message.visibleAt = this.#now() + forMs(message.visibleAt - this.#now())
    return message !== undefined
  }

  counts(queue: string): { visible: number; hidden: number; delayed: number; dead: number } {
    const { messages, dead } = this.#of(queue)
    const isHidden = ({ visibleAt }: Message) => visibleAt > this.#now()
    const counts = { visible: 0, hidden: 0, delayed: 0, dead: dead.length }
    for (const message of messages)
      counts[!isHidden(message) ? 'visible' : message.receives > 0 ? 'hidden' : 'delayed'] += 1
    return counts
  }

  #holding(queue: string, receipt: number): Message | undefined {
    return this.#of(queue).messages.find(({ receipts }) => receipts.has(receipt))
  }

  #of(queue: string) {
    return this.#queues.get(queue)!
  }
}
